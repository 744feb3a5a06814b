"""Estimates as numbers of a report: None for what is not finite."""

from __future__ import annotations

from topstory.evaluation import Bucket, Estimate
from topstory.report import Number
from topstory.report.records import finite


def number_of(estimate: Estimate) -> Number:
    """An average over seeds, with its interval.

    >>> from topstory.evaluation import Interval
    >>> number_of(Estimate(1.5, Interval(1.4, 1.6)))
    Number(value=1.5, low=1.4, high=1.6, sure=None)
    >>> number_of(Estimate(float("nan"), Interval(float("nan"), float("nan"))))
    Number(value=None, low=None, high=None, sure=None)
    """
    low, high = estimate.interval
    return Number(finite(estimate.value), finite(low), finite(high))


def relative_ctr(bucket: Bucket) -> Number:
    """The relative CTR of a single run."""
    return number_of(Estimate(bucket.relative_ctr, bucket.relative_interval))
