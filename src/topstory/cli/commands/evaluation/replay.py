"""`topstory replay`."""

from typing import Annotated

import typer

from topstory.cli.arguments import (
    AsJson,
    LearningShare,
    LogFolder,
    PriorFile,
    Repeats,
    Save,
    WarmFrom,
)
from topstory.cli.policy_options import TUNABLE, with_policy_numbers
from topstory.policies.entries import Setting
from topstory.policies.registry import REGISTRY


@with_policy_numbers
def replay(
    log: LogFolder,
    policy: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help=f"Which policy: {', '.join(REGISTRY)}, or all: the paper's twelve. Several are "
            "separated by commas, or the option is repeated.",
        ),
    ],
    size: Annotated[
        float,
        typer.Option(metavar="S", help="Share of retained events to learn from."),
    ] = 1.0,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Random seed. The same seed gives the same result.")
    ] = 0,
    repeats: Repeats = None,
    learning_share: LearningShare = 0.1,
    warm_from: WarmFrom = None,
    prior: PriorFile = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|logged",
            help="What lifts are over: a policy, which is replayed too; or logged, what the log "
            "shows, whoever chose it. Default: egreedy, if it is among the policies.",
        ),
    ] = None,
    save: Save = None,
    estimator: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="rejection: make a log that is not uniform so, by leaving out events. dr-ns: use "
            "every event of such a log, weighted by its propensity.",
        ),
    ] = "rejection",
    quantile: Annotated[
        float,
        typer.Option(
            metavar="Q",
            help="dr-ns: beside the unbiased result, show one with longer histories: a share Q of "
            "events may be taken less often than they should.",
        ),
    ] = 0.05,
    delay: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="How late payoffs come: seconds, or a number and s, min, h or d, such as 10min.",
        ),
    ] = "0",
    batch: Annotated[
        int, typer.Option(metavar="N", help="Learn every N events, from all that is known then.")
    ] = 1,
    json: AsJson = False,
    **numbers: Setting | None,
) -> None:
    """Estimate what a policy would have earned on a log of randomly shown articles (Algorithm 3).

    The deployment bucket is served greedily; the learning bucket explores, and is learned from.
    Each CTR is a mean over several seeds, since luck decides what a policy learns first, and comes
    with its 95 % interval: it covers the clicks of this log and the learning path, not other days.
    A relative CTR is divided by the random policy's CTR.

    Several policies are compared in one table; each takes the parameters that apply to it. If the
    log's articles were not shown uniformly at random, a warning is printed.

    With --estimator dr-ns the log may be any whose propensities are known: every event counts, and
    one that fits joins what the policy learns from (Dudík et al. 2012).
    """
    # Imported here: these need compiled kernels, and --help does not.
    import topstory as ts
    from topstory.cli.arguments import check_exploration_options, parse_policies
    from topstory.cli.output.consoles import stderr_console
    from topstory.cli.output.progress import work_bar
    from topstory.cli.output.replay_tables import print_replays
    from topstory.cli.output.saving import save_trained
    from topstory.cli.output.warnings import printed_warnings, warn_if_no_features
    from topstory.cli.reports.replay import replay_report
    from topstory.evaluation.assignment import unused_parameters
    from topstory.evaluation.comparison import LOGGED
    from topstory.evaluation.replays.delay import parse_duration
    from topstory.evaluation.replays.run import TOTAL

    policies = parse_policies(policy, numbers, seed)
    try:
        parse_duration("--delay", delay)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--delay") from None
    if batch < 1:
        raise typer.BadParameter(f"must be at least 1, got {batch}", param_hint="--batch")
    if estimator == "dr-ns":
        if (delay, batch) != ("0", 1):
            raise typer.BadParameter("dr-ns knows of no delays", param_hint="--estimator")
        _replay_by_dr_ns(log, policies, quantile, seed, json)
        return
    if estimator != "rejection":
        raise typer.BadParameter(
            f"expected rejection or dr-ns, got {estimator!r}", param_hint="--estimator"
        )
    check_exploration_options(policies, warm_from, prior)
    if save is not None and not any(name in TUNABLE for name in policies):
        raise typer.BadParameter("none of the policies learns", param_hint="--save")
    if baseline not in (None, LOGGED, *REGISTRY):
        raise typer.BadParameter(
            f"no policy is called {baseline!r}; choose logged, {', '.join(REGISTRY)}",
            param_hint="--baseline",
        )
    explored = None if warm_from is None else ts.EventLog.read(warm_from)
    events = ts.EventLog.read(log)
    console = stderr_console()
    warn_if_no_features(log, policies, console)
    with (
        work_bar(console, "getting ready", events=True) as follow,
        printed_warnings(console) as warnings,
    ):
        found = ts.compare(
            policies,
            events,
            warm_from=explored,
            prior=None if prior is None else ts.Prior.load(prior),
            size=size,
            seed=seed,
            repeats=repeats,
            learning_share=learning_share,
            progress=follow,
            expected=None,  # of a real log nobody knows them
            baseline=baseline,
            delay=delay,
            batch=batch,
            **numbers,
        )
    source = None if warm_from is None else str(warm_from)
    saved = None
    if save is not None:
        best = max(
            (name for name in found.runs if name in TUNABLE),
            key=lambda name: found.earned(name, TOTAL).value,
        )
        own = {key: value for key, value in numbers.items() if value is not None}
        own = {key: value for key, value in own.items() if not unused_parameters([best], [key])}
        learned = {} if found.warm is None else found.warm.argument(best)
        saved = save_trained(save, best, own, found.log, learned, seed)
    print_replays(replay_report(str(log), found, warnings, source, saved), json)


def _replay_by_dr_ns(
    log: str, policies: dict[str, dict[str, Setting]], quantile: float, seed: int, json: bool
) -> None:
    import topstory as ts
    from topstory.cli.output.consoles import print_json, stderr_console, stdout_console
    from topstory.cli.output.learning_table import show_learning
    from topstory.cli.output.progress import work_bar
    from topstory.cli.output.warnings import printed_warnings
    from topstory.cli.reports.dr_ns import learning_report
    from topstory.evaluation.replays.warm_start import needs_exploration

    for name in policies:
        if needs_exploration([name]):
            raise typer.BadParameter(f"dr-ns cannot run {name}", param_hint="--policy")
    events = ts.EventLog.read(log)
    console = stderr_console()
    found = []
    with printed_warnings(console) as warnings, work_bar(console, "reading", events=True) as follow:
        for name, own in policies.items():
            for share in dict.fromkeys((0.0, quantile)):
                made = ts.policy(name, seed=seed, **own)
                run = ts.dr_ns(made, events, quantile=share, seed=seed, progress=follow)
                found.append((name, run))
    report = learning_report(str(log), found, events.ctr, warnings)
    if json:
        print_json(report)
    else:
        show_learning(report, stdout_console())
