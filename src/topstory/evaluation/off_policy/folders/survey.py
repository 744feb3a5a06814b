"""What must be known of a whole log before its parts are judged: found part by part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topstory.engines import Engine
from topstory.evaluation.replays.prepared_log import check_range
from topstory.events import EventLog
from topstory.events.columns.decisions import label_numbers
from topstory.events.folder.parts import LogFolder, LogPart
from topstory.events.quality.independence import evenly_spaced

MAX_TESTED = 1 << 20  # events on which it is tested whether the log was uniform

VisitorNumbers = NDArray[np.int64]


class JudgedPart(NamedTuple):
    """A part of a log, and the number that each of its own labels of visitors has in all of it."""

    part: LogPart
    visitors: VisitorNumbers | None  # None: the log has a table of users, or knows no visitors


@dataclass(frozen=True)
class Survey:
    """Of all events that are judged."""

    parts: list[JudgedPart]
    ends: tuple[int, int] | None  # the first and the last time, microseconds
    payoff: float  # the mean
    binary: bool
    tested: EventLog  # all events or, if they are many, some that are evenly spread


class _Found(NamedTuple):
    ends: tuple[int, int] | None
    payoff: float  # the sum
    binary: bool
    labels: tuple[Any, ...]  # of visitors
    tested: EventLog


def surveyed(
    folder: LogFolder, parts: list[LogPart], engine: Engine, progress: Callable[[int], object]
) -> Survey:
    """Read all parts once."""
    start, events = parts[0].start, sum(part.events for part in parts)
    rows = start + evenly_spaced(events, MAX_TESTED)
    visitors: dict[Any, int] = {}
    judged, found = list[JudgedPart](), list[_Found]()
    for part, each in zip(parts, engine.map(_survey, parts, (folder, rows)), strict=True):
        numbers = [visitors.setdefault(label, len(visitors)) for label in each.labels]
        judged.append(JudgedPart(part, np.array(numbers, np.int64) if numbers else None))
        found.append(each)
        progress(part.events)
    times = [each.ends for each in found if each.ends is not None]
    return Survey(
        judged,
        (min(low for low, _ in times), max(high for _, high in times)) if times else None,
        sum(each.payoff for each in found) / events,
        all(each.binary for each in found),
        EventLog.concat([each.tested for each in found if len(each.tested)]),
    )


def _survey(part: LogPart, shared: tuple[LogFolder, NDArray[np.intp]]) -> _Found:
    folder, rows = shared
    log = folder.read(part)
    try:
        check_range(log)
    except ValueError as error:
        raise ValueError(f"{part.file.name}, from its row {part.first} on: {error}") from None
    ends, labels = None, tuple[Any, ...]()
    if log.times is not None:
        micros = log.times.microseconds()
        ends = int(micros.min()), int(micros.max())
    if log.visitors is None and log.decisions is not None:
        labels = label_numbers(log.decisions, "visitor")[1]
    low, high = np.searchsorted(rows, (part.start, part.start + part.events))
    return _Found(
        ends,
        float(exact_payoff(log).sum()),
        bool(np.isin(log.payoff, (0.0, 1.0)).all()),
        labels,
        log[rows[low:high] - part.start],
    )


def exact_payoff(log: EventLog) -> NDArray[np.float64]:
    """(n,) payoffs, before they were rounded if that is known."""
    return (log.payoff if log.exact is None else log.exact.payoff).astype(np.float64)


def visitors_of(log: EventLog, part: JudgedPart) -> VisitorNumbers:
    """(n,) the visitors of a part by their number in the whole log; (0,): none is known."""
    own = log.visitor_number
    if own is None:
        return np.zeros(0, np.int64)
    if part.visitors is None:
        return own
    return np.where(own >= 0, part.visitors[own], -1)
