"""Self-normalised inverse propensity scoring (Swaminathan and Joachims 2015): Σ w r / Σ w."""

from typing import ClassVar

from topstory.evaluation.off_policy.estimators.fixed import FixedEstimator
from topstory.evaluation.off_policy.estimators.weighted_events import Terms, WeightedEvents


class Snips(FixedEstimator):
    """A mean of payoffs, so never outside their range; on a uniform log, pool-weighted replay.

    >>> import numpy as np
    >>> none = np.zeros(0)
    >>> events = WeightedEvents(np.array([2.0, 0.5]), np.array([1.0, 0.0]), none, none)
    >>> terms = Snips().terms(events)
    >>> float(terms.numerator.sum() / terms.denominator.sum())
    0.8
    """

    name: ClassVar[str] = "snips"
    models_payoffs: ClassVar[bool] = False

    def terms(self, events: WeightedEvents) -> Terms:
        """W r, and w."""
        return Terms(events.weight * events.payoff, events.weight)
