"""How much may be asked and taught: work that waits, and decisions of one visitor."""

from __future__ import annotations

from topstory.serving.api.errors import ApiError
from topstory.serving.journal.clock import SECOND

HOUR = 3_600 * SECOND
MAX_VISITORS = 200_000  # remembered at a time


class VisitorCaps:
    """Counts the decisions of each visitor in this hour. Each process counts its own.

    >>> caps = VisitorCaps(2)
    >>> [caps.teaches("ann", at=0) for _ in range(3)], caps.teaches("ann", at=HOUR)
    ([True, True, False], True)
    """

    def __init__(self, cap: int) -> None:
        self._cap, self._hour = cap, 0
        self._counts: dict[str, int] = {}
        self.exceeded = 0  # decisions that did not teach

    def teaches(self, visitor: str, at: int) -> bool:
        """Count a decision; whether the policy may learn from it."""
        counts = self._counts
        if at // HOUR != self._hour or len(counts) > MAX_VISITORS:
            self._hour = at // HOUR
            counts.clear()
        counts[visitor] = count = counts.get(visitor, 0) + 1
        self.exceeded += count > self._cap
        return count <= self._cap


SLICE_SECONDS = 0.02  # of decisions without a break: others are answered in between
UNIT_SECONDS = 1e-9  # of one article for one number of its d × d matrix, until it is measured


class QueueTime:
    """How long the decisions that wait will take. If it is too long, more are refused at once.

    >>> queue = QueueTime(limit=0.1)
    >>> queue.measured("front", decisions=10, seconds=0.4)
    >>> queue.admit("front"), queue.admit("front"), queue.slice("front")
    (None, None, 1)
    >>> queue.admit("front")
    Traceback (most recent call last):
    topstory.serving.api.errors.ApiError: decisions for 0.12 seconds are waiting; try again later
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._waiting = 0.0
        # Seconds of one decision, by pool: as measured, and as the number of articles says.
        self._measured: dict[str, float] = {}
        self._expected: dict[str, float] = {}
        self._each: dict[str, float] = {}  # the larger of the two

    def admit(self, pool: str) -> None:
        """Count one more decision; ApiError if those before it take too long."""
        after = self._waiting + self._each.get(pool, 0.0)
        if after > self._limit and self._waiting:
            raise overloaded(f"decisions for {after:.2g} seconds are waiting")
        self._waiting = after

    def gave_up(self, pool: str, waited: float) -> bool:
        """Whether a decision waited for so long that it is refused after all.

        The machine was busy with something else: work is measured in this thread's own time.
        """
        if waited <= self._limit:
            return False
        self._waiting = max(0.0, self._waiting - self._each.get(pool, 0.0))
        return True

    def slice(self, pool: str) -> int:
        """How many decisions may be made without a break."""
        return max(1, int(SLICE_SECONDS / max(self._each.get(pool, 0.0), 1e-9)))

    def expect(self, pool: str, articles: int, dimension: int) -> None:
        """The pool has so many articles."""
        self._expected[pool] = expected = UNIT_SECONDS * articles * dimension**2
        self._each[pool] = max(expected, self._measured.get(pool, 0.0))

    def measured(self, pool: str, decisions: int, seconds: float) -> None:
        """So many decisions were made in this time."""
        each, before = seconds / decisions, self._measured.get(pool)
        self._waiting = max(0.0, self._waiting - decisions * self._each.get(pool, 0.0))
        self._measured[pool] = each = each if before is None else 0.8 * before + 0.2 * each
        self._each[pool] = max(each, self._expected.get(pool, 0.0))

    def emptied(self) -> None:
        """Nothing waits."""
        self._waiting = 0.0


def overloaded(why: str) -> ApiError:
    """The error if there is more to do than can be done in time."""
    return ApiError(503, "overloaded", f"{why}; try again later")
