"""Chances that are right: of what is said to be shown in 1 of 10 visits, 1 of 10 is shown.

Every article of every visit's pool has a chance, and was shown or not. Chances are put into bins of
equal width on the scale of log-odds. The share shown of a bin must not fall where chances rise
(isotonic regression); between the bins' means it is interpolated, and a pool's chances are scaled
to add up to 1. The curve for an event comes from the other folds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.compilation import Counters, Floats

Folds = NDArray[np.uint8]
Mask = NDArray[np.bool_]

BINS, REACH = 64, 9.0  # of log-odds, to both sides
PRIOR = 2.0  # pairs that agree with the chance itself, in every bin
SMALLEST = 1e-7
EDGES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1.0)


class CalibrationBin(NamedTuple):
    """What was said, and what happened, among chances of one range."""

    low: float
    high: float
    pairs: int  # a visit and an article of its pool
    said: float  # the mean chance
    shown: float  # the share that was shown


class Curves:
    """For each fold, what a chance means by the other folds."""

    def __init__(self, folds: int) -> None:
        self._sums = np.zeros((folds, 3, BINS))  # pairs, chances, shown
        self._curves: list[tuple[Floats, Floats]] = []

    def add(self, fold: Folds, chances: Floats, shown: Mask) -> None:
        """Pairs: the fold of each, its chance, and whether it was shown."""
        place = bin_of(chances)
        for k in range(len(self._sums)):
            mine = fold == k
            for row, weight in enumerate((None, chances[mine], shown[mine].astype(float))):
                self._sums[k, row] += np.bincount(place[mine], weight, minlength=BINS)

    def finish(self) -> None:
        """Fit the curves."""
        from scipy.optimize import isotonic_regression  # slow to import, and only this needs it

        for k in range(len(self._sums)):
            pairs, said, shown = self._sums.sum(axis=0) - self._sums[k]
            used = pairs > 0
            middle = said[used] / pairs[used]
            weight = pairs[used] + PRIOR
            share = (shown[used] + PRIOR * middle) / weight
            curve = isotonic_regression(share, weights=weight).x if len(share) else share
            self._curves.append((middle, np.asarray(curve)))

    def apply(self, fold: Folds, chances: Floats, begins: Counters) -> Floats:
        """The calibrated chances; each pool's, from begins[i] on, add up to 1."""
        found = np.empty_like(chances)
        for k, (middle, curve) in enumerate(self._curves):
            mine = fold == k
            found[mine] = np.interp(chances[mine], middle, curve) if len(middle) else chances[mine]
        found = np.maximum(found, SMALLEST)
        sizes = np.diff(np.append(begins, len(chances)))
        return np.asarray(found / np.repeat(np.add.reduceat(found, begins), sizes))


def bin_of(chances: Floats) -> NDArray[np.int64]:
    """The bin of each chance, by its log-odds."""
    inside = np.clip(chances, 1e-12, 1 - 1e-12)
    scaled = (np.log(inside / (1 - inside)) / REACH + 1) / 2 * BINS
    return np.clip(scaled, 0, BINS - 1).astype(np.int64)


class CalibrationTable:
    """Counts how far chances agree with what was shown.

    >>> table = CalibrationTable()
    >>> table.add(np.array([0.25, 0.25, 0.25, 0.25]), np.array([True, False, False, False]))
    >>> table.bins()[0].said, table.bins()[0].shown
    (0.25, 0.25)
    """

    def __init__(self) -> None:
        self._sums = np.zeros((3, len(EDGES) - 1))

    def add(self, chances: Floats, shown: Mask) -> None:
        """Pairs: their chances, and whether each was shown."""
        place = np.clip(np.searchsorted(EDGES, chances, "right") - 1, 0, len(EDGES) - 2)
        for row, weight in enumerate((None, chances, shown.astype(float))):
            self._sums[row] += np.bincount(place, weight, minlength=len(EDGES) - 1)

    def bins(self) -> tuple[CalibrationBin, ...]:
        """Those with any pair."""
        found = []
        for low, high, (pairs, said, shown) in zip(
            EDGES, EDGES[1:], self._sums.T.tolist(), strict=False
        ):
            if pairs:
                found.append(CalibrationBin(low, high, int(pairs), said / pairs, shown / pairs))
        return tuple(found)

    def error(self) -> float:
        """The mean distance between what was said and what happened, over what was shown."""
        _, said, shown = self._sums
        return float(np.abs(said - shown).sum() / max(1.0, shown.sum()))
