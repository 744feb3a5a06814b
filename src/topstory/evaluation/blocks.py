"""A log cut into blocks of time: the unit of intervals, and of curves over time.

Clicks come in bursts, so an interval must not count events as independent; sums over blocks of an
hour nearly are. A log of fewer than `MIN_BLOCKS` hours is cut finer, one without times into runs of
events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from topstory.events import EventLog
from topstory.kernels.compilation import Slots

SECOND = 1_000_000  # microseconds
HOUR = 3600 * SECOND
# The first of these that makes enough blocks is taken.
WIDTHS = (HOUR, 1800 * SECOND, 600 * SECOND, 300 * SECOND, 60 * SECOND, 10 * SECOND, SECOND)
MIN_BLOCKS = 20
BLOCKS_WITHOUT_TIMES = 160  # too few to look for what lasts: nobody knows how long a run is
MAX_BLOCKS = 100_000


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
        """Hours; less where they are few, days or more where they are very many; else runs."""
        ends = None
        if log.times is not None and len(log):
            first, last = (
                log.times.origin + int(tick) * log.times.unit
                for tick in (log.times.ticks.min(), log.times.ticks.max())
            )
            ends = first, last
        return cls.over(len(log), ends)

    @classmethod
    def over(cls, events: int, ends: tuple[int, int] | None) -> Blocks:
        """Those of a log with so many events from one time to another (microseconds), if known."""
        if ends is not None:
            first, last = ends
            coarser = HOUR
            while (last - first) // coarser >= MAX_BLOCKS:
                coarser *= 24
            for width in (coarser, *WIDTHS):
                origin = first // width * width
                count = (last - origin) // width + 1
                if count >= MIN_BLOCKS:
                    return cls(count, width, origin)
        runs = min(BLOCKS_WITHOUT_TIMES, events)
        width = -(-events // runs) if runs else 1
        return cls(-(-events // width), width, None)

    def numbers(self, log: EventLog, start: int, stop: int, before: int = 0) -> Slots:
        """The block of each of the events start … stop − 1; `before` the log were so many more."""
        if self.origin is None or log.times is None:
            return (np.arange(before + start, before + stop) // self.width).astype(np.int32)
        since = log.times.microseconds(start, stop) - self.origin
        return (since // self.width).astype(np.int32)

    def in_hours(self, hours: float) -> int:
        """How many blocks so many hours are; 1 where hours are unknown."""
        if self.origin is None:
            return 1
        blocks = hours * HOUR / self.width
        if blocks < 1 or blocks != int(blocks):
            raise ValueError(
                f"a window must be a multiple of the log's blocks of {self.width / HOUR:g} hours, "
                f"got {hours!r} hours"
            )
        return int(blocks)

    def days_of(self, needed: int) -> int:
        """The days of a log that has so many blocks, of an hour or more: more days than this."""
        day = 24 * HOUR
        return max(-(-needed * max(self.width, HOUR) // day), self.count * self.width // day + 1)

    def starts(self) -> npt.NDArray[np.int64] | npt.NDArray[np.datetime64]:
        """When each block begins: datetime64, or the number of its first event."""
        offsets = np.arange(self.count, dtype=np.int64) * self.width
        return offsets if self.origin is None else (offsets + self.origin).view("M8[us]")
