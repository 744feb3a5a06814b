"""Draw a click rate for every article, and take the best."""

import math
from dataclasses import dataclass
from typing import ClassVar

from topstory.explorers.explorer import Explorer
from topstory.kernels.explorers.counts import BETA, Counts


@dataclass(frozen=True)
class BetaThompson(Explorer):
    """Thompson sampling of click rates: a draw from Beta(clicks + 1, others + 1) for each article.

    For models that average clicks, whose width is 1/√n. Payoffs are taken to be from 0 to 1: a mean
    outside counts as 0 or 1. Probabilities are exact to 1e-9.

    Args:
        alpha: below 1 it draws as if every trial had counted 1/α² times (Chapelle and Li 2011); 0
            is greedy.
        successes: clicks that an article counts as having before its first trial. With a learned
            prior, which counts as trials already, give 0 and 0.
        failures: the same for trials without a click.

    >>> BetaThompson().probabilities([0.1, 0.2], [0.1, 0.1]).round(4)
    array([0.0248, 0.9752])
    """

    alpha: float = 1.0
    successes: float = 1.0
    failures: float = 1.0
    name: ClassVar[str] = "beta-thompson"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.alpha) and self.alpha >= 0):
            raise ValueError(f"alpha must be >= 0 (0 is greedy), got {self.alpha!r}")
        for name in ("successes", "failures"):
            if not 0 <= getattr(self, name) <= 1e6:
                raise ValueError(f"{name} must be from 0 to 1e6, got {getattr(self, name)!r}")
        for name in ("alpha", "successes", "failures"):
            object.__setattr__(self, name, float(getattr(self, name)))  # no numpy number is stored

    @property
    def rule(self) -> Counts:
        """α, and what is counted beforehand."""
        return Counts(BETA, self.alpha, self.successes, self.failures)
