"""Warnings on standard error, each printed once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from topstory.cli.output.consoles import print_warning
from topstory.evaluation import (
    EstimatedPropensityWarning,
    NotUniformWarning,
    RetentionWarning,
)
from topstory.events import EventLog
from topstory.policies import REGISTRY

TITLES: dict[type[Warning], str] = {
    EstimatedPropensityWarning: "estimated",
    NotUniformWarning: "not uniform",
    RetentionWarning: "retention",
}


@contextmanager
def printed_warnings(console: Console, *others: type[Warning]) -> Iterator[list[str]]:
    """Print each warning of a replay, and others named, as it comes; yields their texts.

    A text that comes again is not printed again.
    """
    printed: list[str] = []

    def show(message: Warning | str, category: type[Warning], *place: object) -> None:
        if str(message) not in printed:
            printed.append(str(message))
            print_warning(str(message), console, TITLES.get(category, "warning"))

    with warnings.catch_warnings():
        for each in (*TITLES, *others):
            warnings.simplefilter("always", each)
        # Ignored: its stub asks for every parameter by name; warnings passes them by place.
        warnings.showwarning = show  # type: ignore[assignment]
        yield printed


def warn_if_no_features(name: str, log: EventLog, policy: str, console: Console) -> None:
    """Warn if a policy uses user features and the log's contexts have none."""
    if log.dimension > 1 or not REGISTRY[policy].contextual:
        return
    message = f"{name}: contexts hold only the constant, so {policy} knows nothing about the user"
    if log.profiles is not None:
        message += (
            "; first make features from its raw profiles with `topstory features fit` and "
            "`topstory features apply`"
        )
    else:
        message += "; use a log with contexts, or the policies egreedy or ucb"
    print_warning(message, console, "no features")
