"""`topstory tune`."""

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from topstory.cli.arguments import (
    Address,
    AsJson,
    EngineName,
    LearningShare,
    LogFolder,
    PriorFile,
    Repeats,
    Save,
    Seed,
    WarmFrom,
)
from topstory.cli.policy_options import PolicyToTrain
from topstory.policies.registry import NUMBERS, TUNED

if TYPE_CHECKING:
    from topstory.cli.reports.tune import TuneReport


def tune(
    log: LogFolder,
    policy: PolicyToTrain = None,
    grid: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help=f"Values of {' or '.join(TUNED)} to try. Default: eight values, or three with "
            "a ridge, and more beyond the edge if the best one is there.",
        ),
    ] = None,
    sizes: Annotated[
        str,
        typer.Option(
            metavar="S,T,…",
            help="Shares of retained events to learn from; each is tuned separately.",
        ),
    ] = "1",
    on: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="What decides: total (of both buckets), deployment (as in the paper) or learning.",
        ),
    ] = "total",
    learning_share: LearningShare = 0.1,
    ridge: Annotated[
        str | None,
        typer.Option(
            metavar="R,S,…",
            help="disjoint, hybrid: values of the ridge to try as well; or auto: found from the "
            "trials; or paper: 1. Default: 1, 10 and 100.",
        ),
    ] = None,
    repeats: Repeats = None,
    seed: Seed = 0,
    warm_from: WarmFrom = None,
    prior: PriorFile = None,
    engine: EngineName = "local",
    address: Address = None,
    save: Save = None,
    json: AsJson = False,
) -> None:
    """Recommend the parameter of a policy: replay it with each value of a grid.

    What a site earns over both buckets decides, with a share of its visits learning, separately for
    each data size. The highest point of a noisy curve is partly luck, so all points are read
    together, and values that cannot be told apart go to the one that costs less while learning.
    Judge the result on another log.
    """
    import topstory as ts
    from topstory.cli.arguments import check_exploration_options, parse_numbers
    from topstory.cli.output.consoles import print_json, stderr_console
    from topstory.cli.output.progress import work_bar
    from topstory.cli.output.saving import save_trained
    from topstory.cli.output.warnings import printed_warnings, warn_if_no_features
    from topstory.cli.reports.tune import tune_report
    from topstory.engines import engine as named_engine
    from topstory.evaluation.assignment import check_policies
    from topstory.evaluation.replays.warm_start import default_policy, start_of
    from topstory.evaluation.tuning.grids import parameter_name

    named = ridge in NUMBERS["ridge"].words
    values, shares, ridges = (
        parse_numbers(grid, "--grid"),
        parse_numbers(sizes, "--sizes"),
        None if named else parse_numbers(ridge, "--ridge"),
    )
    if policy is not None:
        parameter_name(policy)
        check_exploration_options([policy], warm_from, prior)
    events = ts.EventLog.read(log)
    if policy is None:
        policy = default_policy(events, ridge)
        check_exploration_options([policy], warm_from, prior)
    given: dict[str, Any] = {"ridge": ridge} if named else {}
    check_policies({policy: given}, seed)
    explored = None if warm_from is None else ts.EventLog.read(warm_from)
    start = start_of([policy], events, explored, None if prior is None else ts.Prior.load(prior))
    if start is not None:
        events, given = start.log, given | start.argument(policy)
    console, name = stderr_console(), policy
    warn_if_no_features(log, [policy], console)
    with printed_warnings(console), work_bar(console, policy) as follow:
        tuning = ts.tune(
            policy,
            events,
            grid=values,
            ridges=ridges,
            sizes=shares or [1.0],
            on=on,
            learning_share=learning_share,
            repeats=repeats,
            seed=seed,
            engine=named_engine(engine, address=address),
            progress=lambda done, total: follow(name, done, total),
            **given,
        )
    binary = bool(((events.payoff == 0) | (events.payoff == 1)).all())
    report = tune_report(str(log), len(events), tuning, binary)
    if save is not None:
        best = tuning.best(max(tuning.sizes)).parameters
        saved = save_trained(save, policy, best, events, given, seed)
        report = msgspec.structs.replace(report, saved=saved)
    if json:
        print_json(report)
    else:
        _show(report)


def _show(report: "TuneReport") -> None:
    from topstory.cli.output.consoles import stdout_console
    from topstory.cli.output.numbers import count, interval, number
    from topstory.cli.output.saving import saved_line
    from topstory.cli.output.tables import plain_table
    from topstory.cli.output.words import mean_payoff, paid_units
    from topstory.cli.reports.replay import interval_scope

    console = stdout_console()
    for curve in report.curves:
        named = list(curve.points[0].parameters)
        table = plain_table(
            *named, *("deployment", "learning", "total", "cost"), title=_title(report, curve.size)
        )
        for point in curve.points:
            table.add_row(
                *(f"{point.parameters[name]:g}" for name in named),
                *(
                    f"{number(bucket.relative_ctr, 3)} {interval(bucket.interval, 2)}".strip()
                    for bucket in (point.deployment, point.learning)
                ),
                number(point.total.relative_ctr, 3),
                number(point.clicks_per_100000, 0),
                style="bold" if point.chosen else None,
            )
        console.print(table)
        console.print(f"\n{curve.advice}\n", style="bold", soft_wrap=True)
    seeds = max(point.repeats for curve in report.curves for point in curve.points)
    scope = interval_scope(seeds, binary=report.binary)
    console.print(
        f"{count(report.events, 'event')}. Relative {mean_payoff(report.binary)}s with 95 % "
        f"intervals over the {scope}. Total: both buckets with {report.learning_share:.0%} of "
        "visits learning (--learning-share). Cost: "
        f"{paid_units(report.binary)} in 100,000 visits that exploring loses there.",
        style="dim",
        soft_wrap=True,
    )
    if report.saved is not None:
        console.print(f"\n{saved_line(report.saved)}", markup=False, soft_wrap=True)


def _title(report: "TuneReport", size: float) -> str:
    return report.paper + ("" if size == 1 else f", learning from {100 * size:g} %")
