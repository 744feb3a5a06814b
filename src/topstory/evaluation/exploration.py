"""What exploring costs, and what a site earns over both buckets at its own split of traffic.

A deployment bucket earns well because a learning bucket, which explores, paid for what is known.
What a site earns is the total: (1 − λ)·deployment + λ·learning, if a share λ of its visits learns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from topstory.evaluation.intervals import Interval, Variance, freedom, quantile, rate_errors
from topstory.evaluation.intervals import variance as block_variance
from topstory.evaluation.result import Bucket
from topstory.evaluation.uncertainty.repeats import Estimate
from topstory.kernels.compilation import Floats
from topstory.kernels.replay import PAYOFF, TRIALS, WEIGHT, WEIGHTED_PAYOFF

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
    parts = ((1 - share, deployment.sums), (share, learning.sums))
    if any(not sums[:, TRIALS].sum() for weight, sums in parts if weight):
        return replace(deployment, sums=np.zeros_like(deployment.sums))
    mixed = np.zeros_like(deployment.sums)
    for pair in ((TRIALS, PAYOFF), (WEIGHT, WEIGHTED_PAYOFF)):
        for weight, sums in parts:
            if weight:
                mixed[:, pair] += weight * sums[:, pair] / sums[:, pair[0]].sum()
        mixed[:, pair] *= sum(weight * sums[:, pair[0]].sum() for weight, sums in parts)
    return replace(deployment, sums=mixed)


def exploration_cost(
    deployment: Sequence[Bucket], learning: Sequence[Bucket], share: float = LEARNING_SHARE
) -> ExplorationCost:
    """From both buckets of each run of a policy: the same seeds in the same order."""
    check_learning_share(share)
    pairs = [(d.sums, one.sums) for d, one in zip(deployment, learning, strict=True)]
    scale = VISITS * share
    value = _difference(*(np.sum(sums, axis=0) for sums in zip(*pairs, strict=True)))
    return ExplorationCost(share, Estimate(scale * value, _scaled(_interval(pairs, value), scale)))


def _difference(deployment: Floats, learning: Floats) -> float:
    rates = [
        float(sums[:, PAYOFF].sum() / sums[:, TRIALS].sum()) if sums[:, TRIALS].sum() else np.nan
        for sums in (deployment, learning)
    ]
    return rates[0] - rates[1]


def _interval(pairs: Sequence[tuple[Floats, Floats]], value: float) -> Interval:
    """Clicks, block by block, and the learning path, seed by seed."""
    ours, theirs = (np.sum(sums, axis=0) for sums in zip(*pairs, strict=True))
    if value != value or int((ours[:, TRIALS] > 0).sum()) < 2:
        return Interval(float("nan"), float("nan"))
    errors = rate_errors(ours[:, TRIALS], ours[:, PAYOFF])
    errors = errors - rate_errors(theirs[:, TRIALS], theirs[:, PAYOFF])
    shares = (
        ours[:, TRIALS] / ours[:, TRIALS].sum() + theirs[:, TRIALS] / theirs[:, TRIALS].sum()
    ) / 2
    found = Variance(float(block_variance(shares, errors)), float(freedom(shares)))
    apart = [each for pair in pairs if (each := _difference(*pair)) == each]
    if len(apart) > 1:
        found += Variance(float(np.var(apart, ddof=1)) / len(apart), len(apart) - 1)
    half = quantile(found.freedom, 0.95) * found.value**0.5
    return Interval(value - half, value + half)


def _scaled(interval: Interval, scale: float) -> Interval:
    return Interval(scale * interval.low, scale * interval.high)
