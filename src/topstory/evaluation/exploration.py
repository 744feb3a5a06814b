"""What exploring costs, and what a site earns over both buckets at its own split of traffic.

A deployment bucket earns well because a learning bucket, which explores, paid for what is known.
What a site earns is the total: (1 − λ)·deployment + λ·learning, if a share λ of its visits learns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from topstory.evaluation.intervals import (
    NOTHING_KNOWN,
    TOO_SHORT,
    Interval,
    Variance,
    quantile,
    rate_errors,
    ratio_variance,
)
from topstory.evaluation.result import ALL_LEVELS, Bucket, Levels
from topstory.evaluation.uncertainty.paths import overlap, shared_luck
from topstory.evaluation.uncertainty.repeats import Estimate, added
from topstory.evaluation.visitor_groups import VisitorSums
from topstory.kernels.scans.replay import PAYOFF, TRIALS, WEIGHT, WEIGHTED_PAYOFF

LEARNING_SHARE = 0.1  # of visits that learn, unless the user says otherwise
VISITS = 100_000  # that costs are told for


@dataclass(frozen=True)
class ExplorationCost:
    """What one policy's exploring costs at a split of traffic."""

    learning_share: float  # of visits that learn
    clicks: Estimate  # fewer in 100,000 visits than if every visit were served greedily


def check_learning_share(share: float) -> None:
    """Refuse what is not a share of traffic."""
    if not 0 <= share <= 1:
        raise ValueError(
            "learning_share must be between 0 and 1: the share of visits that learn, such as 0.1, "
            f"got {share!r}"
        )


def total_bucket(deployment: Bucket, learning: Bucket, share: float = LEARNING_SHARE) -> Bucket:
    """Both buckets of one run as a site has them, with a share of its visits learning.

    Its CTR is (1 − share)·deployment's + share·learning's.

    >>> from topstory.evaluation.blocks import Blocks
    >>> def bucket(clicks):
    ...     sums = np.tile([100.0, clicks, 100.0, clicks], (4, 1))
    ...     return Bucket(sums, sums, Blocks(4, 1, None), True)
    >>> round(total_bucket(bucket(6), bucket(4), 0.1).ctr, 4)
    0.058
    """
    check_learning_share(share)
    parts = ((1 - share, deployment.levels), (share, learning.levels))
    if any(not levels[0][:, TRIALS].sum() for weight, levels in parts if weight):
        return replace(deployment, sums=np.zeros_like(deployment.sums), visitors=None)
    mixed = []
    for level in range(len(deployment.levels)):
        found = np.zeros_like(deployment.levels[level])
        for pair in ((TRIALS, PAYOFF), (WEIGHT, WEIGHTED_PAYOFF)):
            each = [(weight, levels[level][:, pair]) for weight, levels in parts if weight]
            for weight, sums in each:
                found[:, pair] += weight * sums / sums[:, 0].sum()
            found[:, pair] *= sum(weight * sums[:, 0].sum() for weight, sums in each)
        mixed.append(found)
    visitors = VisitorSums(*mixed[1:]) if len(mixed) == ALL_LEVELS else None
    return replace(deployment, sums=mixed[0], visitors=visitors)


def exploration_cost(
    deployment: Sequence[Bucket], learning: Sequence[Bucket], share: float = LEARNING_SHARE
) -> ExplorationCost:
    """From both buckets of each run of a policy: the same seeds in the same order."""
    check_learning_share(share)
    pairs = [(d.levels, one.levels) for d, one in zip(deployment, learning, strict=True)]
    scale = VISITS * share
    value = _difference(*map(added, zip(*pairs, strict=True)))
    interval = _interval(pairs, value, overlap(deployment))
    return ExplorationCost(share, Estimate(scale * value, _scaled(interval, scale)))


def _difference(deployment: Levels, learning: Levels) -> float:
    rates = [
        float(sums[:, PAYOFF].sum() / sums[:, TRIALS].sum()) if sums[:, TRIALS].sum() else np.nan
        for sums in (deployment[0], learning[0])
    ]
    return rates[0] - rates[1]


def _interval(pairs: Sequence[tuple[Levels, Levels]], value: float, shared: float) -> Interval:
    """Clicks, block by block, visitors, and the learning path, seed by seed."""
    ours, theirs = map(added, zip(*pairs, strict=True))
    if value != value or int((ours[0][:, TRIALS] > 0).sum()) < 2:
        return NOTHING_KNOWN
    parts = []
    for a, b in zip(ours, theirs, strict=False):
        errors = rate_errors(a[:, TRIALS], a[:, PAYOFF]) - rate_errors(b[:, TRIALS], b[:, PAYOFF])
        shares = (a[:, TRIALS] / a[:, TRIALS].sum() + b[:, TRIALS] / b[:, TRIALS].sum()) / 2
        parts.append((shares, errors))
    found = ratio_variance(*parts)
    apart = [each for pair in pairs if (each := _difference(*pair)) == each]
    if len(apart) > 1:
        luck = float(np.var(apart, ddof=1)) / len(apart) * shared_luck(len(apart), shared)
        found += Variance(luck, len(apart) - 1)
    if found == TOO_SHORT:
        return NOTHING_KNOWN
    half = quantile(found.freedom, 0.95) * found.value**0.5
    return Interval(value - half, value + half)


def _scaled(interval: Interval, scale: float) -> Interval:
    return Interval(scale * interval.low, scale * interval.high)
