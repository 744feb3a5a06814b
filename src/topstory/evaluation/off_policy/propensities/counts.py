"""How often each article was shown, among the same pool at about the same time."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from topstory.evaluation.off_policy.propensities.show_model import Parts
from topstory.evaluation.off_policy.weighting.targets import pool_begins
from topstory.events import EventLog
from topstory.kernels.compilation import Counters, Floats


class CountedShares:
    """Shares within a pool and a block of time, whoever came.

    A cell's counts are those of the other folds, and as many more events as the pool has articles,
    shared out as in the pool at all times; those in turn with one more for each article.

    >>> log = EventLog.from_arrays(
    ...     np.ones((90, 1)), [["a", "b"]], [0] * 90, ["a", "a", "b"] * 30, [0] * 90)
    >>> from topstory.evaluation.off_policy.propensities.show_model import parts_of
    >>> CountedShares(log, parts_of(log, 5)).all(0, 1)[1].round(2)
    array([0.67, 0.33])
    """

    name: ClassVar[str] = "counts"
    words: ClassVar[str] = "counts within pool and hour"
    words_steady: ClassVar[str] = "counts within pool"

    def __init__(self, log: EventLog, parts: Parts) -> None:
        self._log, self._parts = log, parts
        cells, self._cell = np.unique(
            log.pool.astype(np.int64) * parts.blocks + parts.block, return_inverse=True
        )
        self._pool_of_cell = cells // parts.blocks
        self._sizes = log.pool_sizes[self._pool_of_cell]
        self._starts = np.cumsum(self._sizes) - self._sizes
        room = int(self._sizes.sum())
        place = self._starts[self._cell] + log.position
        self._by_fold = np.zeros((parts.folds, room), np.int32)
        for fold in range(parts.folds):
            self._by_fold[fold] = np.bincount(place[parts.fold == fold], minlength=room)
        # Where each place of a cell is in its pool, among all pools end to end.
        within = np.arange(room) - np.repeat(self._starts, self._sizes)
        self._in_pools = np.repeat(log.pool_offsets[self._pool_of_cell], self._sizes) + within
        self._chances = [self._fold_chances(fold) for fold in range(parts.folds)]

    def all(self, start: int, stop: int) -> tuple[Counters, Floats]:
        """The chances of all articles."""
        begins, size = pool_begins(self._log, start, stop)
        cells = self._cell[start:stop]
        sizes = self._sizes[cells]
        within = np.arange(size) - np.repeat(begins, sizes)
        places = np.repeat(self._starts[cells], sizes) + within
        folds = np.repeat(self._parts.fold[start:stop], sizes)
        found = np.empty(size)
        for fold, chances in enumerate(self._chances):
            mine = folds == fold
            found[mine] = chances[places[mine]]
        return begins, found

    def _fold_chances(self, fold: int) -> Floats:
        """Of every place of every cell, from the events of the other folds."""
        counts = self._by_fold.sum(axis=0) - self._by_fold[fold]
        pools = self._log.pool_sizes
        by_pool = np.bincount(self._in_pools, counts, minlength=int(pools.sum())) + 1.0
        in_pool = np.add.reduceat(by_pool, self._log.pool_offsets[:-1])
        usual = (by_pool / np.repeat(in_pool, pools))[self._in_pools]
        in_cell = np.add.reduceat(counts, self._starts) + self._sizes
        sizes = np.repeat(self._sizes, self._sizes)
        return np.asarray((counts + sizes * usual) / np.repeat(in_cell, self._sizes))
