"""What a model of what was shown is given, and what it answers."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from topstory.events import EventLog
from topstory.events.columns.array_record import blocks as pieces
from topstory.kernels.compilation import Counters, Floats, Slots

HOUR = 3_600_000_000  # microseconds
EVENTS_FOR_ARTICLE = 20  # for each article of a pool, on average, in a block of time


class Parts(NamedTuple):
    """Which block of time, and which fold, each event belongs to."""

    block: Slots  # (n,)
    blocks: int
    fold: NDArray[np.uint8]  # (n,) by the visitor, where that is known
    folds: int


class ShowModel(Protocol):
    """Chances of what could have been shown, each from a model that has not seen the event."""

    name: ClassVar[str]
    words: ClassVar[str]  # how it estimates, if chances change with time
    words_steady: ClassVar[str]  # and if they do not

    def all(self, start: int, stop: int) -> tuple[Counters, Floats]:
        """The chances of all articles of each pool, end to end; and where each begins."""


def parts_of(log: EventLog, folds: int) -> Parts:
    """Blocks of an hour or more: as fine as the number of events allows.

    >>> log = EventLog.from_arrays(np.ones((99, 1)), [["a", "b"]], [0] * 99, ["a"] * 99, [0] * 99)
    >>> parts_of(log, 3).blocks, parts_of(log, 3).fold[:4].tolist()
    (2, [0, 1, 2, 0])
    """
    n = len(log)
    mean_size = float(log.pool_sizes[log.pool].mean())
    most = max(1, int(n / (EVENTS_FOR_ARTICLE * mean_size)))
    block = np.empty(n, np.int32)
    if log.times is None:
        count = most
        block[:] = np.arange(n, dtype=np.int64) * count // n
    else:
        span = (int(log.times.ticks.max()) - int(log.times.ticks.min())) * log.times.unit
        count = min(most, max(1, -(-span // HOUR)))
        earliest = int(log.times.ticks.min())
        for start, stop in pieces(n):
            since = (log.times.ticks[start:stop].astype(np.int64) - earliest) * log.times.unit
            block[start:stop] = np.minimum(since * count // max(1, span), count - 1)
    number = np.arange(n)
    visitor = log.visitor_number
    if visitor is not None:
        number = np.where(visitor >= 0, visitor, number)
    return Parts(block, int(count), (number % folds).astype(np.uint8), folds)
