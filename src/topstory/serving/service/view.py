"""The state as a front end sees it: what it scores from, and the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from topstory.serving.state.decider import Decider


@dataclass(slots=True)
class VisibleState:
    """The state at one record."""

    number: int  # the last record that was applied
    deciders: Mapping[str, Decider]  # by pool


class View(Protocol):
    """The newest state that a front end can see."""

    def latest(self) -> VisibleState:
        """The newest state."""
        ...

    def now(self) -> int:
        """The journal's time."""
        ...
