"""Visitors in groups: what returning visitors add to an error, in a few sums.

Events of one visitor depend on one another. Visitors are put into `GROUPS` groups by chance; sums
over groups are independent, and their spread shows what visitors add. What a group does within one
block of time is a cell, which sums over blocks know already: cells are put into `CELL_BINS` bins by
chance, and their spread is taken away (Cameron, Gelbach and Miller 2011, with groups for visitors).
Sums over a few groups can be kept with every run, so policies are compared by them, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topstory.evaluation.blocks import Blocks
from topstory.events import EventLog
from topstory.kernels.compilation import Floats, Slots

GROUPS = 64
CELL_BINS = 128
MAX_CELLS = 4_000_000
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class VisitorGroups:
    """The group of each event of a log.

    >>> log = EventLog.from_arrays(
    ...     np.ones((2, 1)), [["a"]], [0] * 3, ["a"] * 3, [0, 0, 1], visitor=[0, 1, 0])
    >>> groups = VisitorGroups.of(log, Blocks.of(log))
    >>> bool(groups.number[0] == groups.number[2])
    True
    """

    number: Slots  # (n,) from 0 to GROUPS − 1
    blocks: int

    @classmethod
    def of(cls, log: EventLog, blocks: Blocks) -> VisitorGroups | None:
        """None if no visitor is known to have returned, or if there are too many blocks."""
        visitor = log.visitor_number
        if visitor is None or blocks.count * GROUPS > MAX_CELLS:
            return None
        known = visitor[visitor >= 0]
        if not len(known) or len(np.unique(known)) == len(known):
            return None
        # One who is not known comes once: by the number of the event, apart from those known.
        alone = np.arange(len(visitor)) + int(known.max()) + 1
        return cls(_scatter(np.where(visitor >= 0, visitor, alone), GROUPS), blocks.count)

    def cells(self, blocks: Slots, start: int) -> Slots:
        """The cell of events from `start` on, whose blocks are given."""
        here = self.number[start : start + len(blocks)]
        return (blocks * np.int32(GROUPS) + here).astype(np.int32)

    @property
    def count(self) -> int:
        """How many cells there are."""
        return self.blocks * GROUPS

    def folded(self, sums: Floats) -> tuple[Floats, VisitorSums]:
        """Sums (…, cells, 4) by block, (…, blocks, 4); and by group, and by bin of cells."""
        shape = (*sums.shape[:-2], self.blocks, GROUPS, sums.shape[-1])
        apart = sums.reshape(shape)
        bins = _scatter(np.arange(self.count), CELL_BINS)
        by_bin = np.zeros((*sums.shape[:-2], CELL_BINS, sums.shape[-1]))
        flat, flat_bins = sums.reshape(-1, *sums.shape[-2:]), by_bin.reshape(-1, *by_bin.shape[-2:])
        for each, out in zip(flat, flat_bins, strict=True):
            np.add.at(out, bins, each)
        return apart.sum(axis=-2), VisitorSums(apart.sum(axis=-3), by_bin)


@dataclass(frozen=True)
class VisitorSums:
    """Sums over groups of visitors, and over bins of what groups did within blocks."""

    groups: Floats  # (…, GROUPS, 4)
    cells: Floats  # (…, CELL_BINS, 4)

    def at(self, place: int) -> VisitorSums:
        """Those of one bucket."""
        return VisitorSums(self.groups[place], self.cells[place])


def _scatter(numbers: NDArray[np.int64], places: int) -> Slots:
    """A place for each number, as if by chance, the same every time."""
    mixed = (numbers.astype(np.uint64) + np.uint64(1)) * _GOLDEN
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    return (mixed % np.uint64(places)).astype(np.int32)
