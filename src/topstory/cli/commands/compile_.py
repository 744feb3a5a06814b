"""`topstory compile`."""

from typing import Annotated

import typer


def compile_(
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME,…",
            help="Policies whose kernels to compile. Default: ucb, linucb-disjoint, linucb-hybrid.",
        ),
    ] = None,
    dimension: Annotated[
        int,
        typer.Option(
            metavar="D",
            help="Numbers in a context and in an article's features, the constant included.",
        ),
    ] = 6,
) -> None:
    """Compile kernels now, so that a first replay does not wait for them.

    Without this, the first replay of a policy compiles them, which takes some seconds, and keeps
    them on disk. Run it after an installation, or while an image is built.
    """
    from topstory.cli.arguments import parse_policies
    from topstory.cli.output.consoles import print_line
    from topstory.evaluation.replays.precompilation import POLICIES, compile_kernels

    names = list(parse_policies(policies or POLICIES, {}, seed=0))
    compile_kernels(
        *(names, dimension),
        progress=lambda name, seconds: print_line(f"{name}: compiled in {seconds:.1f} s"),
    )
