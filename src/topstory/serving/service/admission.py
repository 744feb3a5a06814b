"""How much may be asked: work that waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from time import perf_counter

from topstory.serving.api.errors import ApiError

SLICE_SECONDS = 0.02  # of decisions without a break: others are answered in between
MAX_PIECES = 20  # of spare-time work that wait
UNIT_SECONDS = 1e-9  # of one article for one number of its d × d matrix, until it is measured


class QueueTime:
    """How long it will take to make the decisions that wait. If too long, more are refused at once.

    What a decision takes is measured. While some have to wait for a later turn, the time between
    turns shows how much slower they are really made: there are requests to be read and answers to
    be sent, and other programs.

    >>> queue = QueueTime(limit=0.1)
    >>> queue.turned({}, {"front": (10, 0.4)}, now=1.0)
    >>> queue.each["front"], queue.slices["front"]
    (0.04, 1)
    >>> queue.turned({"front": 2}, {"front": (10, 0.4)}, now=2.0)
    >>> round(queue.waiting, 2)
    0.08
    >>> queue.turned({"front": 2}, {"front": (10, 0.4)}, now=2.8)  # twice as long as the work
    >>> round(queue.waiting, 3)
    0.096
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.waiting = 0.0  # seconds, of all that was admitted
        self.each: dict[str, float] = {}  # seconds until one more decision is made, by pool
        self.slices: dict[str, int] = {}  # decisions that may be made without a break, by pool
        # Seconds of work for one decision, by pool: as measured, and as the articles' number says.
        self._measured: dict[str, float] = {}
        self._expected: dict[str, float] = {}
        self._slowness = 1.0  # time that passes while a second of this work is done
        self._last: tuple[float, float] | None = None  # turn: when it was, its work; if some waited

    def refusal(self) -> ApiError:
        """The error for one decision more."""
        return overloaded(f"decisions for {self.waiting:.2g} seconds are waiting")

    def expect(self, pool: str, articles: int, dimension: int) -> None:
        """The pool has so many articles."""
        self._expected[pool] = work = UNIT_SECONDS * articles * dimension**2
        self.each[pool] = max(self.each.get(pool, 0.0), work * self._slowness)
        most = max(1, int(SLICE_SECONDS / max(work, 1e-9)))
        self.slices[pool] = min(self.slices.get(pool, most), most)

    def turned(
        self, left: Mapping[str, int], made: Mapping[str, tuple[int, float]], now: float
    ) -> None:
        """A turn is over.

        By pool: how many decisions wait for the next one, how many were made, and the work.
        """
        work = 0.0
        for pool, (count, seconds) in made.items():
            before, work = self._measured.get(pool), work + seconds
            # At most twice as slow as before: one long pause says nothing of the next turns.
            one = seconds / count if before is None else min(seconds / count, 2 * before)
            self._measured[pool] = one if before is None else 0.8 * before + 0.2 * one
        slowness = 1.0
        if self._last is not None:
            then, done = self._last
            slowness = min((now - then) / max(done, 1e-6), 2 * self._slowness)
        self._slowness = max(1.0, 0.8 * self._slowness + 0.2 * slowness)
        self._last = (now, work) if left else None
        for pool in made:
            work = max(self._measured[pool], self._expected.get(pool, 0.0), 1e-9)
            self.each[pool] = work * self._slowness
            self.slices[pool] = max(1, int(SLICE_SECONDS / work))
        self.waiting = sum(count * self.each.get(pool, 0.0) for pool, count in left.items())


class SpareTime:
    """Work beside decisions that nobody needs at once: a third of the time of a process at most.

    One piece at a time. After it the next one waits for twice as long as it took; decisions do not.
    If many wait already, one more is refused.
    """

    def __init__(self) -> None:
        self._turn, self._waiting = asyncio.Lock(), 0
        self._free = 0.0  # when the next piece may begin

    @asynccontextmanager
    async def piece(self) -> AsyncIterator[None]:
        """Wait for one's turn. Inside nothing is awaited."""
        if self._waiting >= MAX_PIECES:
            raise overloaded(f"{MAX_PIECES} others are waiting for this")
        self._waiting += 1
        try:
            async with self._turn:
                await asyncio.sleep(max(0.0, self._free - perf_counter()))
                began = perf_counter()
                try:
                    yield
                finally:
                    ended = perf_counter()
                    self._free = ended + 2 * (ended - began)
        finally:
            self._waiting -= 1


def overloaded(why: str) -> ApiError:
    """The error if there is more to do than can be done in time."""
    return ApiError(503, "overloaded", f"{why}; try again later")
