"""Doubly robust (Dudík, Langford and Li 2011): the model's payoffs, corrected by what was paid."""

from typing import ClassVar

import numpy as np

from topstory.evaluation.off_policy.estimators.fixed import FixedEstimator
from topstory.evaluation.off_policy.estimators.weighted_events import Terms, WeightedEvents


class Dr(FixedEstimator):
    """Right if the propensities are, or the model is. A good model takes noise away.

    >>> events = WeightedEvents(np.array([2.0]), np.array([1.0]), np.array([0.3]), np.array([0.4]))
    >>> Dr().terms(events).numerator
    array([1.5])
    """

    name: ClassVar[str] = "dr"
    models_payoffs: ClassVar[bool] = True

    def terms(self, events: WeightedEvents) -> Terms:
        """Σ_a π_a r̂_a + w (r − r̂), and 1."""
        corrected = events.direct + events.weight * (events.payoff - events.predicted)
        return Terms(corrected, np.ones(len(corrected)))
