"""How sure the CTRs of several policies are, run with the same seeds on one log.

The error of a log CTR has two parts: clicks, which blocks of the log show, and the learning path,
which seeds show. With three seeds, the variance between them is hardly known for one pair of
policies, so it is moderated by that of the other pairs (Smyth 2004, "Linear models and empirical
Bayes methods for assessing differential expression", section 6.2). Seeds of one log share some of
their luck, so that their means differ between logs by more (`paths`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.special import digamma, polygamma

from topstory.evaluation.intervals import Part, Variance, ratio_variance
from topstory.evaluation.result import ALL_LEVELS, Bucket, Levels
from topstory.evaluation.uncertainty.paths import overlap, shared_luck
from topstory.kernels.compilation import Floats
from topstory.kernels.scans.replay import PAYOFF, TRIALS

Name = TypeVar("Name", bound=Hashable)

MIN_MODERATED = 3  # differences: fewer say nothing of what is common to them
RANDOM = None  # the name of the random policy, which the log itself stands for


@dataclass(frozen=True)
class RunErrors:
    """Each policy's log CTR, and what each block and seed adds to its error."""

    names: dict[Hashable, int]
    rates: Floats  # (policies,) over all seeds
    shares: Floats  # (policies, blocks) of the trials
    by_block: Floats  # (policies, blocks) relative errors
    by_seed: Floats  # (policies, seeds) log rates; nan without a payoff
    overlap: float  # of what two seeds learn from
    # (shares, relative errors) of groups of visitors, and of bins of cells; None: none returned.
    visitors: tuple[Part, Part] | None = None

    @property
    def blocks(self) -> int:
        """How many blocks have trials."""
        return int((self.shares > 0).any(axis=0).sum())

    def paid(self, name: Hashable) -> bool:
        """Whether a policy earned anything, so that its log CTR is known."""
        return bool(self.rates[self.names[name]] > 0)

    def sides(self, pairs: Sequence[tuple[Hashable, Hashable]]) -> tuple[list[int], list[int]]:
        """The rows of the first of each pair, and of the second."""
        return [self.names[a] for a, _ in pairs], [self.names[b] for _, b in pairs]

    def ratios(self, pairs: Sequence[tuple[Hashable, Hashable]]) -> tuple[Floats, Floats, Floats]:
        """The log ratio of each pair, its variance, and the degrees of freedom of that."""
        ours, theirs = self.sides(pairs)
        found = [self._clicks(a, b) for a, b in zip(ours, theirs, strict=True)]
        clicks, clicks_freedom = (np.array(each) for each in zip(*found, strict=True))
        path, path_freedom = path_variance(self.by_seed[ours] - self.by_seed[theirs])
        path *= self._shared
        both = clicks + path
        parts = clicks**2 / clicks_freedom + path**2 / np.maximum(path_freedom, 1)
        told = (parts > 0) & np.isfinite(both)  # else the same runs twice, or a log too short
        freedoms = np.divide(both**2, parts, out=np.ones_like(both), where=told)
        return np.log(self.rates[ours] / self.rates[theirs]), both, freedoms

    def _clicks(self, ours: int, theirs: int) -> Variance:
        """The variance of one log ratio, but for the learning path."""
        levels = ((self.shares, self.by_block), *(self.visitors or ()))
        parts = [((s[ours] + s[theirs]) / 2, errors[ours] - errors[theirs]) for s, errors in levels]
        return ratio_variance(*parts)

    def apart_by_seed(self) -> Floats:
        """(policies, seeds): how far each seed is from the mean, as an error of that mean."""
        seeds = self.by_seed.shape[1]
        known = np.isfinite(self.by_seed)
        used = np.where(known, self.by_seed, 0.0)
        mean = used.sum(axis=1, keepdims=True) / np.maximum(known.sum(axis=1, keepdims=True), 1)
        share = (self._shared / (seeds * max(1, seeds - 1))) ** 0.5
        return np.asarray(np.where(known, used - mean, 0.0) * share)

    @property
    def _shared(self) -> float:
        return shared_luck(self.by_seed.shape[1], self.overlap)

    @classmethod
    def of(cls, runs: Mapping[Name, Sequence[Bucket]]) -> RunErrors:
        """Of a bucket of each run: the same seeds in the same order for every policy."""
        seeds = {len(buckets) for buckets in runs.values()}
        if len(seeds) != 1 or 0 in seeds:
            raise ValueError(
                "policies are compared by the same seeds: each needs as many runs, got "
                + (", ".join(f"{name} {len(each)}" for name, each in runs.items()) or "none")
            )
        first = next(iter(runs.values()))
        levels = [[each.log_levels for each in first]]
        levels += [[each.levels for each in buckets] for buckets in runs.values()]
        by_level = [_relative(sums) for sums in _by_level(levels)]
        trials, payoff, rates, shares, errors = by_level[0]
        by_seed = np.full(trials.shape[:2], np.nan)
        np.log(
            payoff.sum(2) / np.maximum(trials.sum(2), 1e-300), out=by_seed, where=payoff.sum(2) > 0
        )
        names: dict[Hashable, int] = {RANDOM: 0}
        names |= {name: i + 1 for i, name in enumerate(runs)}
        visitors = None
        if len(by_level) == ALL_LEVELS:
            groups, cells = by_level[1:]
            visitors = ((groups.shares, groups.errors), (cells.shares, cells.errors))
        return cls(names, rates, shares, errors, by_seed, overlap(first), visitors)


