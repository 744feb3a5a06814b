"""SWITCH (Wang, Agarwal and Dudík 2017): no correction where the weight is above τ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from topstory.evaluation.off_policy.estimators.replaced_weights import candidates, least_noisy
from topstory.evaluation.off_policy.estimators.weighted_events import Terms, WeightedEvents
from topstory.kernels.compilation import Floats


@dataclass(frozen=True)
class Switch:
    """Doubly robust up to the weight τ, the model alone above it.

    >>> events = WeightedEvents(np.array([2.0, 9.0]), np.ones(2), np.zeros(2), np.zeros(2))
    >>> Switch(5.0).terms(events).numerator
    array([2., 0.])
    """

    threshold: float = float("inf")
    name: ClassVar[str] = "switch"
    models_payoffs: ClassVar[bool] = True
    biased: ClassVar[bool] = True

    @property
    def parameter(self) -> float | None:
        """τ."""
        return self.threshold

    def fitted(self, events: WeightedEvents) -> Switch:
        """With the smallest τ that the log does not contradict."""
        return Switch(least_noisy(events, candidates(events.weight), _cut))

    def terms(self, events: WeightedEvents) -> Terms:
        """Σ_a π_a r̂_a + w (r − r̂) where w ≤ τ, and 1."""
        rest = _cut(self.threshold, events.weight) * (events.payoff - events.predicted)
        return Terms(events.direct + rest, np.ones(len(rest)))


def _cut(threshold: float, weight: Floats) -> Floats:
    return np.where(weight <= threshold, weight, 0.0)
