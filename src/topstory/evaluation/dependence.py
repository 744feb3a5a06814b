"""How far sums over blocks of time depend on one another, and what that does to an interval.

An hour in which more is clicked is often followed by another. Then hours tell less than independent
ones would. How much less nobody knows beforehand, and a short log can hardly show it. So all the
answers on a grid are weighed by how well they explain the blocks' errors (Whittle's likelihood of
their cosine waves): a part that fades by a factor φ from block to block, and a part that is new in
every block. Before the log is seen, independence counts `INDEPENDENT`, the rest of the grid what is
left. Each answer gives Student's distribution to the errors' sum; their mixture is the interval. So
it is a little wider than that of independent blocks where dependence cannot be excluded, and as
wide as it must be where it is seen.

The constants were chosen on normal series of 24 to 1,000 blocks, and judged on others (binomial
hours, moving averages; `tests/evaluation/test_dependence.py`). With fewer than 72 blocks strong
dependence is often not seen, and intervals are too narrow. So they are with a coarser grid of
shares. With a smaller `INDEPENDENT` independent blocks pay more (half as wide again for 48 of them
at 0.5, a twentieth at 0.9). With a smaller `SURE` the intervals that are left are those of logs
that happen to look independent, and hold less often.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.fft import dct
from scipy.special import stdtr, stdtrit

from topstory.kernels.compilation import Floats

FADING = (0.2, 0.35, 0.5, 0.6, 0.7, 0.78, 0.84, 0.88, 0.91, 0.935, 0.955, 0.97, 0.98, 0.988, 0.993)
LASTING_SHARES = (1.0, 0.95, 0.88, 0.8, 0.7, 0.6, 0.48, 0.36, 0.25, 0.15, 0.08)
INDEPENDENT = 0.9  # how plausible independent blocks are before the log is seen
MIN_INDEPENDENT = 6.0  # as many independent blocks a log must be worth
SURE = 0.95  # how likely it must be that it is worth less, for a log to be called too short
MIN_SERIES = 8  # blocks; with fewer nothing can be said of dependence
SURELY = 0.995  # independent: nothing to be mixed
NEGLIGIBLE = 1e-4
TAIL = 0.05  # where one Student's distribution agrees with the mixture
HALVINGS = 24
LEARNING = (0.05, 0.3)  # of the log: how fast learning curves come to rest
AFTER_LEARNING = 4  # the slowest wave that learning curves leave


class Dependence(NamedTuple):
    """What the errors of blocks in their order say about their sum.

    >>> Dependence.of(np.random.default_rng(0).normal(size=400)).inflation < 1.1
    True
    >>> slow = np.cumsum(np.random.default_rng(0).normal(size=200))
    >>> Dependence.of(slow - slow.mean()).too_short
    True
    """

    inflation: float  # of the variance of the errors' sum, over that of independent blocks
    freedom: float
    length: float  # blocks that together tell as much as an independent one, most likely
    too_short: bool  # there are surely too few of those for an interval

    @classmethod
    def of(cls, errors: Floats, first: int = 1) -> Dependence:
        """From the errors of all blocks, in order of time, and the slowest wave that counts."""
        count = len(errors)
        alone = cls(1.0, count - 1.0, 1.0, False)
        if count < MIN_SERIES + first - 1:
            return alone
        waves = dct(errors, type=2, norm="ortho")[first:] ** 2
        if not waves.sum() > 0:
            return alone
        known = _spectra(count, first)
        scale = known.inverse @ waves / (count - first)
        fit = known.prior - 0.5 * (known.logarithms + (count - first) * np.log(scale))
        likely = np.exp(fit - fit.max())
        likely /= likely.sum()
        length = float(known.lengths[fit.argmax()])
        if likely[0] > SURELY:
            return alone
        worth = count / known.lengths
        freedom = min(max(1.0, float(likely @ worth)), count - 1.0)
        some = likely > NEGLIGIBLE
        spreads = np.sqrt(scale[some] / scale[0] * known.sums[some])
        reach = _reach(likely[some], spreads, count - 1.0)
        inflation = (reach / float(stdtrit(freedom, 1 - TAIL / 2))) ** 2
        short = bool(likely @ (worth < MIN_INDEPENDENT) > SURE)
        return cls(max(1.0, inflation), freedom, length, short)


def _reach(likely: Floats, spreads: Floats, degrees: float) -> float:
    """What a mixture of Student's distributions exceeds, to both sides, with `TAIL`."""
    low, high = 0.0, float(spreads.max()) * float(stdtrit(degrees, 1 - TAIL / 2))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        beyond = 2 * float(likely @ stdtr(degrees, -middle / spreads))
        low, high = (middle, high) if beyond > TAIL else (low, middle)
    return high


def without_learning(errors: Floats) -> Floats:
    """Errors less what goes along learning curves: that is a policy that has learned.

    What is left has lost its slowest waves: dependence is measured from `AFTER_LEARNING` on.

    >>> curve = np.exp(-np.arange(40) / 12)
    >>> bool(np.abs(without_learning(curve - curve.mean())).max() < 1e-3)
    True
    """
    curves = _curves(len(errors))
    return np.asarray(errors - curves @ (curves.T @ errors))


@lru_cache(maxsize=8)
def _curves(count: int) -> Floats:
    """(count, 4) orthonormal: a constant, two curves that come to rest, and a line."""
    when = (np.arange(count) + 0.5) / max(1, count)
    curves = [np.ones(count), *(np.exp(-when / rest) for rest in LEARNING), when]
    return np.asarray(np.linalg.qr(np.column_stack(curves))[0])


class _Spectra(NamedTuple):
    """The answers on the grid, for B blocks of variance 1: the first is independence."""

    inverse: Floats  # (answers, waves) one over the expected squares of the waves
    logarithms: Floats  # (answers,) of the squares, summed
    prior: Floats  # (answers,) the logarithm of how plausible each is
    lengths: Floats  # (answers,) blocks that tell as much as an independent one, in a long log
    sums: Floats  # (answers,) the variance of the blocks' sum, over B


@lru_cache(maxsize=8)
def _spectra(count: int, first: int) -> _Spectra:
    angles = np.pi * np.arange(first, count) / count
    pairs = [(0.0, 0.0), *((fade, share) for fade in FADING for share in LASTING_SHARES)]
    fade, share = (np.array(each) for each in zip(*pairs, strict=True))
    waves = (1 - fade**2)[:, None] / (1 + fade**2 - 2 * np.outer(np.cos(angles), fade)).T
    shapes = share[:, None] * waves + (1 - share)[:, None]
    prior = np.full(len(pairs), np.log((1 - INDEPENDENT) / (len(pairs) - 1)))
    prior[0] = np.log(INDEPENDENT)
    lasting = (1 + fade) / (1 - fade)
    begun = 2 * fade * (1 - fade**count) / (1 - fade) ** 2 / count
    return _Spectra(
        1 / shapes,
        np.log(shapes).sum(axis=1),
        prior,
        share * lasting + 1 - share,
        share * (lasting - begun) + 1 - share,
    )
