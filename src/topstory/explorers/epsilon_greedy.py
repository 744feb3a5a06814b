"""Exploit mostly, and draw at random now and then."""

from dataclasses import dataclass
from typing import ClassVar

from topstory.explorers.explorer import Explorer


@dataclass(frozen=True)
class EpsilonGreedy(Explorer):
    """The best estimate with probability 1 − ε, a uniform draw with probability ε (§2.2).

    >>> EpsilonGreedy(0.1).share
    0.1
    """

    epsilon: float = 0.1
    name: ClassVar[str] = "epsilon-greedy"

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise ValueError(
                f"epsilon must be between 0 (greedy) and 1 (random), got {self.epsilon!r}"
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))  # a numpy number can't be stored

    @property
    def share(self) -> float:
        """ε."""
        return self.epsilon
