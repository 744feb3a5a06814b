"""`topstory tune`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topstory.cli.options import Address, AsJson, Bucket, EngineName, Repeats, Seed
from topstory.cli.policy_options import TUNABLE
from topstory.policies.registry import TUNED

if TYPE_CHECKING:
    from topstory.cli.reports.tune import CurveReport, TuneReport


def tune(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log's folder.")],
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"Which policy: {', '.join(TUNABLE[:-1])} or {TUNABLE[-1]}.",
        ),
    ],
    grid: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help=f"Values of {' or '.join(TUNED)}. By default eight."),
    ] = None,
    sizes: Annotated[
        str,
        typer.Option(
            metavar="S,T,…",
            help="The shares of retained events to learn from; each is tuned on its own.",
        ),
    ] = "1",
    on: Bucket = "deployment",
    ridge: Annotated[
        str | None,
        typer.Option(
            metavar="R,S,…", help="disjoint, hybrid: values of the ridge to search as well."
        ),
    ] = None,
    repeats: Repeats = None,
    seed: Seed = 0,
    warm_from: Annotated[
        Path | None,
        typer.Option(
            metavar="LOG2",
            help="warm: the log of random exploration that user-specific offsets are fitted on. "
            "By default it is LOG's first tenth, and the rest is tuned on.",
        ),
    ] = None,
    engine: EngineName = "local",
    address: Address = None,
    json: AsJson = False,
) -> None:
    """Which parameter is best for a policy: a replay for each value of a grid, side by side.

    The highest CTR of the deployment bucket decides, as in the paper, separately for each data
    size. Each relative CTR comes with its 95 % interval; that of the best is its own, and does not
    allow for having picked the best of many.
    """
    import topstory as ts
    from topstory.cli.choosing import meaningless, warm
    from topstory.cli.exploring import Source, explored
    from topstory.cli.lists import numbers
    from topstory.cli.output.consoles import remarks
    from topstory.cli.output.printing import print_json
    from topstory.cli.output.progress import work_bar
    from topstory.cli.output.warnings import told_once, warn_of_constant
    from topstory.cli.reports.tune import tune_report
    from topstory.engines import engine as named_engine
    from topstory.evaluation.tuning import parameter_name

    parameter_name(policy)
    if warm_from is not None and not warm(policy):
        raise meaningless("--warm-from", [policy])
    values, shares, ridges = (
        numbers(grid, "--grid"),
        numbers(sizes, "--sizes"),
        numbers(ridge, "--ridge"),
    )
    source = Source(str(log), ts.EventLog.read(log))
    events, given = source.log, {}
    if warm(policy):
        other = None if warm_from is None else Source(str(warm_from), ts.EventLog.read(warm_from))
        _, offset, events = explored(source, other)
        given = {"offset": offset}
    console = remarks()
    warn_of_constant(source, policy, console)
    with told_once(console), work_bar(console, policy) as progress:
        tuning = ts.tune(
            policy,
            events,
            grid=values,
            ridges=ridges,
            sizes=shares or [1.0],
            on=on,
            repeats=repeats,
            seed=seed,
            engine=named_engine(engine, address=address),
            progress=progress,
            **given,
        )
    report = tune_report(str(log), len(events), tuning)
    if json:
        print_json(report)
    else:
        _show(report)


def _show(report: "TuneReport") -> None:
    from topstory.cli.output.consoles import answers
    from topstory.cli.output.numbers import count, interval, number
    from topstory.cli.output.tables import plain_table

    console = answers()
    for curve in report.curves:
        named = list(curve.points[0].parameters)
        table = plain_table(*named, "deployment", "learning", title=_title(report, curve.size))
        for point in curve.points:
            table.add_row(
                *(f"{point.parameters[name]:g}" for name in named),
                *(
                    f"{number(told.relative_ctr, 3)} {interval(told.interval, 2)}".strip()
                    for told in (point.deployment, point.learning)
                ),
                style="bold" if point.chosen else None,
            )
        console.print(table)
        console.print(f"\n{_best(report, curve)}\n", style="bold")
    seeds = max(point.repeats for curve in report.curves for point in curve.points)
    console.print(
        f"{count(report.events, 'event')}; relative CTRs, with 95 % intervals"
        + (f"; averages of up to {seeds} seeds." if seeds > 1 else "."),
        style="dim",
        soft_wrap=True,
    )


def _best(report: "TuneReport", curve: "CurveReport") -> str:
    for point in curve.points:
        if point.chosen:
            listed = ", ".join(f"{name} {value:g}" for name, value in point.parameters.items())
            return f"Best in the {report.on} bucket: {listed}"
    return f"Nothing was clicked in the {report.on} bucket: no value is known to be the best."


def _title(report: "TuneReport", size: float) -> str:
    return report.paper + ("" if size == 1 else f", learning from {100 * size:g} %")
