"""How far sums over blocks of time depend on one another, and what that does to an interval.

An hour in which more is clicked is often followed by another. Then hours tell less than independent
ones would. A model of that is fitted to the blocks' errors: a part that fades by a factor φ from
block to block, and a part that is new in every block (Whittle's likelihood over a grid of both).
Where it explains the errors no better than independence does, blocks count as independent. Else
the variance is that of the slow waves in the errors alone (equal-weighted cosines; Lazarus, Lewis,
Stock and Watson 2018). As many waves count as stay within `FLATNESS` of the slowest, by the most
lasting dependence that is still plausible. The interval is Student's with one degree of freedom
for each wave: few waves, wide interval. All B - 1 of them would be independent blocks again.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.fft import dct

from topstory.kernels.compilation import Floats

FADING = (0.2, 0.35, 0.5, 0.6, 0.7, 0.78, 0.84, 0.88, 0.91, 0.935, 0.955, 0.97, 0.98, 0.988, 0.993)
LASTING_SHARES = (1.0, 0.6, 0.35, 0.2, 0.1)
BETTER = 1.5  # log-likelihood by which dependence must explain the errors better
SURE = 4.0  # and as it must, for a log to be called too short: chance alone does that 1 in 1,000
PLAUSIBLE = 1.0  # log-likelihood that a plausible dependence may lack to the best
FLATNESS = 0.8
MIN_WAVES = 3
MIN_INDEPENDENT = 6.0  # as many independent blocks a log must be worth
MIN_SERIES = 8  # blocks; with fewer nothing can be said of dependence


class Dependence(NamedTuple):
    """What the errors of blocks in their order say about their sum.

    >>> Dependence.of(np.random.default_rng(0).normal(size=200)).independent
    True
    >>> slow = np.cumsum(np.random.default_rng(0).normal(size=200))
    >>> Dependence.of(slow - slow.mean()).too_short
    True
    """

    independent: bool
    variance: float  # of the errors' sum
    freedom: float
    length: float  # blocks that together tell as much as an independent one
    too_short: bool  # there are too few of those for an interval

    @classmethod
    def of(cls, errors: Floats) -> Dependence:
        """From the errors of all blocks, in order of time."""
        count = len(errors)
        waves = dct(errors, type=2, norm="ortho")[1:] ** 2 if count > 1 else np.zeros(0)
        alone = cls(True, float(waves.sum()) * count / max(1, count - 1), count - 1.0, 1.0, False)
        if count < MIN_SERIES or not waves.sum() > 0:
            return alone
        known = _spectra(count)
        scale = (waves / known.shapes).mean(axis=1)
        fit = -0.5 * (known.logarithms + (count - 1) * np.log(scale))
        best = int(fit.argmax())
        if fit[best] - fit[0] < BETTER:
            return alone
        plausible = np.flatnonzero(fit >= fit[best] - PLAUSIBLE)
        chosen = int(plausible[known.waves[plausible].argmin()])
        used = max(int(known.waves[chosen]), MIN_WAVES)
        slow = float(waves[:used].mean()) / float(known.levels[chosen, used - 1])
        length = float(known.slowest[best])
        short = bool(fit[best] - fit[0] >= SURE and count / length < MIN_INDEPENDENT)
        return cls(False, slow * count, float(used), length, short)


class _Spectra(NamedTuple):
    """The candidates, for B blocks: the first is independence."""

    shapes: Floats  # (candidates, B - 1) the expected squares of the waves
    logarithms: Floats  # (candidates,) of those, summed
    levels: Floats  # (candidates, B - 1) the mean of the first waves, over the slowest
    slowest: Floats  # (candidates,) the limit: blocks that tell as much as one
    waves: Floats  # (candidates,) as many are within FLATNESS


@lru_cache(maxsize=8)
def _spectra(count: int) -> _Spectra:
    angles = np.pi * np.arange(1, count) / count
    pairs = [(0.0, 0.0), *((fade, share) for fade in FADING for share in LASTING_SHARES)]
    fades, shares = (np.array(each)[:, None] for each in zip(*pairs, strict=True))
    lasting = (1 - fades**2) / (1 - 2 * fades * np.cos(angles) + fades**2)
    shapes = shares * lasting + 1 - shares
    slowest = (shares * (1 + fades) / (1 - fades) + 1 - shares)[:, 0]
    levels = np.cumsum(shapes, axis=1) / np.arange(1, count) / slowest[:, None]
    waves = (levels >= FLATNESS).sum(axis=1).astype(float)
    return _Spectra(shapes, np.log(shapes).sum(axis=1), levels, slowest, waves)
