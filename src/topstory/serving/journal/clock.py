"""The journal's time: microseconds since 1970, and never less than before."""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial

SECOND = 1_000_000  # in microseconds
MAX_JUMP = 60 * SECOND  # the system clock is followed that far at once
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

log = logging.getLogger("topstory.serving")
# It counts while the machine sleeps, too, if the system has such a clock: then waking is no jump.
_steady: Callable[[], int] = (
    partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic_ns
)


class Clock:
    """Microseconds since 1970, never less than before, not even than before a restart.

    If the system clock is set back, this one goes on from where it was, at its ordinary pace,
    until the system clock has caught up. So feedback windows stay as long as promised. If it is
    set ahead by more than `MAX_JUMP` while the service runs, this one does not follow: the journal
    would keep that time, though the system clock may be wrong. Nor does it follow at a start, if
    the system clock is beyond what is expected, and some slack.

    >>> clock = Clock(after=2_000, wall=lambda: 1_000, steady=lambda: 0)
    >>> clock.now(), clock.ahead
    (2000, 1000)
    >>> late = Clock(2_000, lambda: 999 * SECOND, lambda: 0, expected=(3_000, 60 * SECOND))
    >>> late.now(), late.behind // SECOND
    (3000, 998)
    """

    def __init__(
        self,
        after: int = 0,
        wall: Callable[[], int] | None = None,
        steady: Callable[[], int] | None = None,
        expected: tuple[int, int] | None = None,
    ) -> None:
        """Args: the first time, clocks in microseconds other than the system's, and what to expect.

        `expected`: what time it should be, and by how much more the system clock is followed.
        """
        # In nanoseconds, as the system's: every request asks them, without a call in between.
        self._wall = time.time_ns if wall is None else lambda: wall() * 1000
        self._steady = _steady if steady is None else lambda: steady() * 1000
        first = self._wall() // 1000
        # Whether the system clock was last seen too far ahead.
        self._held = expected is not None and first > sum(expected)
        if expected is not None and self._held:
            first = expected[0]
        self._last, self._at = max(after, first), self._steady() // 1000

    def now(self) -> int:
        """The time."""
        steady = self._steady() // 1000
        ours, wall = self._last + steady - self._at, self._wall() // 1000
        if wall - ours > MAX_JUMP:
            self._hold(wall - ours)
        elif wall > ours:
            ours, self._held = wall, False
        self._last, self._at = ours, steady
        return ours

    def _hold(self, jump: int) -> None:
        if not self._held:
            log.error(
                "the system clock jumped %d seconds ahead: the journal's time does not follow. If "
                "the clock is right now, restart the service once with --set-clock",
                jump // SECOND,
            )
        self._held = True

    @property
    def ahead(self) -> int:
        """How far this time is ahead of the system clock."""
        return max(0, self.now() - self._wall() // 1000)

    @property
    def behind(self) -> int:
        """How far this time is behind the system clock, which it did not follow."""
        now, wall = self.now(), self._wall() // 1000
        return wall - now if wall - now > MAX_JUMP else 0


def steady_now() -> int:
    """Microseconds of a clock that nobody sets; it begins anew with the machine."""
    return _steady() // 1000


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
