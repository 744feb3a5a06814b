"""Draw a score for every article, and take the best."""

import math
from dataclasses import dataclass
from typing import ClassVar

from topstory.explorers.explorer import Explorer
from topstory.kernels.explorers.sampling import Sampled


@dataclass(frozen=True)
class Thompson(Explorer):
    """Thompson sampling: each score is drawn from N(estimate, (α·width)²), and the highest wins.

    An article of which nothing is known comes first. Probabilities are exact to 1e-9.

    Args:
        alpha: how many widths a standard deviation is; 0 is greedy.
        optimistic: a draw below the estimate counts as the estimate (May et al. 2012).

    >>> Thompson(0.5).probabilities([0.1, 0.2], [0.2, 0.2]).round(4)
    array([0.2398, 0.7602])
    """

    alpha: float = 0.3
    optimistic: bool = False
    name: ClassVar[str] = "thompson"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.alpha) and self.alpha >= 0):
            raise ValueError(f"alpha must be >= 0 (0 is greedy), got {self.alpha!r}")
        object.__setattr__(self, "alpha", float(self.alpha))  # a numpy number can't be stored
        object.__setattr__(self, "optimistic", bool(self.optimistic))

    @property
    def rule(self) -> Sampled:
        """α, and whether it is optimistic."""
        return Sampled(self.alpha, self.optimistic)
