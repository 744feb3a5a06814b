"""Doubly robust with smaller weights, and the rule by which the log decides how much smaller.

Replacing w by ŵ ≤ w takes noise away, and adds a bias that nobody sees. The rule is SLOPE (Su,
Srinath and Krishnamurthy 2020): from no replacement on, ever more is replaced as long as the value
stays within two standard errors of every value before it. So the bias is no larger than the noise
that it saves. Candidates are quantiles of the weights that are not 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from topstory.evaluation.off_policy.estimators.weighted_events import WeightedEvents
from topstory.kernels.compilation import Floats

SHARES = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
ERRORS = 2.0


def candidates(weight: Floats) -> list[float]:
    """Infinity, then the weights at those shares, descending.

    >>> candidates(np.array([0.0, 1.0, 1.0, 3.0]))
    [inf, 2.996, 2.98, 2.96, 2.92, 2.8, 2.6, 2.0, 1.0]
    """
    used = weight[weight > 0]
    found = np.quantile(used, SHARES).round(12).tolist() if len(used) else []
    return [float("inf"), *sorted(set(found), reverse=True)]


def least_noisy(
    events: WeightedEvents, options: list[float], replaced: Callable[[float, Floats], Floats]
) -> float:
    """The last option, in order of more replacement, that agrees with all before it."""
    rest, low, high = events.payoff - events.predicted, -np.inf, np.inf
    chosen = options[0]
    for option in options:
        terms = events.direct + replaced(option, events.weight) * rest
        reach = ERRORS * float(terms.std()) / max(1, len(terms)) ** 0.5
        middle = float(terms.mean()) if len(terms) else 0.0
        low, high = max(low, middle - reach), min(high, middle + reach)
        if low > high:
            break
        chosen = option
    return chosen
