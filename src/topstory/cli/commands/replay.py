"""`topstory replay`."""

from pathlib import Path
from typing import Annotated

import typer

from topstory.cli.policy_options import with_policy_numbers
from topstory.policies.registry import REGISTRY


@with_policy_numbers
def replay(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log's folder.")],
    policy: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help=f"Which policy: {', '.join(REGISTRY)}, or all of them. Several are separated by "
            "commas, or the option is repeated.",
        ),
    ],
    size: Annotated[
        float,
        typer.Option(metavar="S", help="The share of retained events that are learned from."),
    ] = 1.0,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed, the same result.")] = 0,
    warm_from: Annotated[
        Path | None,
        typer.Option(
            metavar="LOG2",
            help="warm: the log of random exploration that user-specific offsets are fitted on. "
            "By default it is LOG's first tenth, and every policy is replayed on the rest.",
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of a table.")
    ] = False,
    **numbers: float | None,
) -> None:
    """What a policy would have earned on a log of randomly shown articles (Algorithm 3).

    The deployment bucket is served greedily; the learning bucket explores, and is learned from.
    Each CTR comes with its 95 % interval; a relative CTR is divided by the random policy's.

    Several policies are compared in one table; each takes those of the parameters that it knows.
    A log whose articles were not shown uniformly at random is replayed under a loud warning.
    """
    # Imported here: these need compiled kernels, and --help does not.
    import topstory as ts
    from topstory.cli.choosing import chosen, meaningless, warm
    from topstory.cli.comparison import compare
    from topstory.cli.exploring import Source
    from topstory.cli.output.printing import print_report

    asked = chosen(policy, numbers, seed)
    if warm_from is not None and not any(warm(name) for name in asked):
        raise meaningless("--warm-from", asked)
    explored = None
    if warm_from is not None:
        explored = Source(str(warm_from), ts.EventLog.read(warm_from))
    source = Source(str(log), ts.EventLog.read(log))
    print_report(compare(source, asked, warm_from=explored, size=size, seed=seed), json)
