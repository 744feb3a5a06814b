"""The warning that a log is not uniform: loud, once, on standard error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from topstory.cli.tables import show_warning
from topstory.evaluation import NotUniformWarning


@contextmanager
def told_once(console: Console) -> Iterator[list[str]]:
    """Show the warning that a log is not uniform when it first comes; all that came."""
    told: list[str] = []

    def tell(message: Warning | str, category: type[Warning], *place: object) -> None:
        if str(message) not in told:
            told.append(str(message))
            show_warning(str(message), console)

    with warnings.catch_warnings():
        warnings.simplefilter("always", NotUniformWarning)
        # Ignored: its stub asks for every parameter by name; warnings passes them by place.
        warnings.showwarning = tell  # type: ignore[assignment]
        yield told
