"""The journal's time: microseconds since 1970, and never less than before."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

SECOND = 1_000_000  # in microseconds
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """Microseconds since 1970, never less than before, not even than before a restart.

    If the system clock is set back, this one goes on from where it was, at its ordinary pace,
    until the system clock has caught up. So feedback windows stay as long as promised.

    >>> clock = Clock(after=2_000, wall=lambda: 1_000, steady=lambda: 0)
    >>> clock.now(), clock.ahead
    (2000, 1000)
    """

    def __init__(
        self,
        after: int = 0,
        wall: Callable[[], int] | None = None,
        steady: Callable[[], int] | None = None,
    ) -> None:
        """Args: the first time, and clocks in microseconds other than the system's."""
        # In nanoseconds, as the system's: every request asks them, without a call in between.
        self._wall = time.time_ns if wall is None else lambda: wall() * 1000
        self._steady = time.monotonic_ns if steady is None else lambda: steady() * 1000
        self._last, self._at = after, self._steady() // 1000

    def now(self) -> int:
        """The time."""
        steady = self._steady() // 1000
        self._last = max(self._wall() // 1000, self._last + steady - self._at)
        self._at = steady
        return self._last

    @property
    def ahead(self) -> int:
        """How far this time is ahead of the system clock."""
        return max(0, self.now() - self._wall() // 1000)


@lru_cache(maxsize=64)  # all decisions that are made together expire together
def as_datetime(microseconds: int) -> datetime:
    """A time of the journal as people and JSON write it, in UTC.

    >>> as_datetime(1_241_136_000_000_000)
    datetime.datetime(2009, 5, 1, 0, 0, tzinfo=datetime.timezone.utc)
    """
    return _EPOCH + timedelta(microseconds=microseconds)


def as_microseconds(when: datetime) -> int:
    """The reverse.

    >>> as_microseconds(as_datetime(1_241_136_000_000_007))
    1241136000000007
    """
    return (when - _EPOCH) // timedelta(microseconds=1)
