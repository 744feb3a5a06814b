"""A policy's clock: what it learned counts half after each half-life.

Time passes in ticks, 32 to a half-life: within one, all trials count alike. So a model is brought
up to date once a tick, and a late payoff counts as much as its impression does by then, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topstory.events import EventLog
from topstory.events.columns.times import TimeLike, parse_time

TICKS = 32  # in a half-life
HOUR = 3_600_000_000  # microseconds
LONGEST, SHORTEST = 1e6, 1 / 60  # hours


def check_half_life(hours: Any) -> float:
    """The half-life, in hours; ValueError if it is none."""
    if not SHORTEST <= hours <= LONGEST:
        raise ValueError(
            f"half_life must be from {SHORTEST:.3g} to {LONGEST:g} hours, got {hours!r}"
        )
    return float(hours)


def tick_of(at: TimeLike, half_life: float) -> int:
    """The tick of a moment.

    >>> tick_of("1970-01-02", half_life=24)
    32
    """
    return int(parse_time(at) // _length(half_life))


def faded(ticks: Any) -> Any:
    """What a trial counts after so many ticks.

    >>> faded(64)
    0.25
    """
    return 2.0 ** (-ticks / TICKS)


def ticks_of(log: EventLog, half_life: float) -> NDArray[np.int64]:
    """(n,) the tick of each event; it never goes back."""
    if log.times is None:
        raise ValueError("a policy with a half-life needs a log with timestamps")
    return np.asarray(np.maximum.accumulate(log.times.microseconds() // _length(half_life)))


def even_parts(ticks: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """The stretches (start, stop) in which the tick stays the same.

    >>> list(even_parts(np.array([3, 3, 5, 5, 5])))
    [(0, 2), (2, 5)]
    """
    edges = [0, *(1 + np.flatnonzero(np.diff(ticks))).tolist(), len(ticks)]
    for start, stop in pairwise(edges):
        if stop > start:
            yield start, stop


def _length(half_life: float) -> int:
    return max(1, round(half_life * HOUR / TICKS))
