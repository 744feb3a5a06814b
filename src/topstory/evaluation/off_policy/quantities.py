"""Numbers with their intervals, from clustered errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from topstory.evaluation.intervals import NOTHING_KNOWN, Interval, Variance, quantile, wilson
from topstory.evaluation.off_policy.value import Quantity
from topstory.evaluation.uncertainty.clusters import ClusteredError

UNKNOWN_QUANTITY = Quantity(float("nan"), NOTHING_KNOWN, NOTHING_KNOWN)


def mean_of(value: float, error: ClusteredError) -> Quantity:
    """A mean of anything: as far to both sides."""

    def ends(spread: Variance) -> Interval:
        half = quantile(spread.freedom, 0.95) * spread.value**0.5
        # No difference between any two clusters says nothing of how much there could be.
        return Interval(value - half, value + half) if half > 0 else NOTHING_KNOWN

    return _quantity(value, error, ends)


def share_of(value: float, error: ClusteredError, events: float) -> Quantity:
    """A mean of zeros and ones, of so many events: never outside 0 to 1 (Wilson's)."""
    alone = value * (1 - value)

    def ends(spread: Variance) -> Interval:
        # Clusters all alike, or no click at all, say nothing of the variance.
        known = alone > 0 and spread.value * events > 1e-9 * alone
        trials = alone / spread.value if known else events
        return wilson(value, trials, quantile(spread.freedom, 0.95))

    return _quantity(value, error, ends)


def ratio_of(ratio: float, error: ClusteredError, level: float = 0.95) -> Quantity:
    """A lift, from a ratio and the error of its logarithm."""

    def ends(spread: Variance) -> Interval:
        half = quantile(spread.freedom, level) * spread.value**0.5
        return Interval(ratio * float(np.exp(-half)) - 1, ratio * float(np.exp(half)) - 1)

    return _quantity(ratio, error, ends, less=1.0)


def _quantity(
    value: float, error: ClusteredError, ends: Callable[[Variance], Interval], less: float = 0.0
) -> Quantity:
    """Both intervals, each unless nothing is known."""
    such, these = error.such_days, error.these_days
    return Quantity(
        value - less,
        ends(such) if such.freedom >= 1 and error.known else NOTHING_KNOWN,
        ends(these) if these.freedom >= 1 else NOTHING_KNOWN,
        error.dependence.too_short,
        error.days_needed if error.dependence.too_short else None,
    )
