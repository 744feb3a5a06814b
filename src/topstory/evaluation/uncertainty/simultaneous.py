"""Differences between policies that are sure all at once, however many are compared.

Twelve policies have 66 differences: at 5 % each, three are "sure" where none is real. Here at most
5 % of whole comparisons contain a wrong claim. Each difference of log CTRs has an error of two
parts, clicks (sums over blocks) and the learning path (seeds), and a p-value by Student's
distribution, as in `repeats`. They are corrected together by max-t: normal errors are drawn with
the correlations that the blocks and seeds of these runs show, and a p-value counts how often the
smallest of all p-values is as small by chance. Claims step down as Holm's do: with every difference
that is sure, fewer are left to be compared. Draws are seeded: the same runs give the same claims.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.special import ndtr, stdtr

from topstory.evaluation.intervals import NOTHING_KNOWN, Interval, LogRatio
from topstory.evaluation.result import Bucket
from topstory.evaluation.uncertainty.run_errors import RunErrors
from topstory.kernels.compilation import Floats

Name = TypeVar("Name", bound=Hashable)

DRAWS = 2_000


class Claim(NamedTuple):
    """How much more one policy earns than another, among all the differences compared with it.

    >>> Claim(0.1, Interval(0.02, 0.19), 0.01).sure
    True
    """

    value: float  # the lift: 0.1 is 10 % more
    interval: Interval  # 95 % for all the intervals together
    p_value: float  # corrected for all the comparisons

    @property
    def sure(self) -> bool:
        """Whether the sign is sure: in 95 % of comparisons all that is called sure is true."""
        return self.p_value <= 0.05

    @property
    def too_short(self) -> bool:
        """Whether the difference changes too slowly for the log's length: no interval."""
        return self.value == self.value and self.interval.low != self.interval.low


def simultaneous_lifts(
    runs: Mapping[Name, Sequence[Bucket]],
    pairs: Sequence[tuple[Name, Name | None]] | None = None,
    families: int = 1,
) -> dict[tuple[Name, Name | None], Claim]:
    """The lift of one policy over another for each pair, with 95 % for all of them together.

    Args:
        runs: by policy, a bucket of each of its runs on one log: the same seeds in the same order.
        pairs: which to compare; `RANDOM` in the second place is the random policy. By default
            every two of the policies.
        families: how many such comparisons are made, this one included, if 95 % is to hold for all
            of them: each gets an equal part of the error.

    >>> from topstory.evaluation.blocks import Blocks
    >>> random = np.random.default_rng(0)
    >>> def bucket(rate):
    ...     trials = np.full(50, 400.0)
    ...     sums = np.column_stack([trials, random.binomial(400, rate, 50), trials, trials])
    ...     return Bucket(sums, sums, Blocks(50, 1, None), True)
    >>> runs = {name: [bucket(rate)] for name, rate in (("a", 0.04), ("b", 0.04), ("c", 0.06))}
    >>> {pair: claim.sure for pair, claim in simultaneous_lifts(runs).items()}
    {('a', 'b'): False, ('a', 'c'): True, ('b', 'c'): True}
    """
    asked = list(combinations(runs, 2)) if pairs is None else list(pairs)
    found = dict.fromkeys(asked, Claim(float("nan"), NOTHING_KNOWN, 1.0))
    errors = RunErrors.of(runs)
    known = [pair for pair in asked if errors.paid(pair[0]) and errors.paid(pair[1])]
    if not known or errors.blocks < 2:
        return found
    values, variances, freedoms = errors.ratios(known)
    own = _p_values(values, variances, freedoms)
    chance = _p_values_by_chance(errors, known)
    corrected = np.minimum(families * _step_down(own, chance), 1.0)
    error = 0.05 / families
    # The draw at which a corrected p-value passes the error: an interval and its claim agree.
    place = max(0, int(error * (len(chance) + 1)) - 1)
    smallest = float(np.partition(chance.min(axis=1), place)[place])
    alone = min(max(smallest, error / len(own)), error)
    for i, pair in enumerate(known):
        ratio = LogRatio(float(values[i]), float(variances[i]), float(freedoms[i]))
        low, high = (end - 1 for end in ratio.interval(1 - alone))
        if corrected[i] <= 0.05:  # stepping down may be sure of a sign where the interval passes 0
            low, high = (max(low, 0.0), high) if ratio.value > 0 else (low, min(high, 0.0))
        found[pair] = Claim(float(np.expm1(ratio.value)), Interval(low, high), float(corrected[i]))
    return found


def _p_values(values: Floats, variances: Floats, freedoms: Floats) -> Floats:
    """By Student's distribution; 1 for the same runs twice."""
    spread = np.sqrt(variances)
    deviations = np.divide(np.abs(values), spread, out=np.zeros_like(values), where=spread > 0)
    return np.asarray(2 * stdtr(freedoms, -deviations))


def _step_down(own: Floats, chance: Floats) -> Floats:
    """The corrected p-values: by max-t, and never above Holm's."""
    order = np.argsort(own)
    left = np.minimum.accumulate(chance[:, order[::-1]], axis=1)[:, ::-1]
    by_chance = ((left <= own[order]).sum(axis=0) + 1) / (len(chance) + 1)
    holm = own[order] * np.arange(len(own), 0, -1)
    corrected = np.empty_like(own)
    corrected[order] = np.maximum.accumulate(np.minimum(np.minimum(by_chance, holm), 1.0))
    return corrected


def _p_values_by_chance(errors: RunErrors, pairs: Sequence[tuple[Hashable, Hashable]]) -> Floats:
    """(draws, pairs): p-values where no difference is real, with these runs' correlations."""
    rows = np.concatenate([errors.by_block, errors.apart_by_seed()], axis=1)
    values, vectors = np.linalg.eigh(rows @ rows.T)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = np.random.default_rng(0).standard_normal((DRAWS, len(rows))) @ root.T
    ours, theirs = errors.sides(pairs)
    spread = np.linalg.norm(rows[ours] - rows[theirs], axis=1)
    spread[spread == 0] = np.inf  # the same runs twice never differ
    return np.asarray(2 * ndtr(-np.abs(drawn[:, ours] - drawn[:, theirs]) / spread))
