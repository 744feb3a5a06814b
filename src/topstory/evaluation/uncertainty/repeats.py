"""The same run with several seeds: what it earns on average, and how sure that is.

Two kinds of luck make an average unsure. Clicks: the seeds share a log, so this does not shrink
with their number; it is read off the sums over blocks, added up over seeds. The learning path:
which events were learned from, and which ties were broken how; it is the variance between the
seeds' logarithms, divided by their number, and a little more, since seeds of one log share some of
their luck (`paths`). The interval is Student's on the sum of both, with degrees of freedom by
Satterthwaite. (Clicks that differ between seeds count twice: the interval is wide rather than
narrow.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from topstory.evaluation.intervals import NOTHING_KNOWN, Interval, LogRatio, Variance
from topstory.evaluation.result import Bucket, Levels, log_ratio_of
from topstory.evaluation.uncertainty.paths import overlap, shared_luck, value_overlap
from topstory.kernels.scans.replay import PAYOFF, TRIALS


class Estimate(NamedTuple):
    """A number and its 95 % interval.

    >>> Estimate(1.5, Interval(1.4, 1.6)).value
    1.5
    """

    value: float
    interval: Interval

    @classmethod
    def unknown(cls) -> Estimate:
        """Nothing is known."""
        return cls(float("nan"), NOTHING_KNOWN)


def mean_relative_ctr(buckets: Sequence[Bucket]) -> Estimate:
    """The CTR divided by the random policy's, over the seeds together."""
    return _ratio([(b.levels, b.log_levels) for b in buckets], value_overlap(buckets))


def mean_lift(
    buckets: Sequence[Bucket], over: Sequence[Bucket], *, level: float = 0.95
) -> Estimate:
    """How much more than another policy, seed by seed on the same log: 0.1 is 10 % more."""
    if len(buckets) != len(over):
        raise ValueError(
            f"a lift compares the same seeds of both policies, got {len(buckets)} and {len(over)}"
        )
    pairs = [(b.levels, o.levels) for b, o in zip(buckets, over, strict=True)]
    value, (low, high) = _ratio(pairs, overlap(buckets), level)
    return Estimate(value - 1, Interval(low - 1, high - 1))


def log_variance(buckets: Sequence[Bucket]) -> float:
    """The variance of the logarithm of the mean relative CTR; nan if nothing is known."""
    found = _mean_log_ratio([(b.levels, b.log_levels) for b in buckets], value_overlap(buckets))
    return float("nan") if found is None else found.variance


def _ratio(pairs: Sequence[tuple[Levels, Levels]], shared: float, level: float = 0.95) -> Estimate:
    found = _mean_log_ratio(pairs, shared)
    if found is None:
        return Estimate.unknown()
    value = float(np.exp(found.value))
    return Estimate(value, found.interval(level) if found.variance else Interval(value, value))


def _mean_log_ratio(pairs: Sequence[tuple[Levels, Levels]], shared: float) -> LogRatio | None:
    ours, theirs = (added([pair[side] for pair in pairs]) for side in (0, 1))
    together = log_ratio_of(ours, theirs)
    if together is None:
        return None
    rates = np.array([[_rate(side) for side in pair] for pair in pairs])
    seeds = rates[(rates > 0).all(axis=1)]
    if len(seeds) < 2:
        return together
    luck = float(np.var(np.log(seeds[:, 0] / seeds[:, 1]), ddof=1)) / len(seeds)
    luck *= shared_luck(len(seeds), shared)
    both = Variance(together.variance, together.freedom) + Variance(luck, len(seeds) - 1)
    return LogRatio(together.value, *both)


def _rate(levels: Levels) -> float:
    trials, payoff = levels[0][:, [TRIALS, PAYOFF]].sum(axis=0)
    return float(payoff / trials) if trials else 0.0


def added(runs: Sequence[Levels]) -> Levels:
    """The sums of all runs, level by level."""
    return tuple(np.sum(level, axis=0) for level in zip(*runs, strict=False))
