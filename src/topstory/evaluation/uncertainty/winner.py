"""What the best of several candidates will earn: less than its own runs say.

The best of many is partly the luckiest, so its own CTR is too high, and more so the more candidates
there are and the less they really differ. Here each candidate is moved towards the mean of all, by
as much as luck explains of their differences: log CTRs are δ away from their mean, δ is normal with
a standard deviation τ that the candidates themselves tell (every τ counts by how well it explains
them), and what is known of δ then depends neither on how many were compared nor on which was
chosen. The interval covers clicks, the learning path, and what is not known of τ.

The path is another log's as well as another seed's, and three seeds of one log show too little of
it, for two reasons. They learn in part from the same events: of what one seed learned from, another
that explores on its own learns from 1 in K, the size of the pool. And paths that get stuck are rare
but cost much, so most often three seeds show none: no candidate's path is taken to be surer than
that of all candidates on average.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from topstory.evaluation.dependence import Dependence
from topstory.evaluation.intervals import NOTHING_KNOWN, Interval, LogRatio, freedom, variance
from topstory.evaluation.result import Bucket
from topstory.evaluation.uncertainty.repeats import Estimate, mean_relative_ctr
from topstory.evaluation.uncertainty.run_errors import (
    RANDOM,
    RunErrors,
    path_variance,
    seed_variance,
)
from topstory.kernels.compilation import Floats

Name = TypeVar("Name", bound=Hashable)

SPREADS = 200  # how many values of τ are tried


def shrunk_relative_ctrs(candidates: Mapping[Name, Sequence[Bucket]]) -> dict[Name, Estimate]:
    """Each candidate's relative CTR, with the luck of the best and the worst taken off.

    Args:
        candidates: a bucket of each run on one log: the same seeds in the same order.

    >>> from topstory.evaluation.blocks import Blocks
    >>> random = np.random.default_rng(1)
    >>> def bucket(rate):
    ...     trials = np.full(50, 100.0)
    ...     sums = np.column_stack([trials, random.binomial(100, rate, 50), trials, trials])
    ...     base = np.column_stack([trials, np.full(50, 4.0), trials, trials])
    ...     return Bucket(sums, base, Blocks(50, 1, None), True)
    >>> equal = {name: [bucket(0.04) for seed in range(3)] for name in range(20)}
    >>> round(max(mean_relative_ctr(buckets).value for buckets in equal.values()), 2)
    1.07
    >>> round(max(found.value for found in shrunk_relative_ctrs(equal).values()), 2)
    1.0
    """
    if not candidates:
        return {}
    errors = RunErrors.of(candidates)
    known = [name for name in candidates if errors.paid(name)]
    if len(known) < 3 or not errors.paid(RANDOM) or errors.blocks < 2:
        return {name: mean_relative_ctr(buckets) for name, buckets in candidates.items()}
    rows = [errors.names[name] for name in known]
    logs = np.log(errors.rates[rows])
    deviations, (own, own_freedom) = logs - logs.mean(), _deviations(errors, rows)
    best, unsure = _posterior(deviations, own)
    base, base_freedom = _common(errors, rows)
    found = dict.fromkeys(candidates, Estimate(float("nan"), NOTHING_KNOWN))
    middle = float(logs.mean() - np.log(errors.rates[errors.names[RANDOM]]))
    for i, name in enumerate(known):
        both = base + unsure[i]
        parts = base**2 / base_freedom + unsure[i] ** 2 / own_freedom[i]
        ratio = LogRatio(middle + float(best[i]), float(both), float(both**2 / parts))
        value = float(np.exp(ratio.value))
        found[name] = Estimate(value, ratio.interval(0.95) if both else Interval(value, value))
    return found


def _deviations(errors: RunErrors, rows: list[int]) -> tuple[Floats, Floats]:
    """The variance of each log CTR's distance from the mean of all, and its freedom."""
    by_block, shares = errors.by_block[rows], errors.shares[rows]
    clicks = _lasting(shares, by_block - by_block.mean(axis=0))
    seeds = errors.by_seed[rows]
    known = np.isfinite(seeds)
    mean = np.where(known, seeds, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    path, path_freedom = _path_variance(seeds - mean, errors.overlap, least=_pooled(seeds - mean))
    return clicks + path, _matched(clicks, freedom(shares), path, path_freedom)


def _common(errors: RunErrors, rows: list[int]) -> tuple[float, float]:
    """The variance of the mean of all over the random policy's, and its freedom."""
    log = errors.names[RANDOM]
    shares = (errors.shares[rows].mean(axis=0) + errors.shares[log]) / 2
    apart = errors.by_block[rows].mean(axis=0) - errors.by_block[log]
    clicks = _lasting(shares[None], apart[None])[0]
    seeds = errors.by_seed[rows] - errors.by_seed[log]
    whole = seeds[:, np.isfinite(seeds).all(axis=0)].mean(axis=0, keepdims=True)
    # As if the candidates' paths were independent, unless the seeds of their mean differ by more.
    path, path_freedom = _path_variance(whole, errors.overlap, least=_pooled(seeds) / len(rows))
    found = _matched(clicks, freedom(shares), path[0], path_freedom[0])
    return float(clicks + path[0]), float(found)


def _lasting(shares: Floats, errors: Floats) -> Floats:
    """The variance of each row's sum, with what lasts from block to block."""
    met = shares.max(axis=0) > 0
    lasting = [Dependence.of(row[met], learning=True).inflation for row in errors]
    return np.asarray(variance(shares, errors) * lasting)


def _pooled(differences: Floats) -> float:
    """The mean of all rows' variances between seeds."""
    own, degrees = seed_variance(differences)
    return float((own * degrees).sum() / max(float(degrees.sum()), 1.0))


def _path_variance(differences: Floats, overlap: float, least: float) -> tuple[Floats, Floats]:
    """Between the means over seeds of different logs, and its freedom."""
    found, freedoms = path_variance(differences)
    degrees = np.maximum(np.isfinite(differences).sum(axis=1) - 1, 0)
    shared = 1 + (degrees + 1) * overlap / (1 - overlap)  # as `paths.shared_luck`
    # No variance is surer than all the seeds together make it.
    return np.maximum(found, least) * shared, np.minimum(freedoms, max(degrees.sum(), 1))


def _matched(clicks: Floats, by_block: Floats, path: Floats, by_seed: Floats) -> Floats:
    """Degrees of freedom of the sum of two variances, by Satterthwaite."""
    parts = clicks**2 / by_block + path**2 / np.maximum(by_seed, 1)
    both = (clicks + path) ** 2
    return np.divide(both, parts, out=np.ones_like(np.asarray(both)), where=parts > 0)


def _posterior(deviations: Floats, own: Floats) -> tuple[Floats, Floats]:
    """The mean and the variance of each δ, over all values of τ."""
    widest = 3 * float(np.abs(deviations).max() + np.sqrt(own.max()))
    spreads = np.linspace(0, widest, SPREADS)[:, np.newaxis] ** 2  # (spreads, 1)
    total = spreads + np.maximum(own, 1e-12)
    fit = -0.5 * (np.log(total) + deviations**2 / total).sum(axis=1)
    weight = np.exp(fit - fit.max())
    weight = (weight / weight.sum())[:, np.newaxis]
    kept = spreads / total
    mean = (weight * kept * deviations).sum(axis=0)
    within = (weight * kept * own).sum(axis=0)
    return mean, within + (weight * (kept * deviations - mean) ** 2).sum(axis=0)
