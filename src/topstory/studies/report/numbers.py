"""Estimates as a report takes them: what is not known is None."""

from __future__ import annotations

import math

from topstory.evaluation import Estimate, Interval
from topstory.report import Number


def number(value: float, interval: Interval | None = None) -> Number:
    """A number, with its interval if there is one.

    >>> number(float("nan")), number(1.5, Interval(1.4, 1.6))
    (Number(value=None, low=None, high=None), Number(value=1.5, low=1.4, high=1.6))
    """
    low, high = (None, None) if interval is None else (known(interval.low), known(interval.high))
    return Number(known(value), low, high)


def estimated(estimate: Estimate) -> Number:
    """An average over seeds."""
    return number(estimate.value, estimate.interval)


def known(value: float) -> float | None:
    """The value, if it is a finite number."""
    return float(value) if math.isfinite(value) else None
