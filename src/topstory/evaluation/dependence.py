"""How far sums over blocks of time depend on one another, and what that does to an interval.

An hour in which more is clicked is often followed by another. Then hours tell less than independent
ones would. How much less nobody knows beforehand, and a short log can hardly show it. So all the
answers on a grid are weighed by how well they explain the blocks' errors (Whittle's likelihood of
their cosine waves): a part that fades by a factor φ from block to block, and a part that is new in
every block. Before the log is seen, independence counts `INDEPENDENT`, the rest of the grid what is
left. Each answer gives Student's distribution to the errors' sum; their mixture is the interval. So
it is a little wider than that of independent blocks where dependence cannot be excluded, and as
wide as it must be where it is seen.

A policy that learns earns more from block to block, which is no dependence. Where that is possible,
each answer is tried with learning curves of several heights, too (Bayes' rule with normal heights).
A slow change that could be either counts as much of each as the faster waves tell.

A log of fewer than `ENOUGH` blocks can hardly show strong dependence: 72 have 3 nats of evidence
for φ = 0.95. Any rule that finds it there is too wide for independent blocks, or too narrow for
others. So such a log speaks of its own blocks alone; if they look dependent, not even of those.

The constants were chosen on normal series of 20 to 336 blocks, and judged on others (binomial
hours, moving averages; `tests/evaluation/test_dependence.py`). With a smaller `INDEPENDENT`
independent blocks pay more; with a larger one, or without `LASTS` and `HIDDEN`, intervals of a week
at φ = 0.95 are too narrow. With a smaller `SURE` the intervals that are left are those of logs that
happen to look independent, and hold less often.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.fft import dct
from scipy.special import stdtr, stdtrit

from topstory.kernels.compilation import Floats

FADING = (0.2, 0.35, 0.5, 0.6, 0.7, 0.78, 0.84, 0.88, 0.91, 0.935, 0.955, 0.97, 0.98, 0.988, 0.993)
LASTING_SHARES = (1.0, 0.95, 0.88, 0.8, 0.7, 0.6, 0.48, 0.36, 0.25, 0.15, 0.08)
INDEPENDENT = 0.6  # how plausible independent blocks are before the log is seen
LASTS = 2.0  # how much more plausible is what is slow: missing it costs most
HIDDEN = 8.0  # the same of what is small, too, and so most easily missed
SLOW, SMALL = 0.85, 0.5  # φ above, and shares below
ENOUGH = 168  # blocks, a week of hours; fewer do not show strong dependence
MIN_INDEPENDENT = 6.0  # as many independent blocks a log must be worth
SURE = 0.95  # how likely it must be that it is worth less, for a log to be called too short
LIKELY = 0.6  # the same, of a log of fewer than `ENOUGH` blocks
MIN_SERIES = 8  # blocks; with fewer nothing can be said of dependence
NEGLIGIBLE = 1e-4
TAIL = 0.05  # where one Student's distribution agrees with the mixture
HALVINGS = 24
LEARNED = 0.75  # how plausible it is that policies that can learn do
LEARNING = (0.05, 0.15, 0.4)  # of the log: how fast learning curves come to rest
HEIGHTS = (3.0, 3e1, 3e2, 3e3, 3e4, 1e6)  # variances of learning curves, over that of one block


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
    def of(cls, errors: Floats, learning: bool = False) -> Dependence:
        """From the errors of all blocks, in order of time; of a policy that learned, or not."""
        count = len(errors)
        alone = cls(1.0, count - 1.0, 1.0, False)
        if count < MIN_SERIES:
            return alone
        waves = dct(errors, type=2, norm="ortho")[1:]
        if not waves @ waves > 0:
            return alone
        known = _spectra(count)
        scale, fit = known.explain(waves, learning)  # (heights, answers)
        likely = np.exp(fit - fit.max())
        likely /= likely.sum()
        worth = count / known.lengths
        length = float(known.lengths[fit.max(axis=0).argmax()])
        short = float(likely.sum(axis=0) @ (worth < MIN_INDEPENDENT))
        if count < ENOUGH:  # a policy that learns looks dependent there
            return alone._replace(length=length, too_short=short > (SURE if learning else LIKELY))
        freedom = min(max(1.0, float(likely.sum(axis=0) @ worth)), count - 1.0)
        some = likely > NEGLIGIBLE
        plain = float(waves @ waves) / (count - 1)
        spreads = np.sqrt((scale * known.sums)[some] / plain)
        reach = _reach(likely[some], spreads, count - 1.0)
        inflation = (reach / float(stdtrit(freedom, 1 - TAIL / 2))) ** 2
        return cls(max(1.0, inflation), freedom, length, short > SURE)

    @property
    def needed(self) -> int:
        """How many blocks a log must have, that is not too short."""
        return max(ENOUGH, math.ceil(MIN_INDEPENDENT * self.length))


def _reach(likely: Floats, spreads: Floats, degrees: float) -> float:
    """What a mixture of Student's distributions exceeds, to both sides, with `TAIL`."""
    low, high = 0.0, float(spreads.max()) * float(stdtrit(degrees, 1 - TAIL / 2))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        beyond = 2 * float(likely @ stdtr(degrees, -middle / spreads))
        low, high = (middle, high) if beyond > TAIL * float(likely.sum()) else (low, middle)
    return high


