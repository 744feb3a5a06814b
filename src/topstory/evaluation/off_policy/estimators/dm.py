"""The direct method: what a model of payoffs expects of the policy. It ignores propensities."""

from typing import ClassVar

import numpy as np

from topstory.evaluation.off_policy.estimators.fixed import FixedEstimator
from topstory.evaluation.off_policy.estimators.weighted_events import Terms, WeightedEvents


class Dm(FixedEstimator):
    """Little noise, but as wrong as its model is.

    >>> events = WeightedEvents(np.ones(2), np.ones(2), np.array([0.2, 0.4]), np.zeros(2))
    >>> Dm().terms(events).numerator
    array([0.2, 0.4])
    """

    name: ClassVar[str] = "dm"
    models_payoffs: ClassVar[bool] = True
    biased: ClassVar[bool] = True

    def terms(self, events: WeightedEvents) -> Terms:
        """Σ_a π_a r̂_a, and 1."""
        return Terms(events.direct, np.ones(len(events.direct)))
