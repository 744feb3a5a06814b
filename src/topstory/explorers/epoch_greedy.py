"""Explore in a schedule: one random draw, then a run of the best."""

from dataclasses import dataclass
from typing import ClassVar

from topstory.explorers.explorer import Explorer
from topstory.kernels.explorers.bounds import Bounds


@dataclass(frozen=True)
class EpochGreedy(Explorer):
    """Epoch-greedy (Langford and Zhang 2007): epochs of one uniform draw and ever longer greed.

    After t trials about epochs·t^⅔ of them were drawn at random. Which ones is not random, so
    propensities are 1/K or 0 and 1. Learns from all trials: the original from the draws alone,
    which its proof needs and its payoff does not.

    >>> explorer = EpochGreedy()
    >>> [float(explorer.probabilities([0.1, 0.2], [0, 0], t)[1]) for t in range(6)]
    [0.5, 1.0, 0.5, 1.0, 1.0, 0.5]
    """

    epochs: float = 1.0
    name: ClassVar[str] = "epoch-greedy"

    def __post_init__(self) -> None:
        if not 0 < self.epochs <= 100:
            raise ValueError(f"epochs must be above 0 and at most 100, got {self.epochs!r}")
        object.__setattr__(self, "epochs", float(self.epochs))  # a numpy number can't be stored

    @property
    def share(self) -> float:
        """1: its first trial is a uniform draw."""
        return 1.0

    @property
    def rule(self) -> Bounds:
        """How often it draws."""
        return Bounds(0.0, 0.0, 0.0, self.epochs)
