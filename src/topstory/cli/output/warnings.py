"""Warnings, loud and once, on standard error: of a log not uniform, or without features."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from topstory.cli.exploring import Source
from topstory.cli.output.tables import show_warning
from topstory.evaluation import NotUniformWarning
from topstory.policies import REGISTRY


@contextmanager
def told_once(console: Console, *others: type[Warning]) -> Iterator[list[str]]:
    """Show the warning that a log is not uniform, or another, once it comes; all that came."""
    told: list[str] = []

    def tell(message: Warning | str, category: type[Warning], *place: object) -> None:
        if str(message) not in told:
            told.append(str(message))
            title = "not uniform" if issubclass(category, NotUniformWarning) else "take care"
            show_warning(str(message), console, title)

    with warnings.catch_warnings():
        told_of: tuple[type[Warning], ...] = (NotUniformWarning, *others)
        for each in told_of:
            warnings.simplefilter("always", each)
        # Ignored: its stub asks for every parameter by name; warnings passes them by place.
        warnings.showwarning = tell  # type: ignore[assignment]
        yield told


def warn_of_constant(source: Source, policy: str, console: Console) -> None:
    """Say that a policy which looks at the user will see nothing, if that is so."""
    if source.log.dimension > 1 or not REGISTRY[policy].contextual:
        return
    message = (
        f"{source.name}: contexts are the constant alone, so {policy} knows nothing of the user"
    )
    if source.log.profiles is not None:
        message += (
            "; make features of its raw profiles first: topstory features fit, then topstory "
            "features apply"
        )
    else:
        message += "; give a log with contexts, or take egreedy or ucb"
    show_warning(message, console, "no features")
