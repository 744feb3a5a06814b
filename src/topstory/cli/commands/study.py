"""`topstory study`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topstory.cli.options import Address, AsJson, Bucket, EngineName, Repeats, Seed, Support

if TYPE_CHECKING:
    from topstory.cli.reports.study import StudyReport


def study(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="A folder for the report and all its numbers.")
    ],
    scale: Annotated[
        str,
        typer.Option(
            metavar="SCALE",
            help="Of simulated logs: demo (0.5 M events to tune on, 3 M to judge on) or paper "
            "(4.7 M and 36 M).",
        ),
    ] = "demo",
    tuning: Annotated[
        Path | None,
        typer.Option(metavar="LOG", help="Your own log to choose parameters on."),
    ] = None,
    evaluation: Annotated[
        Path | None,
        typer.Option(metavar="LOG", help="Your own log to judge the policies on."),
    ] = None,
    exploration: Annotated[
        Path | None,
        typer.Option(
            metavar="LOG",
            help="Your own log of random exploration, for the offsets of warm policies, and for "
            "features if all three logs are raw. By default the tuning log's first tenth.",
        ),
    ] = None,
    support: Support = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Which policies. By default all ten that learn."),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="S,T,…",
            help="The shares of retained events to learn from. By default the paper's: "
            "1,0.3,0.2,0.1,0.05,0.01.",
        ),
    ] = None,
    epsilons: Annotated[
        str | None, typer.Option(metavar="E,F,…", help="Values of epsilon to try.")
    ] = None,
    alphas: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="Values of alpha to try.")
    ] = None,
    repeats: Repeats = None,
    tune_on: Bucket = "deployment",
    tune_ridge: Annotated[
        bool,
        typer.Option(
            "--tune-ridge",
            help="Search the ridge of disjoint and hybrid models as well, and say what it earns.",
        ),
    ] = False,
    seed: Seed = 0,
    engine: EngineName = "local",
    address: Address = None,
    json: AsJson = False,
) -> None:
    """The paper's whole evaluation: tune every policy, judge it on another log, write a report.

    Every finished run is recorded at once: interrupted, the same command goes on where it was.
    OUT holds report.html, table1 as csv, md and tex, runs.parquet, and the figures.
    """
    import topstory as ts
    from topstory.cli.choosing import listed
    from topstory.cli.lists import numbers, shares
    from topstory.cli.output.consoles import remarks
    from topstory.cli.output.printing import print_json
    from topstory.cli.output.progress import work_bar
    from topstory.cli.output.warnings import told_once
    from topstory.cli.reports.study import StudyReport
    from topstory.engines import engine as named_engine
    from topstory.extras import require
    from topstory.studies import StudyWarning

    require("report")  # or the study would run for minutes, and then not be written
    logs = {
        role: None if path is None else ts.EventLog.read(path)
        for role, path in (
            ("tuning", tuning),
            ("evaluation", evaluation),
            ("exploration", exploration),
        )
    }
    console = remarks()
    with told_once(console, StudyWarning), work_bar(console, "study") as follow, _resumable():
        found = ts.study(
            out,
            scale=scale,
            **logs,
            support=shares(support, "--support"),
            policies=listed(policy),
            sizes=numbers(sizes, "--sizes"),
            epsilons=numbers(epsilons, "--epsilons"),
            alphas=numbers(alphas, "--alphas"),
            repeats=repeats,
            tune_on=tune_on,
            tune_ridge=tune_ridge,
            seed=seed,
            engine=named_engine(engine, address=address),
            progress=lambda what, done, total: follow(done, total, what),
        )
        page = found.write()
    report = found.report()
    told = StudyReport(
        format="topstory-study",
        version=1,
        out=str(out),
        report=str(page),
        summary=report.summary,
        table=report.table,
        replays=len(found.tuned) + len(found.evaluated),
        seconds=found.seconds,
    )
    if json:
        print_json(told)
    else:
        _show(told)


@contextmanager
def _resumable() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; the same command goes on where it was") from None


def _show(told: "StudyReport") -> None:
    from topstory.cli.output.consoles import answers
    from topstory.cli.output.numbers import number
    from topstory.cli.output.tables import plain_table
    from topstory.report.wording import share

    console = answers()
    table = plain_table(
        "deployment CTR", *(share(size) for size in told.table.sizes), title="Relative to random"
    )
    for row in told.table.rows:
        table.add_row(
            row.name,
            *(
                f"[bold]{number(cell.deploy.value, 3)}[/]"
                if cell.best_deploy
                else number(cell.deploy.value, 3)
                for cell in row.cells
            ),
        )
    console.print(table)
    console.print()
    for place, sentence in enumerate(told.summary):
        console.print(sentence, style=None if place else "bold", markup=False, soft_wrap=True)
    console.print(
        f"\n{told.replays:,} replays in {told.seconds:.0f} s. The report: {told.report}",
        markup=False,
        soft_wrap=True,
    )
