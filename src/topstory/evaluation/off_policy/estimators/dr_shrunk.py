"""Doubly robust with optimistic shrinkage (Su et al. 2020): w becomes λw/(w² + λ)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from topstory.evaluation.off_policy.estimators.replaced_weights import candidates, least_noisy
from topstory.evaluation.off_policy.estimators.weighted_events import Terms, WeightedEvents
from topstory.kernels.compilation import Floats


@dataclass(frozen=True)
class DrShrunk:
    """Small weights stay as they are, large ones shrink: a weight of √λ is halved.

    >>> events = WeightedEvents(np.array([2.0]), np.ones(1), np.zeros(1), np.zeros(1))
    >>> DrShrunk(4.0).terms(events).numerator
    array([1.])
    """

    strength: float = float("inf")
    name: ClassVar[str] = "dr-shrunk"
    models_payoffs: ClassVar[bool] = True
    biased: ClassVar[bool] = True

    @property
    def parameter(self) -> float | None:
        """λ."""
        return self.strength

    def fitted(self, events: WeightedEvents) -> DrShrunk:
        """With the smallest λ that the log does not contradict: the square of some weight."""
        squares = [weight**2 for weight in candidates(events.weight)]
        return DrShrunk(least_noisy(events, squares, _shrunk))

    def terms(self, events: WeightedEvents) -> Terms:
        """Σ_a π_a r̂_a + ŵ (r − r̂), and 1."""
        rest = _shrunk(self.strength, events.weight) * (events.payoff - events.predicted)
        return Terms(events.direct + rest, np.ones(len(rest)))


def _shrunk(strength: float, weight: Floats) -> Floats:
    if strength == float("inf"):
        return weight
    total = weight**2 + strength
    return np.divide(strength * weight, total, out=np.zeros_like(weight), where=total > 0)
