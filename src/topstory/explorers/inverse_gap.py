"""The closer to the best, the more often."""

import math
from dataclasses import dataclass
from typing import ClassVar

from topstory.explorers.explorer import Explorer
from topstory.kernels.explorers.inverse_gap import Gaps


@dataclass(frozen=True)
class InverseGap(Explorer):
    """SquareCB's inverse-gap weighting (Foster and Rakhlin 2020).

    With K articles and γ = c·√(trials + 1), an article whose estimate is a gap below the best
    has probability 1/(K + γ·gap), and the best has the rest. Gaps are on the payoff's scale: with
    20 articles and gaps of 0.01 it takes a γ of some 17,000 to be greedy in nine of ten.

    Args:
        c: how fast γ grows; higher is greedier.
        floor: the share that is spread evenly over the pool.

    >>> InverseGap(c=100).probabilities([0.1, 0.2], [0.0, 0.0]).round(4)
    array([0.0833, 0.9167])
    """

    c: float = 1000.0
    floor: float = 0.0
    name: ClassVar[str] = "inverse-gap"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.c) and self.c >= 0):
            raise ValueError(f"c must be >= 0 (0 is random), got {self.c!r}")
        if not 0 <= self.floor <= 1:
            raise ValueError(f"floor must be between 0 and 1 (random), got {self.floor!r}")
        object.__setattr__(self, "c", float(self.c))
        object.__setattr__(self, "floor", float(self.floor))

    @property
    def rule(self) -> Gaps:
        """c, and the floor."""
        return Gaps(self.c, self.floor)
