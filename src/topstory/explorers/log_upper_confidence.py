"""A bound that grows with the trials of all articles."""

import math
from dataclasses import dataclass
from typing import ClassVar

from topstory.explorers.explorer import Explorer
from topstory.kernels.explorers.counts import UCB1, Counts


@dataclass(frozen=True)
class LogUpperConfidence(Explorer):
    """UCB1 (Auer, Cesa-Bianchi and Fischer 2002): the best estimate + α·√(ln t)·width.

    t counts the trials of all articles, so that one that was given up is tried again some day. The
    paper's ucb leaves ln t out. With α = √2, the default, regret grows as ln t.

    >>> LogUpperConfidence().probabilities([0.1, 0.2], [0.5, 0.1], trials=99)
    array([1., 0.])
    """

    alpha: float = math.sqrt(2.0)
    name: ClassVar[str] = "log-upper-confidence"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.alpha) and self.alpha >= 0):
            raise ValueError(f"alpha must be >= 0 (0 is greedy), got {self.alpha!r}")
        object.__setattr__(self, "alpha", float(self.alpha))  # a numpy number can't be stored

    @property
    def rule(self) -> Counts:
        """α."""
        return Counts(UCB1, self.alpha, 0.0, 0.0)
