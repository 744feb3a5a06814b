"""The highest click rate that the trials do not rule out."""

from dataclasses import dataclass
from typing import ClassVar

from topstory.explorers.log_upper_confidence import LogUpperConfidence
from topstory.kernels.explorers.counts import KL, Counts


@dataclass(frozen=True)
class KLUpperConfidence(LogUpperConfidence):
    """KL-UCB (Garivier and Cappé 2011): the largest q with n·kl(mean, q) ≤ α·ln t.

    kl is the divergence of two coins. At 3 % it is much tighter than UCB1's bound, which would do
    for payoffs anywhere between 0 and 1. For models that average clicks, whose width is 1/√n; a
    mean outside 0 … 1 counts as 0 or 1.

    >>> KLUpperConfidence().probabilities([0.1, 0.2], [0.5, 0.1], trials=99)
    array([1., 0.])
    """

    alpha: float = 1.0
    name: ClassVar[str] = "kl-upper-confidence"

    @property
    def rule(self) -> Counts:
        """α."""
        return Counts(KL, self.alpha, 0.0, 0.0)
