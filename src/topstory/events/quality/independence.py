"""Was the shown article independent of everything else that is known?

The margins of a log may be uniform while each half of the users sees half of the articles. So the
test of `uniformity` is repeated within pools, within stretches of time and within segments of
users, and the statistics, which are independent, are added up. Two more tests ask whether an
article repeats: in two successive events of the same pool, and in two of the same visitor. Under
uniform choices it does with probability 1/K, whatever came before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import blocks
from topstory.events.columns.contexts import Contexts, SparseContexts, take_contexts
from topstory.events.columns.times import as_datetime
from topstory.events.quality.uniformity import (
    MIN_EXPECTED,
    Uniformity,
    binomial_tail,
    chi_square_tail,
    shown_counts,
    uniformity,
)

if TYPE_CHECKING:
    from topstory.events.log import EventLog

Rows = npt.NDArray[np.intp]

MAX_STRETCHES = 24  # of time
MIN_STRETCH = 500  # events
MAX_SEGMENTS = 12
MAX_SEGMENTED = 1_000_000  # events of a longer log are evenly spaced
MAX_VISITS = 2_000_000  # successive events whose visitors are compared
MIN_VARIANCE = 10.0  # of the number of repeats, for a test of it
PART_LEVEL = 0.01  # for all pools, or all stretches of time, together


class Finding(msgspec.Struct, frozen=True):
    """The outcome of one test; `text` says what was found, or why nothing was tested."""

    name: str
    events: int
    p_value: float | None  # None: not tested
    text: str
    uneven: tuple[str, ...] = ()  # the pools, or stretches of time, that are uneven by themselves


def within_pools(log: EventLog) -> Finding:
    """Each pool by itself: an article may be favoured in one and neglected in another."""
    sizes = log.pool_sizes
    if len(sizes) < 2:
        return Finding("pools", 0, None, "there is one pool only")
    counts = shown_counts(log)
    served = np.add.reduceat(counts, log.pool_offsets[:-1])
    expected = served / sizes
    fit = (sizes > 1) & (expected >= MIN_EXPECTED)
    if not fit.any():
        return Finding("pools", 0, None, "no pool has 5 events for each of its articles")
    each = np.repeat(np.maximum(expected, 1e-9), sizes)
    statistic = np.add.reduceat((counts - each) ** 2 / each, log.pool_offsets[:-1])
    freedom = sizes - 1
    p_value = chi_square_tail(float(statistic[fit].sum()), int(freedom[fit].sum()))
    tails = chi_square_tail(statistic, np.maximum(freedom, 1))
    uneven = np.flatnonzero(fit & (tails * fit.sum() < PART_LEVEL))
    text = f"{len(uneven):,} of {int(fit.sum()):,} pools are uneven"
    if len(uneven):
        worst = uneven[np.argmin(tails[uneven])]
        first = log.article_ids[log.pool_members[log.pool_offsets[worst]]]
        text += f", most of all pool {worst}, of {first!r} and {sizes[worst] - 1} more"
    numbers = tuple(map(str, uneven.tolist()))
    return Finding("pools", int(served[fit].sum()), p_value, text, numbers)


def over_time(log: EventLog) -> Finding:
    """Stretches of successive events."""
    count = min(MAX_STRETCHES, len(log) // MIN_STRETCH)
    if count < 2:
        return Finding("time", 0, None, f"fewer than {2 * MIN_STRETCH:,} events")
    ends = np.linspace(0, len(log), count + 1).astype(int).tolist()
    spans = list(pairwise(ends))
    found = [uniformity(log[start:stop]) for start, stop in spans]
    bad = [
        span
        for span, each in zip(spans, found, strict=True)
        if each.degrees_of_freedom and each.p_value * count < PART_LEVEL
    ]
    text = f"{len(bad)} of {count} stretches are uneven"
    moments = tuple(_moments(log, *span) for span in _joined(bad))
    if bad:
        text += f": {', '.join(moments)}"
    return msgspec.structs.replace(_added("time", found, text), uneven=moments)


def within_segments(log: EventLog) -> Finding:
    """Segments of users, by the feature they lean to."""
    if log.dimension < 2:
        return Finding("segments", 0, None, "contexts hold only the constant")
    rows = evenly_spaced(len(log), MAX_SEGMENTED)
    segment = _segments(log, rows)
    if segment is None:
        return Finding("segments", 0, None, "all users lean to the same feature")
    numbers, inverse, sizes = np.unique(segment, return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    place = np.empty(len(numbers), int)
    place[order] = np.minimum(np.arange(len(numbers)), MAX_SEGMENTS - 1)  # the last: all others
    part = place[inverse]
    found = [uniformity(_bare(log, rows[part == i])) for i in range(int(part.max()) + 1)]
    return _added("segments", found, f"{len(found)} segments of users")


def in_sequence(log: EventLog, apart: int = 1) -> Finding:
    """Whether the article of the event before comes again, or of that so many events before."""
    hits = pairs = 0
    mean = 0.0
    for start, stop in blocks(len(log)):
        part = slice(start, stop + apart)
        hit, pair, expected = _repeats(log, log.pool[part], log.position[part], apart=apart)
        hits, pairs, mean = hits + hit, pairs + pair, mean + expected
    return _repeated("sequence", "successive events of a pool", hits, pairs, mean)


def by_visitor(log: EventLog) -> Finding:
    """Whether the article that a visitor saw last comes again."""
    person = None if log.visitors is None else log.visitors.person
    if person is None:
        return Finding("visitors", 0, None, "the log does not identify visitors")
    known = np.flatnonzero(person[:MAX_VISITS] >= 0)
    visitor, pool, position = person[known], log.pool[known], log.position[known]
    order = np.lexsort((np.arange(len(pool)), pool, visitor))
    counts = _repeats(log, pool[order], position[order], visitor[order])
    return _repeated("visitors", "successive events of a visitor", *counts)


def _repeats(
    log: EventLog,
    pool: npt.NDArray[np.int32],
    position: npt.NDArray[Any],
    visitor: npt.NDArray[np.int64] | None = None,
    apart: int = 1,
) -> tuple[int, int, float]:
    """How often the article is that of the row before, of how many pairs, expected how often."""
    pair = (pool[apart:] == pool[:-apart]) & (log.pool_sizes[pool[apart:]] > 1)
    if visitor is not None:
        pair &= visitor[apart:] == visitor[:-apart]
    hits = int((position[apart:] == position[:-apart])[pair].sum())
    return hits, int(pair.sum()), float((1.0 / log.pool_sizes[pool[apart:][pair]]).sum())


def _repeated(name: str, what: str, hits: int, pairs: int, expected: float) -> Finding:
    if expected * (1 - expected / max(pairs, 1)) < MIN_VARIANCE:
        return Finding(name, 0, None, f"too few {what}")
    tail = min(1.0, 2 * float(binomial_tail(hits, pairs, expected / pairs)))
    text = f"{what} repeat the article {hits:,} times where {expected:,.0f} are expected"
    return Finding(name, pairs, tail, text)


def _added(name: str, found: Sequence[Uniformity], text: str) -> Finding:
    freedom = sum(each.degrees_of_freedom for each in found)
    if not freedom:
        return Finding(name, 0, None, "too few events in each part")
    p_value = chi_square_tail(sum(each.statistic for each in found), freedom)
    return Finding(name, sum(each.events for each in found), p_value, text)


def evenly_spaced(events: int, most: int) -> Rows:
    """Row numbers: all of them, or `most` that are spread over the log.

    >>> evenly_spaced(10, 4)
    array([0, 3, 6, 9])
    """
    return np.linspace(0, max(events - 1, 0), min(events, most)).astype(np.intp)


def users_of(log: EventLog, rows: Rows) -> Contexts:
    """The contexts without the shown article's own numbers, such as its age: they give it away."""
    users = take_contexts(log.users, rows)
    if log.varying is None or isinstance(users, SparseContexts):
        return users
    return np.delete(users, np.s_[-1 - log.varying.width : -1], axis=1)


