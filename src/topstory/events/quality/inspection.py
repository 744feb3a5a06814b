"""A summary of a log: what it contains, and whether it is fit for replay."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import blocks
from topstory.events.columns.contexts import SparseContexts
from topstory.events.columns.times import Times, as_datetime
from topstory.events.log import EventLog, check_log
from topstory.events.quality.checks import Check
from topstory.events.quality.fields import FieldSummary, describe_fields
from topstory.events.quality.hazards import hazards, repeated_events
from topstory.events.quality.rejection import Rejection
from topstory.events.quality.uniformity import Uniformity
from topstory.events.quality.verdict import Method, judge

MAX_COMPARED_CONTEXTS = 1_000_000  # of longer logs, this many evenly spaced contexts are compared


class Day(msgspec.Struct, frozen=True):
    """One UTC day of the log."""

    date: date
    events: int
    ctr: float


class ArticleSummary(msgspec.Struct, frozen=True):
    """One article over the whole log."""

    article: str
    shown: int
    payoff: float  # the sum
    ctr: float | None  # None: never shown
    first_shown: datetime | None  # None: never shown, or an untimed log
    last_shown: datetime | None


class BucketSummary(msgspec.Struct, frozen=True):
    """One bucket of the service that wrote the log."""

    bucket: str | None  # None: the bucket of these events was not recorded
    events: int
    share: float  # of the log's events
    ctr: float


class Inspection(msgspec.Struct, frozen=True):
    """The result of `inspect`.

    >>> from topstory.events import EventLog
    >>> log = EventLog.from_arrays(
    ...     np.ones((4, 1)), [["a", "b"]], [0] * 4, ["a", "b", "b", "a"], [1, 0, 0, 0]
    ... )
    >>> found = inspect(log)
    >>> found.events, found.ctr, found.binary, found.by_article[0].ctr, found.duplicate_contexts
    (4, 0.25, True, 0.5, 0.75)
    >>> print(found.verdict[0])
    Whether articles were shown uniformly was not tested: too few events: no article is expected \
