"""How sure a rate is: intervals from sums over blocks.

A rate c = Σr/Σn has the residuals e_b = r_b − c·n_b. Clicks may be as dependent as they like within
a block; blocks may differ in size. With the blocks' shares h_b = n_b/Σn the variance estimate is
Σe_b²/(1 − h_b) / (Σn)² (CR2; unbiased if a block's variance goes with its size), and the interval
is Student's, with the degrees of freedom that match this estimate's own variance (Satterthwaite):

    1 / (Σh² + (Σk)² − Σk²),  k = h²/(1 − h)          for B equal blocks, B − 1

For payoffs 0 and 1 it is Wilson's with the number of trials that would have this variance,
c(1−c)/variance, so that it stays within [0, 1] and holds for few clicks and none. A ratio of two
rates is compared block by block, on the logarithm.

Blocks that depend on one another tell less (`evaluation.dependence`). That is measured on the log
itself, all of whose articles were shown at random: a policy's own rate rises as it learns, which is
no dependence of hours. What lasts in the log's rate adds to the variance of a policy's, in
proportion; where the log is too short for it, nothing is known. Where visitors return, what they
add to the variance beyond their blocks comes from sums over groups of visitors
(`evaluation.visitor_groups`). In a ratio of two policies what lasts in all hours cancels; what
lasts in the difference of the two is measured there, beside what the policies learn. A log of a few
days cannot show what lasts: then an interval is about its own hours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from topstory.evaluation.dependence import Dependence
from topstory.kernels.compilation import Floats


class Interval(NamedTuple):
    """An interval, its ends included.

    >>> Interval(0.1, 0.2).low
    0.1
    """

    low: float
    high: float


NOTHING_KNOWN = Interval(float("nan"), float("nan"))


def quantile(freedom: float, level: float) -> float:
    """How many deviations an interval reaches to each side."""
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, such as 0.95, got {level!r}")
    return float(stdtrit(freedom, (1 + level) / 2))


def freedom(shares: Floats) -> Floats:
    """The degrees of freedom of `variance`, along the last axis."""
    k = shares**2 / (1 - shares)
    return np.asarray(1 / ((shares**2).sum(-1) + k.sum(-1) ** 2 - (k**2).sum(-1)))


def variance(shares: Floats, errors: Floats) -> Floats:
    """Of the sum of all blocks' errors, along the last axis."""
    return np.asarray((errors**2 / (1 - shares)).sum(-1))


def rate_errors(trials: Floats, payoff: Floats) -> Floats:
    """What each block adds to the rate's error."""
    total = trials.sum()
    return np.asarray((payoff - payoff.sum() / total * trials) / total)


class Variance(NamedTuple):
    """An estimated variance, and its degrees of freedom.

    >>> (Variance(1.0, 3.0) + Variance(1.0, 3.0)).freedom  # by Satterthwaite
    6.0
    """

    value: float
    freedom: float

    def __add__(self, other: object) -> Variance:
        if not isinstance(other, Variance):
            return NotImplemented
        if TOO_SHORT in (self, other):
            return TOO_SHORT
        both = self.value + other.value
        if not all(each.freedom for each in (self, other) if each.value):
            return Variance(both, 0.0)  # what is known of one part does not tell the sum
        parts = sum(each.value**2 / each.freedom for each in (self, other) if each.value)
        return Variance(both, both**2 / parts if parts else self.freedom)


NO_VARIANCE = Variance(0.0, 1.0)
TOO_SHORT = Variance(float("inf"), 1.0)  # rates change so slowly that the log tells nothing
Part = tuple[Floats, Floats]  # shares of clusters, and what each adds to the error


def clustered_variance(
    blocks: Part, groups: Part | None = None, cells: Part | None = None
) -> Variance:
    """Of an estimate: by independent blocks, and what visitors add to that.

    >>> clustered_variance((np.full(4, 0.25), np.array([1.0, -1.0, 1.0, -1.0]))).freedom
    3.0
    """
    shares, errors = blocks
    found = Variance(float(variance(shares, errors)), float(freedom(shares)))
    return found + _of_visitors(groups, cells)


def _of_visitors(groups: Part | None, cells: Part | None) -> Variance:
    if groups is None or cells is None:
        return NO_VARIANCE
    own = float(variance(*groups)) - float(variance(*cells))
    return Variance(max(0.0, own), float(freedom(groups[0])))


def ratio_variance(blocks: Part, groups: Part | None = None, cells: Part | None = None) -> Variance:
    """Of how two policies that learn compare, with what lasts from block to block.

    >>> slow = np.tile(np.repeat([-1.0, 1.0], 15), 20)
    >>> found = ratio_variance((np.full(600, 1 / 600), slow))
    >>> found.value > 5 * clustered_variance((np.full(600, 1 / 600), slow)).value
    True
    """
    shares, errors = (each[blocks[0] > 0] for each in blocks)
    seen = Dependence.of(errors, learning=True)
    if seen.too_short:
        return TOO_SHORT
    degrees = min(float(freedom(shares)), seen.freedom)
    lasting = Variance(seen.inflation * float(variance(shares, errors)), degrees)
    return lasting + _of_visitors(groups, cells)


Rates = tuple[Floats, Floats]  # trials and payoff, of clusters


