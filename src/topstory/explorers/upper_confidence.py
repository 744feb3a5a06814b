"""Optimism in the face of uncertainty."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from topstory.explorers.explorer import Explorer


@dataclass(frozen=True)
class UpperConfidence(Explorer):
    """The best estimate + α·width: an upper confidence bound (§2.2; Eq. (5) for linear models).

    >>> import numpy as np
    >>> UpperConfidence(0.5).scores(np.array([0.1, 0.2]), np.array([1.0, 0.0]))
    array([0.6, 0.2])
    """

    alpha: float = 0.3
    name: ClassVar[str] = "upper-confidence"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.alpha) and self.alpha >= 0):
            raise ValueError(f"alpha must be >= 0 (0 is greedy), got {self.alpha!r}")
        object.__setattr__(self, "alpha", float(self.alpha))  # a numpy number can't be stored

    @classmethod
    def of(cls, **parameters: Any) -> Self:
        """With an `alpha`, or with a `delta` that gives one."""
        given = {name: value for name, value in parameters.items() if value is not None}
        if "delta" not in given:
            return super().of(**given)
        if "alpha" in given:
            raise ValueError("give alpha or delta, not both: delta is turned into an alpha")
        return cls.from_delta(given["delta"])

    @classmethod
    def from_delta(cls, delta: float) -> Self:
        """The α whose bound holds with probability at least 1 − δ: 1 + √(ln(2/δ)/2), Eq. (4).

        >>> round(UpperConfidence.from_delta(0.05).alpha, 4)
        2.3581
        """
        if not 0 < delta < 1:
            raise ValueError(f"delta must be between 0 and 1, got {delta!r}")
        return cls(1.0 + math.sqrt(math.log(2.0 / delta) / 2.0))

    @property
    def bonus(self) -> float:
        """α."""
        return self.alpha
