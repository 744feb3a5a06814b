"""How wrong estimated propensities would have to be to turn a conclusion.

Whoever wrote the log may have known more than it says, and shown an article where it was about to
be clicked. The marginal sensitivity model (Tan 2006) limits that: the true odds p/(1 − p) of what
was shown are within a factor Γ of the estimated ones. So a weight w = π/p is between

    π + (w − π)/Γ   and   π + (w − π)·Γ

and the least value that is possible has the small weights where payoffs are above it, the large
ones where they are below (Zhao, Small and Bhattacharya 2019). The largest Γ is sought at which the
interval of the lift, at its worst weights, still excludes 0. Values are self-normalised (snips).
"""

from __future__ import annotations

import numpy as np

from topstory.evaluation.off_policy.estimators.weighted_events import WeightedEvents
from topstory.evaluation.off_policy.quantities import UNKNOWN_QUANTITY, ratio_of
from topstory.evaluation.off_policy.value import Quantity
from topstory.evaluation.off_policy.weighting.weights import propensities
from topstory.evaluation.uncertainty.clusters import clustered_sums
from topstory.events import EventLog
from topstory.kernels.compilation import Floats

LARGEST = 64.0
STEPS = 12
FIXED_POINT_STEPS = 50


def robust_to(
    log: EventLog, events: WeightedEvents, baseline: WeightedEvents | None = None
) -> float | None:
    """The largest Γ at which the lift's interval still excludes 0; None: it does not at all.

    Args:
        log: that judged.
        events: the policy's weights.
        baseline: those of the policy that the lift is over, at its own worst: this makes Γ smaller
            than it need be. None: the lift is over what was logged.

    >>> log = EventLog.from_arrays(
    ...     np.ones((400, 1)), [["a", "b"]], [0] * 400, ["a", "b"] * 200,
    ...     [1, 0, 1, 0, 0, 0, 1, 1] * 50)
    >>> shows_a = np.tile([2.0, 0.0], 200)
    >>> found = robust_to(log, WeightedEvents(shows_a, log.payoff.astype(float), shows_a, shows_a))
    >>> found is not None and found > 1
    True
    """
    found = lift_at(log, events, baseline, 1.0)
    low, high = found.best_interval
    if not (low > 0 or high < 0):
        return None
    worse = low > 0
    least, most = 0.0, float(np.log(LARGEST))
    if _stands(lift_at(log, events, baseline, LARGEST, worse), worse):
        return LARGEST
    for _ in range(STEPS):
        middle = (least + most) / 2
        stands = _stands(lift_at(log, events, baseline, float(np.exp(middle)), worse), worse)
        least, most = (middle, most) if stands else (least, middle)
    return float(np.exp(least))


def _stands(lift: Quantity, worse: bool) -> bool:
    low, high = lift.best_interval
    return low > 0 if worse else high < 0


def lift_at(
    log: EventLog,
    events: WeightedEvents,
    baseline: WeightedEvents | None,
    factor: float,
    worse: bool = True,
) -> Quantity:
    """The least lift, or the largest, if odds may be off by a factor; with its interval."""
    chance = propensities(log, 0, len(log))
    weight = worst_weights(events, chance, factor, worse)
    base = np.ones(len(log))
    if baseline is not None:
        base = worst_weights(baseline, chance, factor, not worse)
    payoff = events.payoff

    def columns(start: int, stop: int) -> Floats:
        w, b, r = weight[start:stop], base[start:stop], payoff[start:stop]
        return np.vstack([w * r, w, b * r, b, np.ones(stop - start)])

    sums = clustered_sums(log, 5, columns)
    earned, size, base_earned, base_size, _ = sums.total
    if not (earned > 0 and base_earned > 0):
        return UNKNOWN_QUANTITY
    gradient = np.array([1 / earned, -1 / size, -1 / base_earned, 1 / base_size, 0.0])
    error = sums.error(gradient, np.array([0.0, 1.0, 0.0, 0.0, 0.0]))
    return ratio_of(float(earned / size / (base_earned / base_size)), error)


def worst_weights(events: WeightedEvents, chance: Floats, factor: float, worse: bool) -> Floats:
    """The possible weights that make Σwr/Σw least, or largest."""
    shown = events.weight * chance  # π
    large = shown + (events.weight - shown) * factor
    small = shown + (events.weight - shown) / factor
    payoff, weight = events.payoff, events.weight
    value = float(weight @ payoff) / float(weight.sum()) if weight.any() else 0.0
    for _ in range(FIXED_POINT_STEPS):  # each step is nearer to the worst
        above = payoff > value if worse else payoff < value
        weight = np.where(above, small, large)
        total = float(weight.sum())
        found = float(weight @ payoff) / total if total else 0.0
        if abs(found - value) <= 1e-12 * abs(value):
            break
        value = found
    return weight