def rate_dependence(log: Rates) -> Dependence:
    """How far the blocks of a log depend on one another; not at all without a payoff.

    >>> rate_dependence((np.full(9, 50.0), np.zeros(9))).too_short
    False
    """
    trials, payoff = (each[log[0] > 0] for each in log)
    return Dependence.of(rate_errors(trials, payoff) if len(trials) else trials)


def rate_variance(
    blocks: Rates, visitors: tuple[Rates, Rates] | None = None, log: Rates | None = None
) -> Variance:
    """Of Σpayoff/Σtrials, from sums by block; and by group of visitors, and bin of cells.

    `log` has the sums by block of the log itself, whose dependence is added.

    >>> hours = np.full(120, 50.0), np.repeat(np.random.default_rng(0).random(4), 30)
    >>> rate_variance(hours, log=hours) == TOO_SHORT
    True
    """
    parts = [blocks, *(visitors or ())]
    found = clustered_variance(*((t / t.sum(), rate_errors(t, p)) for t, p in parts))
    if log is None:
        return found
    seen = rate_dependence(log)
    if seen.too_short:
        return TOO_SHORT
    if seen.inflation == 1:
        return found
    trials, payoff = log
    lasting = float(variance(trials / trials.sum(), rate_errors(trials, payoff)))
    lasting *= seen.inflation - 1
    ratio = (blocks[1].sum() / blocks[0].sum()) / (payoff.sum() / trials.sum())
    return found + Variance(float(ratio) ** 2 * lasting, seen.freedom)


def rate_interval(
    trials: Floats,
    payoff: Floats,
    binary: bool,
    level: float,
    count: float | None = None,
    path: Variance = NO_VARIANCE,
    visitors: tuple[Rates, Rates] | None = None,
    log: Rates | None = None,
) -> Interval:
    """The interval of Σpayoff/Σtrials, from sums by block; nothing if the log is too short.

    Args:
        trials: sums of trials, or of their weights.
        payoff: sums of payoffs, weighted alike.
        binary: whether payoffs are 0 or 1.
        level: such as 0.95.
        count: the number of trials, if `trials` are weights.
        path: the variance of the rate between learning paths, which blocks do not show.
        visitors: the same sums by group of visitors, and by bin of cells; None: none returned.
        log: the sums by block of the log itself; None: its blocks count as independent.

    >>> low, high = rate_interval(np.full(50, 100.0), np.tile([2.0, 4.0], 25), True, 0.95)
    >>> round(low, 4), round(high, 4)
    (0.0273, 0.033)
    """
    if int((trials > 0).sum()) < 2:
        return NOTHING_KNOWN
    total = float(trials.sum())
    rate = float(payoff.sum()) / total
    found = rate_variance((trials, payoff), visitors, log)
    if found == TOO_SHORT:
        return NOTHING_KNOWN
    # All blocks alike, or no click at all, say nothing of the variance: take independent trials'.
    known = total if count is None else count
    alone = rate * (1 - rate) / known
    if binary and found.value <= 1e-9 * alone:
        found = Variance(alone, found.freedom)
    spread, degrees = found + path
    reach = quantile(degrees, level)
    if not binary:
        half = reach * spread**0.5
        return Interval(rate - half, rate + half)
    return wilson(rate, rate * (1 - rate) / spread if spread else known, reach)


def wilson(rate: float, trials: float, reach: float) -> Interval:
    """Wilson's score interval of a share.

    >>> wilson(0.0, 10, 1.96).low
    0.0
    """
    weight = reach**2 / trials
    middle = (rate + weight / 2) / (1 + weight)
    spread = max(0.0, rate * (1 - rate) / trials + weight / (4 * trials))
    half = reach / (1 + weight) * spread**0.5
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


class LogRatio(NamedTuple):
    """The logarithm of a ratio of rates, its variance, and the degrees of freedom of that."""

    value: float
    variance: float
    freedom: float

    def interval(self, level: float) -> Interval:
        """Of the ratio itself; nothing if the log is too short for one."""
        if self.variance == TOO_SHORT.value:
            return NOTHING_KNOWN
        half = quantile(self.freedom, level) * self.variance**0.5
        return Interval(float(np.exp(self.value - half)), float(np.exp(self.value + half)))


def log_ratio(
    ours: Rates, theirs: Rates, visitors: Sequence[tuple[Rates, Rates]] | None = None
) -> LogRatio | None:
    """One rate divided by another, both from sums over the same blocks; None: too little paid.

    `visitors` has both sums by group of visitors, and both by bin of cells.
    """
    (trials, payoff), (base_trials, base_payoff) = ours, theirs
    blocks = int(((trials > 0) | (base_trials > 0)).sum())
    if blocks < 2 or payoff.sum() <= 0 or base_payoff.sum() <= 0:
        return None
    rate, base = payoff.sum() / trials.sum(), base_payoff.sum() / base_trials.sum()
    parts = [_ratio_part(*each, rate, base) for each in ((ours, theirs), *(visitors or ()))]
    return LogRatio(float(np.log(rate / base)), *ratio_variance(*parts))


def _ratio_part(ours: Rates, theirs: Rates, rate: float, base: float) -> Part:
    errors = rate_errors(*ours) / rate - rate_errors(*theirs) / base
    return (ours[0] / ours[0].sum() + theirs[0] / theirs[0].sum()) / 2, errors
