"""Inverse propensity scoring (Horvitz and Thompson 1952): Σ w r / n."""

from typing import ClassVar

import numpy as np

from topstory.evaluation.off_policy.estimators.fixed import FixedEstimator
from topstory.evaluation.off_policy.estimators.weighted_events import Terms, WeightedEvents


class Ips(FixedEstimator):
    """Unbiased if propensities are right; a few large weights may decide alone.

    >>> none = np.zeros(0)
    >>> terms = Ips().terms(WeightedEvents(np.array([2.0, 0.0]), np.array([1.0, 1.0]), none, none))
    >>> float(terms.numerator.sum() / terms.denominator.sum())
    1.0
    """

    name: ClassVar[str] = "ips"
    models_payoffs: ClassVar[bool] = False

    def terms(self, events: WeightedEvents) -> Terms:
        """W r, and 1."""
        return Terms(events.weight * events.payoff, np.ones(len(events.weight)))