class _Spectra(NamedTuple):
    """The answers on the grid, for B blocks of variance 1: the first is independence."""

    inverse: Floats  # (answers, waves) one over the expected squares of the waves
    logarithms: Floats  # (answers,) of the squares, summed
    prior: Floats  # (answers,) the logarithm of how plausible each is
    lengths: Floats  # (answers,) blocks that tell as much as an independent one, in a long log
    sums: Floats  # (answers,) the variance of the blocks' sum, over B
    curves: Floats  # (waves, 3) the waves of learning curves, of length 1
    shared: Floats  # (answers, 3, 3) what curves share, weighed by the answer

    def explain(self, waves: Floats, learning: bool) -> tuple[Floats, Floats]:
        """(curves, answers): the variance by each answer, and how well it explains the waves."""
        count = len(waves)
        squares = self.inverse @ waves**2
        scales, fits = [squares / count], [self.prior - 0.5 * self.logarithms]
        if learning:
            along = self.inverse @ (self.curves * waves[:, None])  # (answers, 3)
            each = np.log(LEARNED / len(HEIGHTS) / (len(LEARNING) + 1))
            for some in (*([i] for i in range(len(LEARNING))), list(range(len(LEARNING)))):
                shared, mine = self.shared[:, some][:, :, some], along[:, some]
                for height in HEIGHTS:
                    inner = np.eye(len(some)) + height * shared
                    taken = height * np.linalg.solve(inner, mine[:, :, None])[:, :, 0]
                    scales.append((squares - (mine * taken).sum(axis=1)) / count)
                    fits.append(fits[0] + each - 0.5 * np.linalg.slogdet(inner)[1])
            fits[0] = fits[0] + np.log(1 - LEARNED)
        scale = np.maximum(scales, np.finfo(float).tiny)
        return scale, np.asarray(fits - 0.5 * count * np.log(scale))


@lru_cache(maxsize=8)
def _spectra(count: int) -> _Spectra:
    angles = np.pi * np.arange(1, count) / count
    pairs = [(0.0, 0.0), *((fade, share) for fade in FADING for share in LASTING_SHARES)]
    fade, share = (np.array(each) for each in zip(*pairs, strict=True))
    waves = (1 - fade**2)[:, None] / (1 + fade**2 - 2 * np.outer(np.cos(angles), fade)).T
    shapes = share[:, None] * waves + (1 - share)[:, None]
    plausible = np.where(fade > SLOW, np.where(share < SMALL, HIDDEN, LASTS), 1.0)
    plausible *= (1 - INDEPENDENT) / plausible[1:].sum()
    plausible[0] = INDEPENDENT
    lasting = (1 + fade) / (1 - fade)
    begun = 2 * fade * (1 - fade**count) / (1 - fade) ** 2 / count
    inverse, curves = 1 / shapes, _curves(count)
    return _Spectra(
        inverse,
        np.log(shapes).sum(axis=1),
        np.log(plausible),
        share * lasting + 1 - share,
        share * (lasting - begun) + 1 - share,
        curves,
        np.stack([(curves * each[:, None]).T @ curves for each in inverse]),
    )


def _curves(count: int) -> Floats:
    """(waves, 3) of curves that come to rest, each of length 1."""
    when = (np.arange(count) + 0.5) / count
    curves = np.column_stack([np.exp(-when / rest) for rest in LEARNING])
    waves = dct(curves, type=2, norm="ortho", axis=0)[1:]
    return np.asarray(waves / np.linalg.norm(waves, axis=0))
