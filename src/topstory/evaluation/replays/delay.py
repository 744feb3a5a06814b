"""Payoffs that come late: which events a policy knows of when it decides."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from operator import index

import numpy as np

from topstory.events import EventLog
from topstory.kernels.compilation import Counters

UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
NOTHING_LATE: Counters = np.zeros(0, np.int64)


def parse_duration(what: str, value: float | str | timedelta) -> int:
    """A duration in microseconds: seconds, a timedelta, or text such as `10min`.

    >>> parse_duration("delay", "10min") // 1_000_000
    600
    >>> parse_duration("delay", "ten minutes")
    Traceback (most recent call last):
    ...
    ValueError: delay must be a number of seconds, or a number and s, min, h or d, such as ...
    """
    seconds: float = math.nan
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*(s|min|h|d)?\s*", value)
        if found is not None:
            seconds = float(found[1]) * UNITS[found[2] or "s"]
    elif isinstance(value, int | float):
        seconds = float(value)
    if not 0 <= seconds <= 1e9:
        raise ValueError(
            f"{what} must be a number of seconds, or a number and s, min, h or d, such as 10min, "
            f"at most 1e9 seconds in all; got {value!r}"
        )
    return round(seconds * 1e6)


def known_events(log: EventLog, delay: float | str | timedelta, batch: int) -> Counters:
    """(n,) how many of the events before each one are known when it is decided.

    An event is known once `delay` has passed since, and every `batch` events what is known is
    learned. Empty if each event is known at once. Of times that do not ascend, the latest counts.

    >>> log = EventLog.from_arrays(
    ...     [[1.0]] * 4, [["a"]], [0] * 4, ["a"] * 4, [0] * 4, timestamps=[0, 60, 120, 600]
    ... )
    >>> known_events(log, "1min", 1).tolist(), known_events(log, 0, 2).tolist()
    ([0, 1, 2, 3], [0, 0, 2, 2])
    """
    late = parse_duration("delay", delay)
    if index(batch) < 1:
        raise ValueError(f"batch must be a whole number of events >= 1, got {batch!r}")
    if not late and batch == 1:
        return NOTHING_LATE
    known = np.arange(len(log), dtype=np.int64)
    if late:
        if log.times is None:
            raise ValueError("this log has no timestamps, so nothing is known of delays")
        clock = np.maximum.accumulate(log.times.microseconds())
        known = np.minimum(known, np.searchsorted(clock, clock - late, side="right"))
    return np.asarray(known[np.arange(len(log)) // batch * batch], np.int64)
