"""Better estimates more often."""

import math
from dataclasses import dataclass
from typing import ClassVar

from topstory.explorers.explorer import Explorer
from topstory.kernels.explorers.softmax import Heated


@dataclass(frozen=True)
class Softmax(Explorer):
    """Probabilities proportional to exp(estimate / temperature): Boltzmann exploration.

    The temperature is on the payoff's own scale: where articles differ by 0.01, one of 0.01 tells
    them apart, and one of 0.1 hardly does.

    >>> Softmax(0.1).probabilities([0.1, 0.2], [0.0, 0.0]).round(4)
    array([0.2689, 0.7311])
    """

    temperature: float = 0.01
    name: ClassVar[str] = "softmax"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            raise ValueError(f"temperature must be > 0, got {self.temperature!r}")
        object.__setattr__(self, "temperature", float(self.temperature))

    @property
    def rule(self) -> Heated:
        """The temperature."""
        return Heated(self.temperature)
