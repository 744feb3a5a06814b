"""The time of the journal: it never goes back."""

import time
from collections.abc import Callable

SECOND = 1_000_000  # in microseconds


class Clock:
    """Microseconds since 1970, never less than before, not even than before a restart.

    Where the machine's clock is set back, time goes on from where it was at its ordinary pace
    until that clock has caught up: windows stay as long as they were promised.

    >>> clock = Clock(after=2_000, wall=lambda: 1_000, steady=lambda: 0)
    >>> clock.now(), clock.ahead
    (2000, 1000)
    """

    def __init__(
        self,
        after: int = 0,
        wall: Callable[[], int] = lambda: time.time_ns() // 1000,
        steady: Callable[[], int] = lambda: time.monotonic_ns() // 1000,
    ) -> None:
        self._wall, self._steady = wall, steady
        self._last, self._at = after, steady()

    def now(self) -> int:
        """The time."""
        steady = self._steady()
        self._last = max(self._wall(), self._last + steady - self._at)
        self._at = steady
        return self._last

    @property
    def ahead(self) -> int:
        """How far this time is ahead of the machine's."""
        return max(0, self.now() - self._wall())
