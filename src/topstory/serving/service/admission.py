"""How much may be asked: work that waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import exp
from time import perf_counter

from topstory.serving.api.errors import ApiError

SLICE_SECONDS = 0.02  # of decisions without a break: others are answered in between
BESIDE_SECONDS = 2e-5  # of one decision beside its work, until it is measured
MEMORY_SECONDS = 0.5  # so much of the past counts
MAX_PIECES = 20  # of spare-time work that wait
UNIT_SECONDS = 1e-9  # of one article for one number of its d × d matrix, until it is measured


class QueueTime:
    """How long it will take until all who were admitted have answers. If too long, no more are.

    A decision takes its own work, which is measured, and a share of what is done beside: requests
    are read, batches committed, answers sent, and other programs run. That share is the time that
    passes between turns while requests wait, over all answers sent meanwhile: some turns send none,
    and others those to thousands.

    >>> queue = QueueTime(limit=0.1)
    >>> queue.proposing("front", 10)
    >>> queue.turned({}, {"front": (10, 0.4)}, now=1.0)
    >>> round(queue.each["front"], 3), queue.slices["front"], round(queue.waiting, 2)
    (0.04, 1, 0.4)
    >>> queue.answered("front", 10)
    >>> round(queue.waiting, 2)
    0.0
    >>> for turn in range(100):  # twice as long as the work
    ...     queue.proposing("front", 10)
    ...     queue.answered("front", 10)
    ...     queue.turned({"front": 2}, {"front": (10, 0.4)}, now=2.0 + 0.8 * turn)
    >>> round(queue.waiting, 2)
    0.16
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.waiting = 0.0  # seconds, of all that was admitted
        self.each: dict[str, float] = {}  # seconds until one more decision is answered, by pool
        self.least = BESIDE_SECONDS  # of these
        self.slices: dict[str, int] = {}  # decisions that may be made without a break, by pool
        self._proposed: dict[str, int] = {}  # and not answered, by pool
        # Seconds of work for one decision, by pool: as measured, and as the articles' number says.
        self._measured: dict[str, float] = {}
        self._expected: dict[str, float] = {}
        # Seconds beside the work, and answers sent meanwhile: of the last moments.
        self._beside, self._answers = BESIDE_SECONDS, 1.0
        self._new_answers = 0  # since the last turn
        self._last: float | None = None  # when the last turn ended; None: nobody waited

    def refusal(self) -> ApiError:
        """The error for one decision more."""
        return overloaded(f"decisions for {self.waiting:.2g} seconds are waiting")

    def expect(self, pool: str, articles: int, dimension: int) -> None:
        """The pool has so many articles."""
        self._expected[pool] = UNIT_SECONDS * articles * dimension**2
        self._estimate(pool)

    def proposing(self, pool: str, count: int) -> None:
        """So many decisions are proposed now, and answered some time."""
        self._proposed[pool] = self._proposed.get(pool, 0) + count

    def answered(self, pool: str, count: int) -> None:
        """So many of them have their answers."""
        self._proposed[pool] = max(0, self._proposed[pool] - count)
        self._new_answers += count
        waiting = self.waiting - count * self.each.get(pool, 0.0)
        self.waiting = waiting if waiting > 1e-9 else 0.0  # or nobody waits, but for rounding

    def postponed(self, pool: str, count: int) -> None:
        """So many of them wait for another turn."""
        self._proposed[pool] = max(0, self._proposed[pool] - count)

    def turned(
        self, left: Mapping[str, int], made: Mapping[str, tuple[int, float]], now: float
    ) -> None:
        """A turn is over.

        By pool: how many decisions wait for the next one, how many were proposed, and the work.
        """
        work = 0.0
        for pool, (number, seconds) in made.items():
            before, work = self._measured.get(pool), work + seconds
            # At most twice as slow as before: one long pause says nothing of the next turns.
            one = seconds / number if before is None else min(seconds / number, 2 * before)
            self._measured[pool] = one if before is None else 0.8 * before + 0.2 * one
        if self._last is not None:
            elapsed, count = now - self._last, self._new_answers
            usual = self._beside * max(1, count) / self._answers
            beside = max(0.0, min(elapsed - work, self._beside + usual))  # as above
            fade = exp(-(work + beside) / MEMORY_SECONDS)
            self._beside = max(1e-9, fade * self._beside + beside)
            self._answers = max(1e-3, fade * self._answers + count)
        self._last, self._new_answers = (now if left else None), 0
        for pool in made:
            self._estimate(pool)
        waiting = 0.0
        for pool, one in self.each.items():
            waiting += (left.get(pool, 0) + self._proposed.get(pool, 0)) * one
        self.waiting = waiting

    def _estimate(self, pool: str) -> None:
        work = max(self._measured.get(pool, 0.0), self._expected.get(pool, 0.0))
        self.each[pool] = one = work + self._beside / self._answers
        self.slices[pool] = max(1, int(SLICE_SECONDS / one))
        self.least = min(self.each.values())


class SpareTime:
    """Work beside decisions that nobody needs at once: a third of the time of a process at most.

    One piece at a time. After it the next one waits for twice as long as it took; decisions do not.
    If `most` wait already, one more is refused.
    """

    def __init__(self, most: int = MAX_PIECES) -> None:
        self._turn, self._waiting, self._most = asyncio.Lock(), 0, most
        self._free = 0.0  # when the next piece may begin

    @asynccontextmanager
    async def piece(self) -> AsyncIterator[None]:
        """Wait for one's turn. Inside nothing is awaited."""
        if self._waiting >= self._most:
            raise overloaded(f"{self._most} others are waiting for this")
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
