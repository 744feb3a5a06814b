"""What each feature of an event becomes: a table of numbers for each whole value that it can have.

A table, so that a log and a live service give the same bits, one event or a million at a time. The
numbers of a feature are a block whose length is at most 1, as those of a profile's field are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.float64]  # (values, numbers)

MINUTE = 60_000_000  # microseconds
DAY_MINUTES = 24 * 60
MAX_AGE_MINUTES = 14 * DAY_MINUTES  # older articles count as this old
MAX_SEEN = 10  # more often counts as so often
MAX_SLOT = 9


@dataclass(frozen=True)
class EventFeature:
    """A feature that changes with the event."""

    name: str
    columns: tuple[str, ...]  # names of its numbers
    of_article: bool  # whether it differs between the articles of a pool
    needs: str  # of a log, in words
    table: Callable[[], Table]


def _hours() -> Table:
    # A circle, so that 23:59 is close to 0:00. By the minute: finer makes no difference.
    turns = [2 * math.pi * minute / DAY_MINUTES for minute in range(DAY_MINUTES)]
    return np.array([[math.sin(turn), math.cos(turn)] for turn in turns])


def _weekdays() -> Table:
    # The week's circle, and the weekend: three numbers, where one for each day would be seven. A
    # linear model of an article has as many squared.
    turns = [2 * math.pi * day / 7 for day in range(7)]
    rows = [[math.sin(turn), math.cos(turn), float(day >= 5)] for day, turn in enumerate(turns)]
    return np.array(rows) / math.sqrt(2)


def _logarithms(most: int, unit: float = 1.0) -> Table:
    whole = math.log1p(most / unit)
    return np.array([[math.log1p(value / unit) / whole] for value in range(most + 1)])


EVENT_FEATURES = {
    feature.name: feature
    for feature in (
        EventFeature("hour_of_day", ("sine", "cosine"), False, "timestamps", _hours),
        EventFeature("weekday", ("sine", "cosine", "weekend"), False, "timestamps", _weekdays),
        EventFeature("position", ("",), False, "slots", lambda: _logarithms(MAX_SLOT)),
        # By their logarithm: the first hours, and the first time, make most of the difference.
        EventFeature(
            "age_hours",
            ("",),
            True,
            "timestamps and publication times",
            lambda: _logarithms(MAX_AGE_MINUTES, unit=60.0),
        ),
        EventFeature("seen_before", ("",), True, "visitors", lambda: _logarithms(MAX_SEEN)),
    )
}
