"""Events split into blocks; the loss and its gradient are sums over blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from topstory.events.folder.stream import FileGroup, RawFolder
from topstory.features.regression.labels import check_clicks, held_out_mask
from topstory.kernels.bilinear import counting_sort, log_loss, scores, second_moments
from topstory.kernels.compilation import Counters, Floats, Slots

Values = npt.NDArray[np.float32]
Sparse = sparse.csr_array[Any, tuple[int, int]]
UserRows = tuple[Counters, Slots, Values]  # of users: indptr, indices and values of their φ

BLOCK_EVENTS = 250_000  # about; each block has its own gradient, which must be worth it
MIN_BLOCKS, MAX_BLOCKS = 4, 64  # blocks
TILE_USERS = 8192  # so many users' raw features stay in the cache


def block_count(rows: int) -> int:
    """How many blocks; the same for all engines, so that sums are added in the same order.

    >>> block_count(1000), block_count(2_000_000), block_count(10**9)
    (4, 8, 64)
    """
    return min(MAX_BLOCKS, max(MIN_BLOCKS, rows // BLOCK_EVENTS))


@dataclass(frozen=True, eq=False)
class EventCells:
    """Events sorted into cells: one cell for each tile of users and each article."""

    row: Slots  # (n,) the user
    starts: Counters  # (tiles · A + 1,) where each cell's events begin
    clicks: Values  # (n,)

    def __len__(self) -> int:
        return len(self.row)

    def shown(self, articles: int) -> Counters:
        """(A,) how often each article was shown."""
        counts: Counters = np.diff(self.starts).reshape(-1, articles).sum(axis=0)
        return counts

    @classmethod
    def of(
        cls, row: npt.NDArray[Any], shown: npt.NDArray[Any], clicks: Values, articles: int
    ) -> EventCells:
        """From events in any order."""
        first = int(row.min()) if len(row) else 0
        tile = (row - first) // TILE_USERS
        cell = (tile * articles + shown).astype(np.int32)
        cells = -(-(int(cell.max(initial=0)) + 1) // articles) * articles
        order, starts = sorted_by(cell, cells)
        return cls(row[order].astype(np.int32), starts, clicks[order].astype(np.float32))


@dataclass(frozen=True, eq=False)
class EventBlock:
    """Events to learn from, and events held out. Their users' φ are passed to each method."""

    learned: EventCells
    held_out: EventCells

    def loss(
        self, users: UserRows, weights: Floats, intercept: float
    ) -> tuple[float, float, Floats]:
        """Log loss, its slope by the intercept, and its gradient (A, D) by Wφ_a."""
        gradient: Floats = np.zeros(weights.shape)
        events = self.learned
        loss, slope = log_loss(
            *users, events.row, events.starts, events.clicks, weights, intercept, gradient
        )
        return loss, slope, gradient

    def scores(self, users: UserRows, weights: Floats, intercept: float) -> Floats:
        """The scores of the events that are held out."""
        out: Floats = np.empty(len(self.held_out))
        scores(*users, self.held_out.row, self.held_out.starts, weights, intercept, out)
        return out

    def moments(self, users: UserRows, width: int, every: int) -> tuple[float, Floats]:
        """Of every `every`-th user: how many events to learn from, and their Σ φ_u φ_uᵀ (D, D)."""
        times = np.bincount(self.learned.row)[::every].astype(np.float64)
        came = np.flatnonzero(times)
        half: Floats = np.zeros((width, width))
        second_moments(*users, (came * every).astype(np.int32), times[came], half)
        return float(times.sum()), half + half.T - np.diag(np.diag(half))

    def shown(self, articles: int) -> Counters:
        """(A,) how often each article was shown."""
        return self.learned.shown(articles) + self.held_out.shown(articles)


def sorted_by(keys: Slots, size: int) -> tuple[Slots, Counters]:
    """The stable order that sorts keys from 0 … size − 1, and where each key begins.

    >>> order, starts = sorted_by(np.array([2, 0, 2, 1], np.int32), 4)
    >>> order.tolist(), starts.tolist()
    ([1, 3, 0, 2], [0, 1, 2, 4, 4])
    """
    starts = np.concatenate(([0], np.cumsum(np.bincount(keys, minlength=size), dtype=np.int64)))
    order = np.empty(len(keys), np.int32)
    counting_sort(keys, starts[:-1].copy(), order)
    return order, starts


def cut_users(users: Sparse, share: npt.NDArray[Any], blocks: int) -> Iterator[tuple[int, int]]:
    """Ranges of users with about equal shares of the work."""
    total = np.cumsum(share, dtype=np.float64)
    bounds = np.searchsorted(total, np.linspace(0, total[-1], blocks + 1)[1:-1])
    edges = np.unique([0, *bounds, users.shape[0]])
    yield from zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)


def rows_of(users: Sparse, start: int = 0, stop: int | None = None) -> UserRows:
    """The users start … stop − 1 as CSR arrays; indices and values are views."""
    stop = users.shape[0] if stop is None else stop
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
) -> Iterator[EventBlock]:
    """Blocks of events. All events of a user are in one block, so a block needs few users' φ."""
    order, ends = sorted_by(visitor.astype(np.int32, copy=False), users.shape[0])
    share = np.diff(ends)
    for start, stop in cut_users(users, share, blocks or block_count(len(visitor))):
        mine = order[ends[start] : ends[stop]]
        aside = held_out[mine]
        yield EventBlock(
            *(
                EventCells.of(visitor[rows], shown[rows], clicks[rows], articles)
                for rows in (mine[~aside], mine[aside])
            )
        )


@dataclass(frozen=True)
class FolderBlocks:
    """Makes a block from files of a log; small enough to send to every worker."""

    source: RawFolder
    share: float  # of the events, to hold out
    seed: int

    def __call__(self, part: FileGroup) -> EventBlock:
        """The events of some files, with those held out separated."""
        visitor, shown, clicks = self.source.read(part)
        if len(clicks):  # files may be empty, even if the log is not
            check_clicks(clicks)
        aside = held_out_mask(self.seed, self.share, part.events, part.start)
        articles = len(self.source.article_ids)
        return EventBlock(
            *(
                EventCells.of(visitor[some], shown[some], clicks[some], articles)
                for some in (~aside, aside)
            )
        )
