"""How sure a rate is: intervals from sums over blocks.

A rate c = Σr/Σn has the residuals e_b = r_b − c·n_b in B blocks, and the variance estimate
B/(B−1) · Σe_b² / (Σn)²: clicks may be as dependent as they like within a block. The interval is
Student's, with B − 1 degrees of freedom. For payoffs 0 and 1 it is Wilson's with the number of
trials that would have this variance, c(1−c)/variance, so that it stays within [0, 1] and holds
for few clicks and none. A ratio of two rates is compared block by block, on the logarithm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from topstory.kernels.compilation import Floats


class Interval(NamedTuple):
    """An interval, its ends included.

    >>> Interval(0.1, 0.2).low
    0.1
    """

    low: float
    high: float


NOTHING_KNOWN = Interval(float("nan"), float("nan"))


def _quantile(blocks: int, level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, such as 0.95, got {level!r}")
    return float(stdtrit(blocks - 1, (1 + level) / 2))


def _influence(trials: Floats, payoff: Floats) -> Floats:
    """What each block adds to the rate's error: its variance is B/(B−1) · Σ of the squares."""
    total = trials.sum()
    return np.asarray((payoff - payoff.sum() / total * trials) / total)


def rate_interval(trials: Floats, payoff: Floats, binary: bool, level: float) -> Interval:
    """The interval of Σpayoff/Σtrials, from sums by block.

    >>> low, high = rate_interval(np.full(50, 100.0), np.tile([2.0, 4.0], 25), True, 0.95)
    >>> round(low, 4), round(high, 4)
    (0.0273, 0.033)
    """
    blocks = int((trials > 0).sum())
    total = float(trials.sum())
    if blocks < 2:
        return NOTHING_KNOWN
    rate = float(payoff.sum()) / total
    variance = blocks / (blocks - 1) * float((_influence(trials, payoff) ** 2).sum())
    quantile = _quantile(blocks, level)
    if not binary:
        half = quantile * variance**0.5
        return Interval(rate - half, rate + half)
    effective = rate * (1 - rate) / variance if 0 < rate < 1 and variance > 0 else total
    return wilson(rate, effective, quantile)


def wilson(rate: float, trials: float, quantile: float) -> Interval:
    """Wilson's score interval of a share.

    >>> wilson(0.0, 10, 1.96).low
    0.0
    """
    weight = quantile**2 / trials
    middle = (rate + weight / 2) / (1 + weight)
    half = quantile / (1 + weight) * (rate * (1 - rate) / trials + weight / (4 * trials)) ** 0.5
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def ratio_interval(
    trials: Floats, payoff: Floats, base_trials: Floats, base_payoff: Floats, level: float
) -> Interval:
    """The interval of one rate divided by another, both from sums over the same blocks."""
    blocks = int(((trials > 0) | (base_trials > 0)).sum())
    if blocks < 2 or payoff.sum() <= 0 or base_payoff.sum() <= 0:
        return NOTHING_KNOWN
    rate, base = payoff.sum() / trials.sum(), base_payoff.sum() / base_trials.sum()
    errors = _influence(trials, payoff) / rate - _influence(base_trials, base_payoff) / base
    spread = (blocks / (blocks - 1) * float((errors**2).sum())) ** 0.5
    half = _quantile(blocks, level) * spread
    return Interval(float(rate / base * np.exp(-half)), float(rate / base * np.exp(half)))
