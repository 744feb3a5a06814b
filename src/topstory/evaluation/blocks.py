"""A log cut into blocks of time: the unit of intervals, and of curves over time.

Clicks come in bursts, so an interval must not count events as independent; sums over blocks of an
hour nearly are. Where hours are unknown or fewer than `FEWEST`, blocks are runs of events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from topstory.events import EventLog
from topstory.kernels.compilation import Slots

HOUR = 3_600_000_000  # microseconds
FEWEST = 20
RUNS = 200
MOST = 100_000


@dataclass(frozen=True)
class Blocks:
    """How the events of one log fall into blocks.

    >>> log = EventLog.from_arrays(np.ones((4, 1)), [["a"]], [0] * 4, ["a"] * 4, [0, 0, 1, 0])
    >>> Blocks.of(log).numbers(log, 0, 4)
    array([0, 1, 2, 3], dtype=int32)
    """

    count: int
    width: int  # of a block: microseconds, or events where `origin` is None
    origin: int | None  # where the first block begins: microseconds since 1970

    @classmethod
    def of(cls, log: EventLog) -> Blocks:
        """Hours where there are enough, days or more where hours are too many, else runs."""
        if log.times is not None and len(log):
            first, last = (
                log.times.origin + int(tick) * log.times.unit
                for tick in (log.times.ticks.min(), log.times.ticks.max())
            )
            width = HOUR
            while (last - first) // width >= MOST:
                width *= 24
            origin = first // width * width
            count = (last - origin) // width + 1
            if count >= FEWEST:
                return cls(count, width, origin)
        runs = min(RUNS, len(log))
        width = -(-len(log) // runs) if runs else 1
        return cls(-(-len(log) // width), width, None)

    def numbers(self, log: EventLog, start: int, stop: int) -> Slots:
        """The block of each of the events start … stop − 1."""
        if self.origin is None or log.times is None:
            return (np.arange(start, stop) // self.width).astype(np.int32)
        since = log.times.microseconds(start, stop) - self.origin
        return (since // self.width).astype(np.int32)

    def starts(self) -> npt.NDArray[np.int64] | npt.NDArray[np.datetime64]:
        """When each block begins: datetime64, or the number of its first event."""
        offsets = np.arange(self.count, dtype=np.int64) * self.width
        return offsets if self.origin is None else (offsets + self.origin).view("M8[us]")
