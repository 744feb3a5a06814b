"""`topstory simulate`."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer


class SimulationReport(msgspec.Struct, frozen=True):
    """What was simulated."""

    events: int
    articles: int
    ctr: float
    start: str
    days: float
    seed: int
    out: str
    bytes: int
    seconds: float


def simulate(
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="The folder to write the log to; with r6a, the file."),
    ],
    events: Annotated[int, typer.Option(metavar="N", min=1, help="How many.")] = 1_000_000,
    days: Annotated[
        float, typer.Option(metavar="X", min=0.01, max=3660, help="How many they are spread over.")
    ] = 1.0,
    start: Annotated[
        str, typer.Option(metavar="DATE", help="The first day, or a whole hour in UTC.")
    ] = "2009-05-01",
    seed: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="The same seed, the same world and the same bytes."),
    ] = 0,
    visits_seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Another one: other visits to the same world.")
    ] = 0,
    users: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many users the world has.")
    ] = 1_000_000,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="Keep the raw profiles, to make features of; the contexts are then a constant.",
        ),
    ] = False,
    format: Annotated[
        Literal["log", "r6a"],
        typer.Option(
            metavar="FORMAT",
            help="`log`: a folder for every command. `r6a`: Yahoo's text; .gz compresses it.",
        ),
    ] = "log",
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of a sentence.")
    ] = False,
) -> None:
    """Make a log of a simulated front page, like that of the paper, with articles shown at random.

    Without `--raw` a context holds the user's true interests, which no real site knows. Nothing in
    such a log comes from real people.
    """
    from time import perf_counter

    from topstory.cli.output.consoles import answers
    from topstory.cli.output.following import following
    from topstory.cli.output.numbers import rate
    from topstory.cli.output.printing import print_json
    from topstory.events.simulator import TodayModule

    if raw and format == "r6a":
        raise typer.BadParameter("r6a has no place for raw profiles", param_hint="--raw")
    began = perf_counter()
    world = TodayModule(seed, users=users)
    with following("simulating", events) as follow:
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
    answers().print(
        f"{report.events:,} simulated events of {report.articles} articles into {out}: "
        f"CTR {report.ctr:.4f}, {report.bytes / 1e6:,.1f} MB "
        f"in {report.seconds:.1f} s, {rate(report.events / report.seconds)}",
        markup=False,
        soft_wrap=True,
    )
