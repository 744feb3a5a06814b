"""The same run with several seeds: what it earns on average, and how sure that is.

Two kinds of luck make an average unsure. Clicks: the seeds share a log, so this does not shrink
with their number; it is read off the sums over blocks, added up over seeds. The learning path:
which events were learned from, and which ties were broken how; it is the variance between the
seeds' logarithms, divided by their number. The interval is Student's on the sum of both, with
degrees of freedom by Satterthwaite. (Clicks that differ between seeds count twice: the interval is
wide rather than narrow.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from topstory.evaluation.intervals import NOTHING_KNOWN, Interval, LogRatio, Variance, log_ratio
from topstory.evaluation.result import Bucket
from topstory.kernels.compilation import Floats
from topstory.kernels.replay import PAYOFF, TRIALS

REPEATS = 3  # how many seeds are run, unless the user says otherwise


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


def check_repeats(repeats: int) -> None:
    """Refuse what is not a number of seeds."""
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1: how many seeds to run, got {repeats!r}")


def mean_relative_ctr(buckets: Sequence[Bucket]) -> Estimate:
    """The CTR divided by the random policy's, over the seeds together."""
    return _ratio([(b.sums, b.log_sums) for b in buckets])


def mean_lift(
    buckets: Sequence[Bucket], over: Sequence[Bucket], *, level: float = 0.95
) -> Estimate:
    """How much more than another policy, seed by seed on the same log: 0.1 is 10 % more."""
    if len(buckets) != len(over):
        raise ValueError(
            f"a lift compares the same seeds of both policies, got {len(buckets)} and {len(over)}"
        )
    pairs = [(b.sums, o.sums) for b, o in zip(buckets, over, strict=True)]
    value, (low, high) = _ratio(pairs, level)
    return Estimate(value - 1, Interval(low - 1, high - 1))


def log_variance(buckets: Sequence[Bucket]) -> float:
    """The variance of the logarithm of the mean relative CTR; nan if nothing is known."""
    found = _mean_log_ratio([(b.sums, b.log_sums) for b in buckets])
    return float("nan") if found is None else found.variance


def _ratio(pairs: Sequence[tuple[Floats, Floats]], level: float = 0.95) -> Estimate:
    if not pairs:
        raise ValueError("there is nothing to average: no run was given")
    found = _mean_log_ratio(pairs)
    if found is None:
        return Estimate.unknown()
    value = float(np.exp(found.value))
    return Estimate(value, found.interval(level) if found.variance else Interval(value, value))


def _mean_log_ratio(pairs: Sequence[tuple[Floats, Floats]]) -> LogRatio | None:
    ours = np.sum([sums for sums, _ in pairs], axis=0)
    theirs = np.sum([base for _, base in pairs], axis=0)
    together = log_ratio_of(ours, theirs)
    if together is None:
        return None
    seeds = [found for pair in pairs if (found := log_ratio_of(*pair)) is not None]
    if len(seeds) < 2:
        return together
    luck = float(np.var([each.value for each in seeds], ddof=1)) / len(seeds)
    both = Variance(together.variance, together.freedom) + Variance(luck, len(seeds) - 1)
    return LogRatio(together.value, *both)


def log_ratio_of(ours: Floats, theirs: Floats) -> LogRatio | None:
    """The ratio of two rates, from a bucket's sums and another's over the same blocks."""
    return log_ratio(ours[:, TRIALS], ours[:, PAYOFF], theirs[:, TRIALS], theirs[:, PAYOFF])