class _Relative(NamedTuple):
    """Of clusters of one kind."""

    trials: Floats  # (policies, seeds, clusters)
    payoff: Floats
    rates: Floats  # (policies,)
    shares: Floats  # (policies, clusters)
    errors: Floats  # (policies, clusters)


def _by_level(runs: Sequence[Sequence[Levels]]) -> list[Floats]:
    """(policies, seeds, clusters, 4) for each kind of clusters that all runs have."""
    kinds = min(len(levels) for policy in runs for levels in policy)
    return [np.array([[levels[k] for levels in policy] for policy in runs]) for k in range(kinds)]


def _relative(sums: Floats) -> _Relative:
    trials, payoff = sums[..., TRIALS], sums[..., PAYOFF]
    totals, paid = trials.sum((1, 2)), payoff.sum((1, 2))
    rates = np.divide(paid, totals, out=np.zeros_like(paid), where=totals > 0)
    shares = trials.sum(1) / np.maximum(totals, 1e-300)[:, None]
    earned = payoff.sum(1) / np.where(paid > 0, paid, 1.0)[:, None]
    errors = np.where(paid > 0, 1, 0)[:, None] * (earned - shares)
    return _Relative(trials, payoff, rates, shares, errors)


def seed_variance(differences: Floats) -> tuple[Floats, Floats]:
    """Of each pair's mean over seeds, by its own seeds alone; and its freedom."""
    known = np.isfinite(differences)
    seeds = known.sum(axis=1)
    used = np.where(known, differences, 0.0)
    mean = used.sum(axis=1) / np.maximum(seeds, 1)
    squares = np.where(known, (used - mean[:, None]) ** 2, 0.0).sum(axis=1)
    degrees = np.maximum(seeds - 1, 0).astype(float)
    return squares / np.maximum(degrees, 1) / np.maximum(seeds, 1), degrees


def path_variance(differences: Floats) -> tuple[Floats, Floats]:
    """Of each pair's mean over seeds, moved towards what is common to all the pairs."""
    own, degrees = seed_variance(differences)
    told = own > 0
    if told.sum() < MIN_MODERATED:
        return own, degrees
    logs = np.log(own[told]) - digamma(degrees[told] / 2) + np.log(degrees[told] / 2)
    excess = float(logs.var(ddof=1)) - float(polygamma(1, degrees[told] / 2).mean())
    prior = 2 * _inverse_trigamma(excess) if excess > 0 else 1e6
    common = float(np.exp(logs.mean() + digamma(prior / 2) - np.log(prior / 2)))
    moderated = (degrees * own + prior * common) / (degrees + prior)
    return np.where(told, moderated, own), np.where(told, degrees + prior, degrees)


def _inverse_trigamma(value: float) -> float:
    """By Newton's method on 1/trigamma, which is nearly straight."""
    found = 0.5 + 1 / value
    for _ in range(50):
        slope = float(polygamma(1, found))
        step = slope * (1 - slope / value) / float(polygamma(2, found))
        found += step
        if abs(step) < 1e-9 * found:
            break
    return found