5 times; replay takes it on trust.
    """

    events: int
    ctr: float | None  # None: no events
    lowest_payoff: float | None
    highest_payoff: float | None
    binary: bool  # payoffs are 0 or 1 only
    timed: bool
    days: tuple[Day, ...]  # empty for an untimed log
    articles: int
    article_features: int | None
    by_article: tuple[ArticleSummary, ...]  # by times shown, most first
    pools: int
    smallest_pool: int | None  # None: no pools
    median_pool: float | None
    largest_pool: int | None
    dimension: int
    sparse: bool
    duplicate_contexts: float  # share of events whose context an earlier one had (an estimate)
    lowest_propensity: float | None  # None: not recorded, or uniform
    highest_propensity: float | None
    uniformity: Uniformity
    fit: bool  # for replay
    survivors: float | None  # share that rejection sampling keeps; None: not needed
    verdict: tuple[str, ...]  # why, in plain words, and what else to know
    method: Method = "none"  # what it is fit for
    propensities_recorded: int = 0  # events that came with one
    rejection: Rejection | None = None  # None: not needed
    survivor_uniformity: Uniformity | None = None  # the test, over one draw of survivors
    checks: tuple[Check, ...] = ()  # all tests; of the survivors, where events are rejected
    buckets: tuple[BucketSummary, ...] = ()  # by events, most first; empty: none were recorded
    visitors: int | None = None  # how many came; None: the log does not identify them
    unidentified: int = 0  # events whose visitor is not known, in a log that identifies some
    fields: tuple[FieldSummary, ...] = ()  # of raw profiles
    repeats: int | None = None  # events that equal an earlier one; None: not known
    warnings: tuple[str, ...] = ()  # what will hurt, and what to do
    propensity_estimate: str | None = None  # how propensities were estimated; None: they were not


def inspect(log: EventLog) -> Inspection:
    """Summarise the whole log; prints nothing."""
    check_log(log)
    found, visitor = log.uniformity(), log.visitor_number
    verdict = judge(log, found)
    rejected = verdict.rejection
    lowest, highest = _ends(log.payoff)
    sizes = log.pool_sizes
    smallest, largest = _ends(sizes)
    propensity = (None, None) if log.recorded_propensity is None else _ends(log.recorded_propensity)
    return Inspection(
        events=len(log),
        ctr=log.ctr if len(log) else None,
        lowest_payoff=lowest,
        highest_payoff=highest,
        binary=bool(((log.payoff == 0) | (log.payoff == 1)).all()),
        timed=log.times is not None,
        days=() if log.times is None else tuple(_days(log, log.times)),
        articles=len(log.article_ids),
        article_features=None if log.features is None else log.features.shape[1],
        by_article=_by_article(log),
        pools=len(sizes),
        smallest_pool=None if smallest is None else int(smallest),
        median_pool=float(np.median(sizes)) if len(sizes) else None,
        largest_pool=None if largest is None else int(largest),
        dimension=log.dimension,
        sparse=isinstance(log.users, SparseContexts),
        duplicate_contexts=_duplicates(log),
        lowest_propensity=propensity[0],
        highest_propensity=propensity[1],
        uniformity=found,
        fit=verdict.fit,
        survivors=None if rejected is None else rejected.survivors / len(log),
        verdict=verdict.sentences,
        method=verdict.method,
        propensities_recorded=log.propensities_recorded,
        rejection=rejected,
        survivor_uniformity=verdict.survivor_uniformity,
        checks=verdict.checks,
        buckets=_buckets(log),
        visitors=None if visitor is None else len(np.unique(visitor[visitor >= 0])),
        unidentified=0 if visitor is None else int((visitor < 0).sum()),
        fields=describe_fields(log),
        repeats=repeated_events(log),
        warnings=hazards(log),
        propensity_estimate=log.propensity_estimate,
    )


def _ends(values: npt.NDArray[Any]) -> tuple[float | None, float | None]:
    return (float(values.min()), float(values.max())) if len(values) else (None, None)


def _days(log: EventLog, times: Times) -> list[Day]:
    events: dict[int, int] = {}
    payoff: dict[int, float] = {}
    for start, stop in blocks(len(log)):
        days, which = np.unique(times.days(start, stop), return_inverse=True)
        counts = np.bincount(which).tolist()
        sums = np.bincount(which, log.payoff[start:stop]).tolist()
        for day, count, total in zip(days.tolist(), counts, sums, strict=True):
            events[day] = events.get(day, 0) + count
            payoff[day] = payoff.get(day, 0.0) + total
    return [
        Day(as_datetime(day * 86_400_000_000).date(), events[day], payoff[day] / events[day])
        for day in sorted(events)
    ]


def _by_article(log: EventLog) -> tuple[ArticleSummary, ...]:
    articles = len(log.article_ids)
    shown, payoff = np.zeros(articles, np.int64), np.zeros(articles)
    first = np.full(articles, np.iinfo(np.int64).max)
    last = np.full(articles, np.iinfo(np.int64).min)
    index = log.shown_index
    for start, stop in blocks(len(log)):
        which = index[start:stop]
        shown += np.bincount(which, minlength=articles)
        payoff += np.bincount(which, log.payoff[start:stop], minlength=articles)
        if log.times is not None:
            micros = log.times.microseconds(start, stop)
            np.minimum.at(first, which, micros)
            np.maximum.at(last, which, micros)
    timed = (shown > 0) & (log.times is not None)
    return tuple(
        ArticleSummary(
            article=log.article_ids[a],
            shown=int(shown[a]),
            payoff=float(payoff[a]),
            ctr=float(payoff[a] / shown[a]) if shown[a] else None,
            first_shown=as_datetime(int(first[a])) if timed[a] else None,
            last_shown=as_datetime(int(last[a])) if timed[a] else None,
        )
        for a in np.argsort(-shown, kind="stable").tolist()
    )


def _buckets(log: EventLog) -> tuple[BucketSummary, ...]:
    if log.decisions is None or not len(log):
        return ()
    from topstory.events.columns.decisions import label_numbers

    numbers, labels = label_numbers(log.decisions, "bucket")
    if numbers is None:
        return ()
    events = np.bincount(numbers + 1, minlength=len(labels) + 1)
    payoff = np.bincount(numbers + 1, log.payoff, minlength=len(labels) + 1)
    return tuple(
        BucketSummary(
            bucket=None if each == 0 else labels[each - 1],
            events=int(events[each]),
            share=float(events[each] / len(log)),
            ctr=float(payoff[each] / events[each]),
        )
        for each in np.argsort(-events, kind="stable").tolist()
        if events[each]
    )


def _duplicates(log: EventLog) -> float:
    """The share that repeat an earlier context, among at most MAX_COMPARED_CONTEXTS rows."""
    rows = np.linspace(0, max(len(log) - 1, 0), min(len(log), MAX_COMPARED_CONTEXTS)).astype(
        np.intp
    )
    if not len(rows):
        return 0.0
    if isinstance(log.users, SparseContexts):
        # A row's fingerprint is the sum of a random number for each feature that is on: among a
        # million rows, two that differ agree with a probability of about 1e-7.
        salt = np.random.default_rng(0).integers(1 << 63, size=log.dimension, dtype=np.uint64)
        part = log.users.take(rows)
        sums = np.concatenate(([np.uint64(0)], np.cumsum(salt[part.indices], dtype=np.uint64)))
        prints: npt.NDArray[Any] = sums[part.indptr[1:]] - sums[part.indptr[:-1]]
    else:
        # As plain bytes, five times faster than np.unique(axis=0); + 0: no negative zeros.
        bits = np.ascontiguousarray(log.users[rows] + np.float32(0))
        prints = bits.view(f"V{bits.itemsize * log.dimension}").ravel()
    return 1.0 - len(np.unique(prints)) / len(rows)
