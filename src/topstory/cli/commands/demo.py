"""`topstory demo`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from topstory.cli.arguments import AsJson, Seed

if TYPE_CHECKING:
    from topstory.cli.reports.replay import ReplayReport
    from topstory.evaluation.comparison import Comparison

USERS, SEPTEMBER = 100_000, "2008-09-01"
# Near the best for deployment over three simulated days (seeds 100 to 102); epsilon suits plain
# ε-greedy there, so that no lift over it comes from a poor choice.
PARAMETERS: dict[str, Any] = {"alpha": 0.4, "epsilon": 0.2, "ridge": 10.0}


def demo(
    events: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of events to replay.")
    ] = 1_000_000,
    seed: Seed = 0,
    json: AsJson = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Instead, serve the front page and the studio, and let simulated visitors come.",
        ),
    ] = False,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port of --live; 0: a free one.")
    ] = 8000,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Whether --live opens a browser.")
    ] = True,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", min=0, help="How long --live runs; else: Ctrl+C.")
    ] = None,
) -> None:
    """Compare the paper's twelve policies on a simulated log, and say which one to deploy.

    The log is made in memory: one day of a simulated front page, with users of five groups, a pool
    of about 20 articles that changes every hour, and a CTR of about 3.5 %. A fifth as many events
    of earlier random exploration give the warm policies their offsets. Each policy is replayed
    with three seeds. A lift is called significant only if it is so among those of all policies.
    The simulator knows the true value of every policy, which is printed with the advice.

    With --live it starts the service with made-up stories, opens the front page with the studio
    beside it, and lets simulated visitors come: within a minute the policy has learned.
    """
    if live:
        _live(port, seed, browser, seconds)
        return
    from topstory.cli.output.consoles import stderr_console, stdout_console
    from topstory.cli.output.progress import work_bar
    from topstory.cli.output.replay_tables import print_replays
    from topstory.cli.output.warnings import printed_warnings
    from topstory.cli.reports.replay import replay_report
    from topstory.evaluation.assignment import ALL
    from topstory.evaluation.comparison import compare
    from topstory.evaluation.replays.truth import ExpectedPayoffs
    from topstory.events.simulator import TodayModule
    from topstory.extras import require

    require("features")
    console = stderr_console()
    with (
        work_bar(console, "simulating a log", events=True) as follow,
        printed_warnings(console) as warnings,
    ):
        world = TodayModule(seed, users=USERS)
        explored = world.random_log(max(1, events // 5), SEPTEMBER)
        log = world.random_log(events)
        found = compare(
            ALL,
            log,
            warm_from=explored,
            seed=seed,
            progress=follow,
            expected=ExpectedPayoffs.of(world.expected_payoffs(log), log),
            **PARAMETERS,
        )
    report = replay_report("simulated", found, warnings, "simulated exploration")
    if not json:
        stdout_console().print(f"\nA simulated log: {log!r}", soft_wrap=True)
    print_replays(report, json)
    if not json:
        console = stdout_console()
        console.print(f"\n{_advice(report)}", style="bold", soft_wrap=True)
        console.print(_truth(found), soft_wrap=True)


def _live(port: int, seed: int, browser: bool, seconds: float | None) -> None:
    import webbrowser

    from topstory.cli.output.consoles import print_line
    from topstory.extras import require

    require("serve")
    require("client")
    from topstory.serving.live.demo import live_demo

    live_demo(port, seed, print_line, webbrowser.open if browser else lambda address: None, seconds)


def _advice(report: "ReplayReport") -> str:
    """Which policy to run: the one with the highest total over both buckets."""
    from topstory.policies import REGISTRY

    # What has nothing to tune is a reference: random, omniscient.
    candidates = [p for p in report.policies if REGISTRY[p.policy].tuned is not None]
    best = max(candidates, key=lambda p: p.exploration.total_relative_ctr or 0.0)
    lift = best.deployment_lift
    if lift is None or lift.value is None or lift.simultaneous_interval is None:
        return "Too few clicks to recommend a policy: simulate more --events."
    low, high = lift.simultaneous_interval
    earned = (
        f"{lift.value:.1%} more than ε-greedy (simultaneous 95 % interval {low:+.1%} to "
        f"{high:+.1%}), over {best.deployment.trials:,} trials."
    )
    if not (lift.sure and lift.value > 0):
        return (
            f"No policy is significantly better than ε-greedy. The best, {best.paper}, "
            f"earned {earned}"
        )
    return f"Run {best.paper}: on this simulated log its deployment bucket earned {earned}"


def _truth(found: "Comparison") -> str:
    """What the simulator knows: the true relative CTR in deployment of each, the best first."""
    from statistics import fmean

    from topstory.policies import REGISTRY

    true = {
        name: fmean((run.true_relative_ctr or {})["deployment"] for run in runs)
        for name, runs in found.runs.items()
    }
    ordered = sorted(true, key=lambda name: -true[name])
    listed = ", ".join(f"{REGISTRY[name].paper} {true[name]:.2f}" for name in ordered)
    return f"The truth, which the simulator knows: {listed}."
