"""Exploit only."""

from dataclasses import dataclass
from typing import ClassVar

from topstory.explorers.explorer import Explorer


@dataclass(frozen=True)
class Greedy(Explorer):
    """Always the best estimate: how the deployment bucket is served (§5.4).

    >>> Greedy().scores([0.1, 0.2], [9.0, 0.0])
    array([0.1, 0.2])
    """

    name: ClassVar[str] = "greedy"
