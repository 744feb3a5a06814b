"""Events cut by their users into blocks, over which a fit is a sum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from topstory.kernels.bilinear import log_loss, scores
from topstory.kernels.compilation import Counters, Floats, Slots

Values = npt.NDArray[np.float32]
Sparse = sparse.csr_array[Any, tuple[int, int]]

EVENTS = 250_000  # of a block, about: each has a gradient of its own, which must be worth it
FEWEST, MOST = 4, 64  # blocks
TILE = 8192  # users, whose raw features stay in the cache


def block_count(rows: int) -> int:
    """How many blocks, whatever the engine: so sums are added in one order, and come out the same.

    >>> block_count(1000), block_count(2_000_000), block_count(10**9)
    (4, 8, 64)
    """
    return min(MOST, max(FEWEST, rows // EVENTS))


@dataclass(frozen=True, eq=False)
class Events:
    """Some events of a block, in cells: a cell for each tile of users and article."""

    row: Slots  # (n,) the user's row in the block
    starts: Counters  # (tiles · A + 1,) where each cell's events begin
    clicks: Values  # (n,)

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def of(
        cls, row: npt.NDArray[Any], shown: npt.NDArray[Any], clicks: Values, articles: int
    ) -> Events:
        """From events in any order."""
        cell = row // TILE * articles + shown
        order = np.lexsort((row, cell))
        counts = np.bincount(cell, minlength=articles)
        counts = np.pad(counts, (0, -len(counts) % articles))
        return cls(
            row[order].astype(np.int32),
            np.concatenate(([0], np.cumsum(counts, dtype=np.int64))),
            clicks[order].astype(np.float32),
        )


@dataclass(frozen=True, eq=False)
class Block:
    """Some users, raw and encoded, and all their events: to learn from, and held out."""

    indptr: Counters
    indices: Slots
    values: Values
    learned: Events
    held_out: Events

    def loss(self, weights: Floats, intercept: float) -> tuple[float, float, Floats]:
        """Log loss, its slope by the intercept, and its gradient (A, D) by Wφ_a."""
        gradient: Floats = np.zeros(weights.shape)
        events = self.learned
        users = (self.indptr, self.indices, self.values)
        loss, slope = log_loss(
            *users, events.row, events.starts, events.clicks, weights, intercept, gradient
        )
        return loss, slope, gradient

    def scores(self, weights: Floats, intercept: float) -> Floats:
        """The scores of the events that are held out."""
        out: Floats = np.empty(len(self.held_out))
        row, starts = self.held_out.row, self.held_out.starts
        users = (self.indptr, self.indices, self.values)
        scores(*users, row, starts, weights, intercept, out)
        return out


def cut_users(users: Sparse, share: npt.NDArray[Any], blocks: int) -> Iterator[tuple[int, int]]:
    """Ranges of users with about equal shares of the work."""
    total = np.cumsum(share, dtype=np.float64)
    bounds = np.searchsorted(total, np.linspace(0, total[-1], blocks + 1)[1:-1])
    edges = np.unique([0, *bounds, users.shape[0]])
    yield from zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)


def rows_of(users: Sparse, start: int, stop: int) -> tuple[Counters, Slots, Values]:
    """The users start … stop − 1 as CSR arrays; indices and values are views."""
    indptr = users.indptr[start : stop + 1].astype(np.int64)
    low, high = int(indptr[0]), int(indptr[-1])
    return (
        indptr - low,
        users.indices[low:high].astype(np.int32, copy=False),
        users.data[low:high].astype(np.float32, copy=False),
    )


def cut_events(
    users: Sparse,
    articles: int,
    visitor: npt.NDArray[Any],
    shown: npt.NDArray[Any],
    clicks: Values,
    held_out: npt.NDArray[np.bool_],
    blocks: int | None = None,
) -> Iterator[Block]:
    """Blocks of users with their events; a user's events are all in one."""
    share = np.bincount(visitor, minlength=users.shape[0])
    order = np.argsort(visitor, kind="stable")
    ends = np.concatenate(([0], np.cumsum(share)))
    for start, stop in cut_users(users, share, blocks or block_count(len(visitor))):
        mine = order[ends[start] : ends[stop]]
        parts = [
            Events.of(visitor[rows] - start, shown[rows], clicks[rows], articles)
            for rows in (mine[~held_out[mine]], mine[held_out[mine]])
        ]
        yield Block(*rows_of(users, start, stop), *parts)
