"""How many learning paths (seeds) a log needs, whether they agree, and what they share.

A path that is unlucky with the best article at first may never show it again: it finds it, or does
not. Three paths mostly see one kind only, and an interval over them covers as little as half of the
time. The shorter a log, the more this matters and the less a replay costs, so short logs are
replayed with more seeds.

Paths of one log are not independent. Of what one seed learned from, another that explores on its
own learns from 1 in K, the size of the pool, and one that explores where it is unsure from more:
two such seeds are often unsure of the same article for the same user. So the means of other logs'
seeds differ by more than the seeds of this one show. In simulated worlds of ten articles that
correlation was 0.02 to 0.04 for ε-greedy and 0.04 to 0.26 for upper confidence bounds with 2,000
to 3,000 events: 2/K, for what one policy earns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topstory.evaluation.intervals import Interval
from topstory.evaluation.result import Bucket, log_ratio_of
from topstory.kernels.scans.replay import TRIALS, WEIGHT

REPEATS, MOST_REPEATS = 3, 20  # seeds, unless the user says otherwise
PATH_EVENTS = 2_000_000  # that a policy is replayed over, if it takes more than three seeds
SHARED = 2.0  # how much of two paths' luck is the same, times 1/K
ENOUGH = 10  # seeds, to see paths that fail now and then
TURNOVER = 2.0  # articles for each place of the pool: below that an article missed stays missed
APART, BEYOND_CLICKS = 1.5, 4.0  # when paths disagree: highest over lowest, and of the variance


def default_repeats(events: int) -> int:
    """How many seeds a log is replayed with.

    >>> default_repeats(10_000), default_repeats(200_000), default_repeats(5_000_000)
    (20, 10, 3)
    """
    return min(max(REPEATS, PATH_EVENTS // max(events, 1)), MOST_REPEATS)


def check_repeats(repeats: int) -> None:
    """Refuse what is not a number of seeds."""
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1: how many seeds to run, got {repeats!r}")


def overlap(buckets: Sequence[Bucket]) -> float:
    """The share of a seed's events that another seed learns from too: the mean of 1/K."""
    if not buckets:
        raise ValueError("there is nothing to average: no run was given")
    expected, events = sum(each.log_sums.sum(axis=0)[[TRIALS, WEIGHT]] for each in buckets)
    return min(float(expected / events), 0.5) if events > 0 else 0.0  # a choice is from two or more


def value_overlap(buckets: Sequence[Bucket]) -> float:
    """How much of a seed's luck another seed shares, for what one policy earns.

    Differences between policies keep `overlap`: what a log does to both cancels in part.
    """
    return min(SHARED * overlap(buckets), 0.5)


def shared_luck(seeds: int, overlap: float) -> float:
    """How much more the means over seeds vary between logs than if seeds were independent.

    Means of n that are correlated by the overlap ρ have the variance of independent ones times
    1 + n·ρ/(1 − ρ) (Nadeau and Bengio 2003, "Inference for the generalization error").

    >>> shared_luck(3, 0.1), shared_luck(20, 0.1)
    (1.3333333333333335, 3.2222222222222223)
    """
    return 1 + seeds * overlap / (1 - overlap)


def path_ends(buckets: Sequence[Bucket]) -> Interval | None:
    """The lowest and the highest relative CTR of the paths, if they disagree; None: they do not.

    They do if they are far apart, and by much more than clicks explain.
    """
    found = [
        each
        for bucket in buckets
        if (each := log_ratio_of(bucket.levels, bucket.log_levels)) is not None
    ]
    if len(found) < 2:
        return None
    logs = np.array([each.value for each in found])
    clicks = float(np.mean([each.variance for each in found]))
    low, high = (float(end) for end in np.exp([logs.min(), logs.max()]))
    if high < APART * low or float(logs.var(ddof=1)) < BEYOND_CLICKS * clicks:
        return None
    return Interval(low, high)


def too_few_paths(seeds: int, articles: int, pool: float) -> bool:
    """Whether rare paths that fail would not be seen, in a log whose articles hardly change.

    Args:
        seeds: how many paths there are.
        articles: in the whole log.
        pool: how many of them there are at a time.

    >>> too_few_paths(3, 10, 10), too_few_paths(20, 10, 10), too_few_paths(3, 90, 20)
    (True, False, False)
    """
    return seeds < ENOUGH and articles < TURNOVER * pool
