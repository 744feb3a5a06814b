"""The state as a front end sees it: what it scores from, and the time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from topstory.serving.state.decider import Decider

T = TypeVar("T")


@dataclass(slots=True)
class VisibleState:
    """The state at one record."""

    number: int  # the last record that was applied
    deciders: Mapping[str, Decider]  # by pool
    editions: Mapping[str, int]  # by pool: the last record that changed its articles


class View(Protocol):
    """The newest state that a front end can see."""

    def read(self, work: Callable[[VisibleState], T]) -> T:
        """Do some work with the newest state, and again if it was overwritten meanwhile."""
        ...

    def now(self) -> int:
        """The journal's time."""
        ...