def _segments(log: EventLog, rows: Rows) -> npt.NDArray[Any] | None:
    """(n,) the feature that each user leans to; None if nearly all lean to the same."""
    users = users_of(log, rows)
    if isinstance(users, SparseContexts):
        some = np.diff(users.indptr) > 0
        first = np.zeros(len(rows), np.int32)
        first[some] = users.indices[users.indptr[:-1][some]]
        return first if _differ(first) else None
    features = users[:, :-1]
    if not features.shape[1]:
        return None
    if features.shape[1] > 1:
        raw: npt.NDArray[Any] = features.argmax(axis=1)
        if _differ(raw):
            return raw
    # On scales of their own, or one feature alone: who is far above the average, and in what.
    center, spread = features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)
    scaled = (features - center) / np.where(spread > 0, spread, np.inf)
    leaning = np.where(scaled.max(axis=1) > 0, scaled.argmax(axis=1) + 1, 0)
    return leaning if _differ(leaning) else None


def _differ(segment: npt.NDArray[Any]) -> bool:
    counts = np.bincount(segment)
    return len(segment) > 0 and int(counts.max()) < 0.99 * len(segment)


def _bare(log: EventLog, rows: Rows) -> EventLog:
    """Some rows of a log, with their pools and articles only."""
    constant = np.ones(len(rows), np.float32)
    return replace(
        log,
        users=constant[:, None],
        pool=log.pool[rows],
        position=log.position[rows],
        payoff=constant,
        recorded_propensity=None,
        times=None,
        visitors=None,
        recorded_count=None,
    )


def _joined(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    if not spans:
        return
    start, stop = spans[0]
    for first, last in spans[1:]:
        if first != stop:
            yield start, stop
            start = first
        stop = last
    yield start, stop


def _moments(log: EventLog, start: int, stop: int) -> str:
    if log.times is None:
        return f"events {start + 1:,} to {stop:,}"
    micros = log.times.microseconds(start, stop)
    first, last = as_datetime(int(micros.min())), as_datetime(int(micros.max()))
    return f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}"
