"""`topstory tune`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topstory.cli.arguments import Address, AsJson, Bucket, EngineName, LogFolder, Repeats, Seed
from topstory.cli.policy_options import TUNABLE
from topstory.policies.registry import TUNED

if TYPE_CHECKING:
    from topstory.cli.reports.tune import CurveReport, TuneReport


def tune(
    log: LogFolder,
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"Which policy: {', '.join(TUNABLE[:-1])} or {TUNABLE[-1]}.",
        ),
    ],
    grid: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…", help=f"Values of {' or '.join(TUNED)} to try. Default: eight values."
        ),
    ] = None,
    sizes: Annotated[
        str,
        typer.Option(
            metavar="S,T,…",
            help="Shares of retained events to learn from; each is tuned separately.",
        ),
    ] = "1",
    on: Bucket = "deployment",
    ridge: Annotated[
        str | None,
        typer.Option(metavar="R,S,…", help="disjoint, hybrid: values of the ridge to try as well."),
    ] = None,
    repeats: Repeats = None,
    seed: Seed = 0,
    warm_from: Annotated[
        Path | None,
        typer.Option(
            metavar="LOG2",
            help="warm: log of random exploration to fit user-specific offsets on. Default: the "
            "first tenth of LOG; the rest is then tuned on.",
        ),
    ] = None,
    engine: EngineName = "local",
    address: Address = None,
    json: AsJson = False,
) -> None:
    """Find the best parameter of a policy: replay it with each value of a grid.

    The highest CTR of the deployment bucket decides, as in the paper, separately for each data
    size. Each relative CTR comes with its 95 % interval, which does not correct for picking the
    best of many values.
    """
    import topstory as ts
    from topstory.cli.arguments import inapplicable, parse_numbers
    from topstory.cli.output.consoles import print_json, stderr_console
    from topstory.cli.output.progress import work_bar
    from topstory.cli.output.warnings import printed_warnings, warn_if_no_features
    from topstory.cli.reports.tune import tune_report
    from topstory.engines import engine as named_engine
    from topstory.evaluation.tuning import parameter_name
    from topstory.evaluation.warm_start import needs_offset, warm_start

    parameter_name(policy)
    if warm_from is not None and not needs_offset(policy):
        raise inapplicable("--warm-from", [policy])
    values, shares, ridges = (
        parse_numbers(grid, "--grid"),
        parse_numbers(sizes, "--sizes"),
        parse_numbers(ridge, "--ridge"),
    )
    events, given = ts.EventLog.read(log), {}
    if needs_offset(policy):
        start = warm_start(events, None if warm_from is None else ts.EventLog.read(warm_from))
        events, given = start.log, {"offset": start.offset}
    console = stderr_console()
    warn_if_no_features(str(log), events, policy, console)
    with printed_warnings(console), work_bar(console, policy) as follow:
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
            progress=lambda done, total: follow(policy, done, total),
            **given,
        )
    report = tune_report(str(log), len(events), tuning)
    if json:
        print_json(report)
    else:
        _show(report)


def _show(report: "TuneReport") -> None:
    from topstory.cli.output.consoles import stdout_console
    from topstory.cli.output.numbers import count, interval, number
    from topstory.cli.output.tables import plain_table

    console = stdout_console()
    for curve in report.curves:
        named = list(curve.points[0].parameters)
        table = plain_table(*named, "deployment", "learning", title=_title(report, curve.size))
        for point in curve.points:
            table.add_row(
                *(f"{point.parameters[name]:g}" for name in named),
                *(
                    f"{number(bucket.relative_ctr, 3)} {interval(bucket.interval, 2)}".strip()
                    for bucket in (point.deployment, point.learning)
                ),
                style="bold" if point.chosen else None,
            )
        console.print(table)
        console.print(f"\n{_best(report, curve)}\n", style="bold")
    seeds = max(point.repeats for curve in report.curves for point in curve.points)
    console.print(
        f"{count(report.events, 'event')}. Relative CTRs with 95 % intervals"
        + (f", averaged over up to {seeds} seeds." if seeds > 1 else "."),
        style="dim",
        soft_wrap=True,
    )


def _best(report: "TuneReport", curve: "CurveReport") -> str:
    for point in curve.points:
        if point.chosen:
            listed = ", ".join(f"{name} {value:g}" for name, value in point.parameters.items())
            return f"Best in the {report.on} bucket: {listed}"
    return f"There were no clicks in the {report.on} bucket, so no value is known to be best."


def _title(report: "TuneReport", size: float) -> str:
    return report.paper + ("" if size == 1 else f", learning from {100 * size:g} %")
