"""Errors clustered two ways: what happens within a block of time, and what one visitor does.

Events of one hour depend on one another, and so do events of one visitor, who clicks more or less
than others. Sums over blocks know the first, sums over visitors the second; what a visitor did
within one block (a cell) is in both, and is taken away once (Cameron, Gelbach and Miller 2011):

    such days:   Σ_blocks e² + Σ_visitors e² − Σ_cells e²
    these days:  Σ_cells (e − block's mean)² + Σ_visitors e² − Σ_cells e²

The first is about days like those of the log: its hours could have been others. The blocks' part
follows their measured dependence (`evaluation.dependence`). The second is about these very hours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topstory.evaluation.blocks import Blocks
from topstory.evaluation.dependence import ENOUGH, Dependence
from topstory.evaluation.intervals import Variance, freedom, variance
from topstory.evaluation.replays.prepared_log import chunks
from topstory.events import EventLog
from topstory.kernels.compilation import Floats, Slots
from topstory.kernels.scans.clusters import add_clusters

UNKNOWN = Variance(float("nan"), 0.0)


@dataclass(frozen=True)
class ClusteredError:
    """How sure an estimate is."""

    such_days: Variance
    these_days: Variance
    dependence: Dependence  # of its blocks
    days_needed: int | None = None  # by a log that is not too short; None: days are not known

    @property
    def known(self) -> bool:
        """Whether there can be an interval for such days."""
        return self.such_days.freedom >= 1 and not self.dependence.too_short

    def limited(self, events: float) -> ClusteredError:
        """With no more degrees of freedom than events that the variances rest on."""
        such, these = (
            each if each.freedom < 1 else Variance(each.value, min(each.freedom, events))
            for each in (self.such_days, self.these_days)
        )
        return replace(self, such_days=such, these_days=these)


@dataclass(frozen=True)
class ClusteredSums:
    """Sums of some columns over all events of a log; the last column is 1 for each event."""

    by_block: Floats  # (blocks, q)
    by_visitor: Floats  # (visitors, q), of those who came at all; (0, q) where none is known
    cells: Floats  # (q, q) products of the sums over one visitor's events in one block
    singles: Floats  # (q, q) the same of events whose visitor is unknown
    returning: bool  # whether some visitor came more than once
    blocks: Blocks

    @property
    def total(self) -> Floats:
        """(q,) over all events."""
        return np.asarray(self.by_block.sum(axis=0))

    @property
    def these_hours(self) -> bool:
        """Whether intervals are for the log's own hours: it has too few to speak of others."""
        return self.blocks.origin is not None and self.blocks.count < ENOUGH

    def error(self, gradient: Floats, sizes: Floats) -> ClusteredError:
        """Of an estimate.

        Args:
            gradient: (q,) a cluster with the sums c adds c @ gradient to the estimate's error.
            sizes: (q,) and c @ sizes is its size, at least 0.
        """
        errors, shares = self.by_block @ gradient, _shares(self.by_block @ sizes)
        found = Dependence.of(errors)
        days = None if self.blocks.origin is None else self.blocks.days_of(found.needed)
        if len(shares) < 2 or not 0 < shares.max() < 1:
            return ClusteredError(UNKNOWN, UNKNOWN, found)
        such = Variance(
            float(variance(shares, errors)) * found.inflation,
            min(float(freedom(shares)), found.freedom),
        )
        counts = self.by_block[:, -1]
        means = errors[counts > 0] ** 2 / counts[counts > 0]
        apart = float(gradient @ (self.cells + self.singles) @ gradient - means.sum())
        these = Variance(max(0.0, apart), max(1.0, float(counts.sum()) - len(means)))
        own = self._visitors(gradient, sizes)
        return ClusteredError(such + own, these + own, found, days)

    def _visitors(self, gradient: Floats, sizes: Floats) -> Variance:
        """What visitors add to the variance, beyond what they do within one block."""
        if not self.returning:
            return Variance(0.0, 1.0)
        shares = _shares(self.by_visitor @ sizes)
        if not 0 < shares.max() < 1:
            return UNKNOWN
        own = float(variance(shares, self.by_visitor @ gradient))
        own -= float(gradient @ self.cells @ gradient)
        return Variance(max(0.0, own), float(freedom(shares)))


def _shares(sizes: Floats) -> Floats:
    total = sizes.sum()
    return np.asarray(sizes / total if total > 0 else np.zeros_like(sizes))


def clustered_sums(
    log: EventLog, width: int, columns: Callable[[int, int], Floats]
) -> ClusteredSums:
    """Add up columns over a log.

    Args:
        log: whose events they belong to.
        width: q, how many columns.
        columns: (start, stop) -> (q, stop − start) their values for these events, the last 1.
    """
    blocks, visitor = Blocks.of(log), log.visitor_number
    by_block = np.zeros((blocks.count, width))
    count = 0 if visitor is None else int(visitor.max(initial=-1)) + 1
    by_visitor, cell = np.zeros((count, width)), np.zeros((count, width))
    cell_block = np.full(count, -1, np.int32)
    cells, singles = np.zeros((width, width)), np.zeros((width, width))
    for start, stop in chunks(len(log)):
        who = np.zeros(0, np.int64) if visitor is None else visitor[start:stop]
        block, values = blocks.numbers(log, start, stop), columns(start, stop)
        add_events(block, who, values, by_block, by_visitor, cell, cell_block, cells, singles)
    came = cell_block >= 0
    cells, singles = whole(cells) + cell[came].T @ cell[came], whole(singles)
    returning = visitor is not None and int(came.sum()) < int((visitor >= 0).sum())
    return ClusteredSums(by_block, by_visitor[came], cells, singles, returning, blocks)


def add_events(
    block: Slots,
    visitor: NDArray[np.int64],
    columns: Floats,
    by_block: Floats,
    by_visitor: Floats,
    cell: Floats,
    cell_block: Slots,
    cells: Floats,
    singles: Floats,
) -> None:
    """`kernels.scans.clusters.add_clusters`, with its own room."""
    room = np.empty(len(columns))
    add_clusters(
        *(block, visitor, columns, by_block, by_visitor, cell, cell_block, cells, singles, room)
    )


def whole(triangle: Floats) -> Floats:
    """The symmetric matrix of a lower triangle."""
    return np.asarray(triangle + np.tril(triangle, -1).T)
