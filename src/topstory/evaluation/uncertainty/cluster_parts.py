"""Clustered sums of a log that is in no one memory: made of its parts, and joined in their order.

Only one thing spans two parts: what a visitor does within one block (a cell), if a part ends in the
middle of it. So a part keeps the first cell of each visitor apart, and leaves the last one open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topstory.evaluation.blocks import Blocks
from topstory.evaluation.uncertainty.clusters import ClusteredSums, add_events, whole
from topstory.kernels.compilation import Floats, Slots

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ClusterRun:
    """Sums over some events in their order, as if none came before; by visitors that came."""

    block: Slots  # (b,) the blocks with events
    by_block: Floats  # (b, q)
    visitor: NDArray[np.int64]  # (v,) who came
    by_visitor: Floats  # (v, q)
    open_block: Slots  # (v,) the block of the visitor's last cell, to which more may belong
    open_cell: Floats  # (v, q)
    cells: Floats  # (q, q) of the cells before
    singles: Floats  # (q, q)
    known: int  # events with a visitor

    @classmethod
    def of(cls, block: Slots, visitor: NDArray[np.int64], columns: Floats) -> ClusterRun:
        """Of events: `columns` is (q, n), `visitor` (n,) or (0,) if none is known."""
        q = len(columns)
        blocks, own = np.unique(block, return_inverse=True)
        came, person = np.unique(visitor[visitor >= 0], return_inverse=True)
        number = np.full(len(visitor), -1, np.int64)
        number[visitor >= 0] = person
        by_block, by_visitor, cell = (np.zeros((n, q)) for n in (len(blocks), *[len(came)] * 2))
        cell_block = np.full(len(came), -1, np.int32)
        cells, singles = np.zeros((q, q)), np.zeros((q, q))
        at = own.astype(np.int32)
        add_events(at, number, columns, by_block, by_visitor, cell, cell_block, cells, singles)
        return cls(
            blocks.astype(np.int32),
            by_block,
            came,
            by_visitor,
            blocks[cell_block].astype(np.int32) if len(came) else cell_block,
            cell,
            cells,
            singles,
            len(person),
        )


def part_runs(
    block: Slots, visitor: NDArray[np.int64], columns: Floats
) -> tuple[ClusterRun, ClusterRun]:
    """The first cell of each visitor; and all else."""
    first = _first_cells(block, visitor)

    def run(rows: Mask) -> ClusterRun:
        own = visitor[rows] if len(visitor) else visitor
        return ClusterRun.of(block[rows], own, np.ascontiguousarray(columns[:, rows]))

    return run(first), run(~first)


def _first_cells(block: Slots, visitor: NDArray[np.int64]) -> Mask:
    """(n,) whether an event is in its visitor's first block, before any other; not if unknown."""
    found = np.zeros(len(block), bool)
    if not len(visitor):
        return found
    order = np.argsort(visitor, kind="stable")
    person, at = visitor[order], block[order]
    starts = np.flatnonzero(np.concatenate(([True], person[1:] != person[:-1])))
    changed = np.concatenate(([False], (at[1:] != at[:-1]) & (person[1:] == person[:-1])))
    changes = np.cumsum(changed)
    before = np.repeat(changes[starts], np.diff(np.append(starts, len(order))))
    found[order] = (changes == before) & (person >= 0)
    return found


class ClusterJoin:
    """Joins the runs of parts, which come in the log's order."""

    def __init__(self, blocks: Blocks, width: int) -> None:
        self._blocks, self._width = blocks, width
        self._by_block = np.zeros((blocks.count, width))
        self._by_visitor, self._cell = np.zeros((0, width)), np.zeros((0, width))
        self._cell_block = np.zeros(0, np.int32)
        self._cells, self._singles = np.zeros((width, width)), np.zeros((width, width))
        self._known = 0

    def add(self, begin: ClusterRun, end: ClusterRun) -> None:
        """A part's first cells, and its rest."""
        self._add(begin, begin.open_block)
        self._add(end, None)

    def _add(self, run: ClusterRun, continues: Slots | None) -> None:
        self._by_block[run.block] += run.by_block
        self._singles += run.singles
        self._cells += run.cells
        self._known += run.known
        who = run.visitor
        if not len(who):
            return
        self._make_room(int(who.max()) + 1)
        self._by_visitor[who] += run.by_visitor
        before = self._cell_block[who]
        same = np.zeros(len(who), bool) if continues is None else before == continues
        ended = self._cell[who[(before >= 0) & ~same]]
        self._cells += np.tril(ended.T @ ended)
        self._cell[who] = np.where(same[:, None], self._cell[who], 0.0) + run.open_cell
        self._cell_block[who] = run.open_block

    def _make_room(self, count: int) -> None:
        have = len(self._cell_block)
        if count <= have:
            return
        more = max(count, 2 * have) - have
        rows: Any = ((0, more), (0, 0))
        self._by_visitor, self._cell = (np.pad(a, rows) for a in (self._by_visitor, self._cell))
        self._cell_block = np.pad(self._cell_block, (0, more), constant_values=-1)

    def sums(self) -> ClusteredSums:
        """The sums over all parts."""
        came = self._cell_block >= 0
        last = self._cell[came]
        return ClusteredSums(
            self._by_block,
            self._by_visitor[came],
            whole(self._cells) + last.T @ last,
            whole(self._singles),
            int(came.sum()) < self._known,
            self._blocks,
        )
