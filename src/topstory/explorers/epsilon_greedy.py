"""Exploit mostly, and draw at random now and then."""

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Literal, Self

from topstory.explorers.explorer import Explorer
from topstory.kernels.explorers.bounds import Bounds

DECAY: Literal["decay"] = "decay"


@dataclass(frozen=True)
class EpsilonGreedy(Explorer):
    """The best estimate with probability 1 − ε, a uniform draw with probability ε (§2.2).

    With `epsilon="decay"` it explores less as it learns: ε = min(1, decay·(K/t)^⅓) with K articles
    at the t-th trial, the rate of the epoch-greedy algorithm (Langford and Zhang 2007).

    >>> EpsilonGreedy(0.1).share
    0.1
    >>> EpsilonGreedy("decay").probabilities([0.1, 0.2], [0, 0], trials=1_999).round(3)
    array([0.05, 0.95])
    """

    epsilon: float | Literal["decay"] = 0.1
    decay: float = field(default=1.0, repr=False)
    name: ClassVar[str] = "epsilon-greedy"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.decay) and self.decay > 0):
            raise ValueError(f"decay must be > 0, got {self.decay!r}")
        object.__setattr__(self, "decay", float(self.decay))
        if self.epsilon == DECAY:
            return
        if not (isinstance(self.epsilon, Real) and 0 <= self.epsilon <= 1):
            raise ValueError(
                "epsilon must be between 0 (greedy) and 1 (random), or 'decay', "
                f"got {self.epsilon!r}"
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))  # a numpy number can't be stored

    @classmethod
    def of(cls, **parameters: Any) -> Self:
        """With an `epsilon`, or with a `decay` that makes it fall."""
        given = {name: value for name, value in parameters.items() if value is not None}
        if "decay" not in given:
            return super().of(**given)
        if given.get("epsilon", DECAY) != DECAY:
            raise ValueError("give epsilon or decay, not both: with a decay ε falls by itself")
        return cls(DECAY, given["decay"])

    @property
    def share(self) -> float:
        """ε, or its value at the first trial, which is a uniform draw."""
        return 1.0 if isinstance(self.epsilon, str) else self.epsilon

    @property
    def rule(self) -> Bounds:
        """ε, or how it decays."""
        decays = self.epsilon == DECAY
        return Bounds(0.0, 0.0 if decays else self.share, self.decay if decays else 0.0)

    def parameters(self) -> dict[str, Any]:
        """ε; and `decay` only if it matters."""
        if self.epsilon == DECAY:
            return {"epsilon": DECAY, "decay": self.decay}
        return {"epsilon": self.epsilon}
