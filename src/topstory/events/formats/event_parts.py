"""A log's events as Python values, for writers of JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topstory.events.columns.array_record import blocks
from topstory.events.columns.contexts import SparseContexts
from topstory.events.columns.times import as_datetime
from topstory.events.log import EventLog

BLOCK_EVENTS = 1 << 13  # events that are Python objects at a time

Progress = Callable[[int], object]


class EventParts(NamedTuple):
    """One event."""

    number: int
    user: Any  # a list of numbers; in a sparse log, the indices of the features that are on
    pool: int
    position: int
    payoff: float
    propensity: float
    time: str | None  # ISO 8601, UTC


def event_parts(log: EventLog, progress: Progress) -> Iterator[EventParts]:
    """All events; `progress` is called with the number of events done since the last call."""
    for start, stop in blocks(len(log), BLOCK_EVENTS):
        part = log[start:stop]
        users: Any
        if isinstance(part.users, SparseContexts):
            ends = part.users.indptr[1:-1]
            users = [row.tolist() for row in np.split(part.users.indices, ends)]
        else:
            users = short_numbers(part.users).tolist()
        times: list[str | None] = [None] * len(part)
        if part.times is not None:
            times = [_iso(micros) for micros in part.times.microseconds().tolist()]
        yield from map(
            EventParts,
            range(start, stop),
            users,
            part.pool.tolist(),
            part.position.tolist(),
            short_numbers(part.payoff).tolist(),
            short_numbers(part.propensity).tolist(),
            times,
        )
        progress(stop - start)


def short_numbers(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """The float64 nearest to the shortest decimal that means each float32.

    Written as JSON they take about 9 digits less than the exact values would; read back and
    rounded to float32 they are the same to the bit.

    >>> float(np.float32(0.1)), short_numbers(np.array([0.1], np.float32)).tolist()
    (0.10000000149011612, [0.1])
    """
    flat: Any = pa.array(np.ascontiguousarray(values).ravel())
    short = flat.cast(pa.string()).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.asarray(short, np.float64).reshape(values.shape)


def _iso(micros: int) -> str:
    return as_datetime(micros).isoformat().replace("+00:00", "Z")
