"""`topstory simulate`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from topstory.cli.arguments import AsJson


def simulate(
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="Folder to write the log to; with r6a, a file."),
    ],
    events: Annotated[int, typer.Option(metavar="N", min=1, help="Number of events.")] = 1_000_000,
    days: Annotated[
        float,
        typer.Option(metavar="X", min=0.01, max=3660, help="Number of days they are spread over."),
    ] = 1.0,
    start: Annotated[
        str, typer.Option(metavar="DATE", help="The first day, or a whole hour in UTC.")
    ] = "2009-05-01",
    seed: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Seed of the world. The same seeds give the same bytes."
        ),
    ] = 0,
    visits_seed: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Seed of the visits: another one, other visits to that world."
        ),
    ] = 0,
    users: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of users in the world.")
    ] = 1_000_000,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="Write raw profiles, to make features from. Contexts are then only the constant.",
        ),
    ] = False,
    format: Annotated[
        Literal["log", "r6a"],
        typer.Option(
            metavar="FORMAT",
            help="`log`: a folder that every command reads. `r6a`: Yahoo's text format, compressed "
            "if OUT ends in .gz.",
        ),
    ] = "log",
    json: AsJson = False,
) -> None:
    """Simulate a log of a front page like the paper's, with articles shown at random.

    Without `--raw`, a context holds the user's true interests, which no real site knows. Nothing in
    such a log comes from real people.
    """
    from time import perf_counter

    from topstory.cli.output.consoles import print_json, print_line, stderr_console
    from topstory.cli.output.numbers import count, rate
    from topstory.cli.output.progress import count_bar
    from topstory.cli.reports.simulate import SimulationReport
    from topstory.events.simulator import TodayModule

    if raw and format == "r6a":
        raise typer.BadParameter("the format r6a cannot hold raw profiles", param_hint="--raw")
    began = perf_counter()
    world = TodayModule(seed, users=users)
    with count_bar(stderr_console(), "simulating", events) as follow:
        made = world.write_log(
            out, events, start, days, seed=visits_seed, raw=raw, format=format, progress=follow
        )
    report = SimulationReport(
        events=events,
        articles=made.articles,
        ctr=made.ctr,
        start=start,
        days=days,
        seed=seed,
        out=str(out),
        bytes=made.bytes,
        seconds=perf_counter() - began,
    )
    if json:
        print_json(report)
        return
    print_line(
        f"Wrote {count(report.events, 'simulated event')} of {count(report.articles, 'article')} "
        f"to {out}: CTR {report.ctr:.4f}, {report.bytes / 1e6:,.1f} MB in {report.seconds:.1f} s, "
        f"{rate(report.events / report.seconds)}"
    )
