"""Warnings on standard error, each printed once."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console

from topstory.cli.output.consoles import print_warning
from topstory.evaluation import (
    EstimatedPropensityWarning,
    NotUniformWarning,
    RetentionWarning,
)
from topstory.events.folder.contents import read_contents
from topstory.events.folder.location import location
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


def warn_if_no_features(log: str, policies: Iterable[str], console: Console) -> None:
    """Warn if a policy uses user features and the log's contexts have none."""
    contents = read_contents(location(log))
    blind = [name for name in policies if REGISTRY[name].contextual]
    if contents.dimension > 1 or not blind:
        return
    know = "knows" if len(blind) == 1 else "know"
    message = (
        f"{log}: contexts hold only the constant, so {', '.join(blind)} {know} nothing about the "
        "user"
    )
    if contents.user_profile is not None:
        message += f"; {_MAKE_FEATURES}, or `train --features`"
    else:
        message += "; use a log with contexts, or the policies egreedy or ucb"
    print_warning(message, console, "no features")


def warn_if_raw(log: str, console: Console) -> None:
    """Warn if raw profiles of a log are left aside, since no features were made of them."""
    contents = read_contents(location(log))
    if contents.dimension == 1 and contents.user_profile is not None:
        message = (
            f"{log}: contexts hold only the constant, so no policy that knows the user is "
            f"compared; {_MAKE_FEATURES}"
        )
        print_warning(message, console, "no features")


_MAKE_FEATURES = (
    "first make features from its raw profiles with `topstory features fit` and `topstory "
    "features apply`"
)
