"""A log's timestamps, in four bytes each where that is exact."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import ArrayRecord, blocks
from topstory.events.columns.checks import Mask, first_row, one_per_event

TimeLike = date | np.datetime64 | str | float | np.integer[Any]  # a datetime is a date

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000  # in microseconds, the unit of everything here
DAY = 86_400 * SECOND
# Python's datetime knows the years 1 to 9999, and so do most tools that will read the log.
EARLIEST = -62_135_596_800 * SECOND
LATEST = 253_402_300_800 * SECOND - 1


@dataclass(frozen=True, eq=False)
class Times(ArrayRecord):
    """Timestamps as whole steps of `unit` microseconds after `origin` (microseconds, UTC).

    >>> times = Times.from_microseconds(np.array([0, 2_000_000, 5_000_000]))
    >>> times.unit, times.ticks
    (1000000, array([0, 2, 5], dtype=uint32))
    """

    ticks: npt.NDArray[np.uint32] | npt.NDArray[np.int64]
    origin: int
    unit: int

    @classmethod
    def from_microseconds(cls, micros: npt.NDArray[np.int64]) -> Times:
        """The most compact exact form: uint32 seconds or milliseconds, else int64 microseconds."""
        if not len(micros):
            return cls(np.empty(0, np.uint32), 0, SECOND)
        origin, last = int(micros.min()), int(micros.max())
        for unit in (SECOND, SECOND // 1000):
            if (last - origin) // unit > np.iinfo(np.uint32).max:
                continue
            ticks = np.empty(len(micros), np.uint32)
            for start, stop in blocks(len(micros)):
                steps, rest = np.divmod(micros[start:stop] - origin, unit)
                if rest.any():
                    break
                ticks[start:stop] = steps
            else:
                return cls(ticks, origin, unit)
        return cls(micros, 0, 1)

    def __len__(self) -> int:
        return len(self.ticks)

    def microseconds(self, start: int = 0, stop: int | None = None) -> npt.NDArray[np.int64]:
        """Microseconds since 1970, UTC, of rows start to stop."""
        micros = self.ticks[start:stop].astype(np.int64)
        micros *= self.unit
        micros += self.origin
        return micros

    def days(self, start: int = 0, stop: int | None = None) -> npt.NDArray[np.int64]:
        """The UTC day of rows start to stop, in days since 1970."""
        return self.microseconds(start, stop) // DAY

    def span(self) -> str:
        """The first and the last UTC day, as text."""
        if not len(self):
            return "no days"
        ends = self[[int(self.ticks.argmin()), int(self.ticks.argmax())]]
        days = [as_datetime(int(micros)).date().isoformat() for micros in ends.microseconds()]
        return " to ".join(dict.fromkeys(days))

    def __getitem__(self, rows: Any) -> Times:
        return Times(self.ticks[rows], self.origin, self.unit)

    def within(self, start: int | None, end: int | None) -> Mask:
        """Which rows fall in start <= time < end (microseconds; None: no bound)."""
        mask = np.ones(len(self), bool)
        if start is not None:
            mask &= self.ticks >= -((self.origin - start) // self.unit)  # rounded up
        if end is not None:
            mask &= self.ticks < -((self.origin - end) // self.unit)
        return mask


def timestamps_as_microseconds(timestamps: object, events: int) -> npt.NDArray[np.int64]:
    """Unix seconds (int or float) or datetime64 (naive means UTC) as int64 microseconds.

    Floats are rounded to the microsecond; what is finer in a datetime64 is cut off.

    >>> timestamps_as_microseconds([1.5, 2], events=2)
    array([1500000, 2000000])
    >>> timestamps_as_microseconds(np.array(["2009-05-01", "NaT"], "M8[D]"), events=2)
    Traceback (most recent call last):
    ...
    ValueError: row 1: timestamp is NaT; give every event a time, or none (timestamps=None)
    """
    source = np.asarray(timestamps)
    one_per_event("timestamps", source, events)
    kind = source.dtype.kind
    if not events:
        return np.empty(0, np.int64)
    if kind not in "iufM":
        raise ValueError(
            f"timestamps must be unix seconds or datetime64, got dtype {source.dtype}; "
            'np.array(times, dtype="datetime64[us]") turns naive UTC datetimes into the latter'
        )
    missing = np.isnat if kind == "M" else np.isnan
    row = first_row(events, lambda start, stop: missing(source[start:stop]))
    if row is not None:
        value = "NaT" if kind == "M" else "nan"
        raise ValueError(
            f"row {row}: timestamp is {value}; give every event a time, or none (timestamps=None)"
        )
    low, high = _bounds(source.dtype)
    row = first_row(
        events, lambda start, stop: (source[start:stop] < low) | (source[start:stop] > high)
    )
    if row is not None:
        raise ValueError(
            f"row {row}: timestamp {source[row]} is outside the years 1 to 9999; "
            "timestamps are unix seconds: divide milliseconds by 1000"
        )
    if kind == "M":
        return source.astype("M8[us]").astype(np.int64)
    if kind == "f":
        return np.rint(source.astype(np.float64) * SECOND).astype(np.int64)
    return source.astype(np.int64) * SECOND


def _bounds(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The years 1 to 9999 in the dtype's own unit: converting first could overflow silently."""
    if dtype.kind != "M":
        return EARLIEST // SECOND, LATEST // SECOND
    unit = np.datetime_data(dtype)[0]
    if unit in ("ns", "ps", "fs", "as"):  # 64 bits of these cannot leave the range
        edges = np.array([-(2**63) + 1, 2**63 - 1]).view(f"M8[{unit}]")
    else:
        edges = np.array([EARLIEST, LATEST]).view("M8[us]").astype(f"M8[{unit}]")
    return edges[0], edges[1]


def parse_time(value: TimeLike) -> int:
    """A point in time as microseconds since 1970, UTC: datetime, datetime64, ISO text or seconds.

    >>> [parse_time(time) for time in ("1970-01-01T00:00:01Z", 1.0, datetime(1970, 1, 1, 0, 0, 1))]
    [1000000, 1000000, 1000000]
    >>> parse_time("yesterday")
    Traceback (most recent call last):
    ...
    ValueError: not a time: 'yesterday'; pass a datetime, a datetime64, ISO text or unix seconds
    """
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime.combine(value, time.min)
        if isinstance(value, datetime):
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            return (aware - EPOCH) // timedelta(microseconds=1)
        array = np.asarray([value])
        if array.dtype.kind in "iufM":
            return int(timestamps_as_microseconds(array, 1)[0])
    except ValueError:
        pass
    raise ValueError(
        f"not a time: {value!r}; pass a datetime, a datetime64, ISO text or unix seconds"
    )


def as_datetime(micros: int) -> datetime:
    """Microseconds since 1970 as an aware datetime.

    >>> as_datetime(1_000_000).isoformat()
    '1970-01-01T00:00:01+00:00'
    """
    return EPOCH + timedelta(microseconds=micros)
