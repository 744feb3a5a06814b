"""`topstory train`."""

from pathlib import Path
from typing import Annotated

import typer

from topstory.cli.arguments import (
    Address,
    AsJson,
    LogFolder,
    PriorFile,
    Seed,
    WarmFrom,
)
from topstory.cli.policy_options import TUNABLE, PolicyToTrain, with_policy_numbers
from topstory.policies.entries import Setting


@with_policy_numbers
def train(
    log: LogFolder,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="File for the trained policy (safetensors).")
    ],
    policy: PolicyToTrain = None,
    features: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Feature model that makes contexts of the log's raw profiles, as `topstory "
            "features apply` does.",
        ),
    ] = None,
    weights: Annotated[
        str,
        typer.Option(
            metavar="WHICH",
            help="none, or propensity: events count 1/(pool size × propensity) times, at most 10. "
            "Linear models need none; averages do where the log is not uniform.",
        ),
    ] = "none",
    held_out: Annotated[
        float,
        typer.Option(
            metavar="S",
            help="Share of the events, at the end of the log, that the policy is judged on before "
            "it learns them; 0: none.",
        ),
    ] = 0.1,
    refit: Annotated[
        bool,
        typer.Option(
            "--refit/--no-refit",
            help="Learn the held-out events as well, once they have judged the policy; or leave "
            "them out.",
        ),
    ] = True,
    warm_from: WarmFrom = None,
    prior: PriorFile = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Sum parts of the log on serial, local (all cores) or ray, and add the sums up: "
            "the same policy to 1e-9. Default: learn event by event; by sums where a hybrid "
            "policy has many features.",
        ),
    ] = None,
    address: Address = None,
    seed: Seed = 0,
    json: AsJson = False,
    **numbers: Setting | None,
) -> None:
    """Train a policy on every event of a log, and write it to a file for the service to start from.

    Replay learns only where the policy agrees with the log. Here every event is learned from: what
    a user pays for an article does not depend on why it was shown. How good the policy is shows on
    the last part of the log, which it has not seen then. LOG is read file by file, so it may be
    larger than memory.
    """
    import topstory as ts
    from topstory.cli.arguments import check_exploration_options, parse_policies
    from topstory.cli.output.consoles import print_json, stderr_console, stdout_console
    from topstory.cli.output.progress import work_bar
    from topstory.cli.output.training_table import show_training
    from topstory.cli.output.warnings import printed_warnings, warn_if_no_features
    from topstory.cli.reports.train import train_report
    from topstory.engines import engine as named_engine
    from topstory.evaluation.replays.warm_start import default_policy, needs_exploration, start_of

    builder = None if features is None else ts.FeatureBuilder.load(features)
    if policy is None:
        seen = ts.EventLog.read(log)
        seen = seen if builder is None else builder.apply(seen)
        policy = default_policy(seen, numbers["ridge"])
    (name, own), *others = parse_policies([policy], numbers, seed).items()
    if others or name not in TUNABLE:
        raise typer.BadParameter(
            f"train one policy that learns: {', '.join(TUNABLE)}", param_hint="--policy"
        )
    check_exploration_options([name], warm_from, prior)
    source: str | ts.EventLog = log
    known = None if prior is None else ts.Prior.load(prior)
    given = {} if known is None else {"prior": known}
    if needs_exploration([name], known):
        whole = ts.EventLog.read(log)
        whole = whole if builder is None else builder.apply(whole)
        explored = None if warm_from is None else ts.EventLog.read(warm_from)
        start = start_of([name], whole, explored)
        assert start is not None
        source, builder, given = start.log, None, start.argument(name)
    console = stderr_console()
    if features is None:
        warn_if_no_features(log, [name], console)
    with printed_warnings(console), work_bar(console, "reading", events=True) as follow:
        training = ts.train(
            ts.policy(name, seed=seed, **own, **given),
            source,
            weights=weights,
            held_out=held_out,
            refit=refit,
            features=builder,
            engine=None if engine is None else named_engine(engine, address=address),
            seed=seed,
            progress=follow,
        )
    training.policy.save(out)
    model = None if features is None else str(features)
    report = train_report(str(log), str(out), name, weights, training, model)
    if json:
        print_json(report)
    else:
        show_training(report, stdout_console())
