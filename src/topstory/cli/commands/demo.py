"""`topstory demo`."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from topstory.cli.reports.replay import Report

# Near the best for deployment over three simulated days (seeds 100 to 102); epsilon suits plain
# ε-greedy there, so that no lift over it comes from a poor choice.
USERS, SEPTEMBER = 100_000, "2008-09-01"
PARAMETERS = {"alpha": 0.4, "epsilon": 0.2, "ridge": 10.0}


def demo(
    events: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many events to replay.")
    ] = 1_000_000,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="The same seed, the same log and result.")
    ] = 0,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of a table.")
    ] = False,
) -> None:
    """Replay the paper's twelve policies over a simulated log, and say which one to deploy.

    The log is made in memory: a day of a simulated front page, with users of five groups, a pool
    of some 20 articles that changes hourly, and clicks on some 3.5 % of them. A fifth as many
    events of earlier exploration give the warm policies their offsets. The interval of the advice
    is that policy's own: it does not allow for having picked the best of ten.
    """
    from topstory.cli.choosing import chosen
    from topstory.cli.comparison import compare
    from topstory.cli.exploring import Source
    from topstory.cli.output.consoles import answers
    from topstory.cli.output.printing import print_report
    from topstory.events.simulator import TodayModule
    from topstory.extras import require

    require("features")
    world = TodayModule(seed, users=USERS)
    explored = world.random_log(max(1, events // 5), SEPTEMBER)
    log = world.random_log(events)
    report = compare(
        Source("simulated", log),
        chosen(["all"], PARAMETERS, seed),
        warm_from=Source("simulated exploration", explored),
        size=1.0,
        seed=seed,
    )
    if not json:
        answers().print(f"\nA simulated log: {log!r}", soft_wrap=True)
    print_report(report, json)
    if not json:
        answers().print(f"\n{_advice(report)}", style="bold", soft_wrap=True)


def _advice(report: "Report") -> str:
    """Which policy to deploy, in words."""
    candidates = [p for p in report.policies if p.policy not in ("random", "omniscient")]
    best = max(candidates, key=lambda p: p.deployment.ctr or 0.0)
    lift = best.deployment_lift
    if lift is None or lift.value is None or lift.interval is None:
        return "Too few clicks to say which policy to deploy: simulate more --events."
    low, high = lift.interval
    earned = (
        f"{lift.value:.1%} more than ε-greedy's (95 % interval {low:+.1%} to {high:+.1%}), "
        f"after {best.deployment.trials:,} trials."
    )
    if low <= 0:
        return (
            f"No policy is surely better than ε-greedy yet: the best, {best.paper}, earned {earned}"
        )
    return f"Deploy {best.paper}: on this simulated log its deployment bucket earned {earned}"
