"""The features of a log's events: each from what was known when the event happened."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.events import EventLog
from topstory.events.columns.array_record import blocks
from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.decisions import as_decisions, take_column
from topstory.events.columns.positions import PositionLookup
from topstory.events.columns.profiles import profile_kinds
from topstory.events.columns.varying import VaryingNumbers, starts_of
from topstory.features.event.declared import AGE, POSITION, SEEN, EventFeatures
from topstory.features.event.seen_articles import SeenArticles
from topstory.features.event.tables import EVENT_FEATURES
from topstory.kernels.compilation import Floats

BLOCK_EVENTS = 1 << 17


def check_events(
    declared: EventFeatures, timed: bool, columns: tuple[str, ...], visitors: bool
) -> None:
    """Raise ValueError if a log cannot give these features, and say what to do.

    Args:
        declared: the features.
        timed: whether the log has timestamps.
        columns: of what it knows of decisions.
        visitors: whether it says who came again.
    """
    for name in declared.used:
        needs = EVENT_FEATURES[name].needs
        if "timestamps" in needs and not timed:
            raise ValueError(
                f"event: {name} needs timestamps, and the log has none; topstory import --map "
                "takes them from a column (timestamp = …)"
            )
        if name == SEEN and not visitors:
            raise ValueError(
                f"event: {name} needs to know who came again, and no event of the log says so; "
                "topstory import --map takes visitors from a column (visitor = …), and in Python "
                "EventLog.from_arrays takes visitor and visitor_ids"
            )
        if name == POSITION and "slot" not in columns:
            raise ValueError(
                f"event: {name} needs the slot of each event, and the log has none; in Python "
                "EventLog.from_arrays takes decisions={'slot': …}"
            )


def published_field(declared: EventFeatures, profiles: Any) -> str | None:
    """The field of articles' profiles that says when they came out; None if age does not count."""
    if AGE not in declared.used:
        return None
    kinds = {} if profiles is None else profile_kinds(profiles)
    dates = [name for name, kind in kinds.items() if kind == "date"]
    advice = (
        "topstory import --map takes such a field of the articles from a column, and in Python "
        "article_profiles={'published': …} has datetimes"
    )
    if declared.published is not None:
        if declared.published not in dates:
            found = ", ".join(dates) or "none"
            raise ValueError(
                f"event: {AGE} needs publication times, and the articles have no date called "
                f"{declared.published!r}; their dates are: {found}. {advice}"
            )
        return declared.published
    if not dates:
        raise ValueError(
            f"event: {AGE} needs publication times, and the articles have no date; {advice}"
        )
    if len(dates) > 1:
        raise ValueError(
            f"event: the articles have several dates: {', '.join(dates)}; say which one is the "
            "publication time: published='…', or --published"
        )
    return dates[0]


def without_field(profiles: Any, field: str | None) -> Any | None:
    """A table of profiles without a field; None if nothing else is in it."""
    if profiles is None or field is None or field not in profiles.column_names:
        return profiles
    kept = profiles.drop_columns([field])
    return kept if kept.num_columns else None


def with_event_features(
    log: EventLog,
    declared: EventFeatures,
    contexts: npt.NDArray[np.float32],
    articles: Floats | None,
    identity: str,
) -> EventLog:
    """The raw log's events with contexts (V, d) of visitors and the numbers of each event.

    Each event has a context of its own, so there is no table of users: who came is a column.
    """
    people = log.visitors
    assert people is not None
    person = log.visitor_number
    known = person is not None and bool((person >= 0).any())
    check_events(
        declared,
        log.times is not None,
        () if log.decisions is None else tuple(log.decisions.column_names),
        known,
    )
    at = None if log.times is None else log.times.microseconds()
    profile, shared = contexts.shape[1] - 1, declared.per_event
    dimension = profile + len(declared.columns) + 1
    users = np.ones((len(log), dimension), np.float32)
    slot = None
    if POSITION in declared.used:
        slot = take_column(log.decisions, "slot")
    for start, stop in blocks(len(log), BLOCK_EVENTS):
        rows = slice(start, stop)
        users[rows, :profile] = contexts[people.number[rows], :-1]
        if shared:
            users[rows, profile : profile + shared] = declared.of_events(
                None if at is None else at[rows], None if slot is None else slot[rows]
            )
    varying = None
    if declared.per_article:
        varying = _varying(log, declared, at, slot)
        users[:, profile + shared : -1] = varying.values[varying.starts + log.position]
    columns = {} if log.decisions is None else dict(_columns(log.decisions))
    if known:
        columns["visitor"] = _names(log)
    return replace(
        log,
        users=users,
        visitors=None,
        exact=None,
        article_table=ArticleTable(log.article_ids, articles),
        decisions=as_decisions(columns, len(log)) if columns else None,
        feature_model=identity,
        event_numbers=len(declared.columns),
        varying=varying,
        event_features=len(declared.feature_columns),
    )


def _varying(
    log: EventLog,
    declared: EventFeatures,
    at: npt.NDArray[np.int64] | None,
    slot: npt.NDArray[np.int64] | None,
) -> VaryingNumbers:
    sizes = log.pool_sizes[log.pool]
    starts = starts_of(sizes)
    values = np.empty((int(sizes.sum()), declared.per_article), np.float32)
    published = None if AGE not in declared.used else _published(log, declared)
    seen = None if SEEN not in declared.used else _seen(log, starts, len(values))
    for start, stop in blocks(len(log), BLOCK_EVENTS):
        if start == stop:
            continue
        first, last = int(starts[start]), int(starts[stop - 1] + sizes[stop - 1])
        each = sizes[start:stop]
        begins = log.pool_offsets[log.pool[start:stop]] - starts[start:stop]
        member = log.pool_members[np.repeat(begins, each) + np.arange(first, last)]
        values[first:last] = declared.of_pairs(
            None if at is None else np.repeat(at[start:stop], each),
            None if published is None else published[member],
            None if seen is None else seen[first:last],
            None if slot is None else np.repeat(slot[start:stop], each),
        )
    return VaryingNumbers(values, starts)


def _published(log: EventLog, declared: EventFeatures) -> npt.NDArray[np.int64]:
    """(A,) microseconds; where it is missing, when the article was first in a pool of the log."""
    import pyarrow as pa

    field = published_field(declared, log.article_profiles)
    assert field is not None
    assert log.article_profiles is not None
    assert log.times is not None
    column = log.article_profiles.column(field).cast(pa.timestamp("us", tz="UTC"))
    micros = column.cast(pa.int64()).combine_chunks()
    found = micros.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    missing = ~micros.is_valid().to_numpy(zero_copy_only=False)
    if missing.any():
        at = log.times.microseconds()
        first = np.full(len(log.pool_table), np.iinfo(np.int64).max)
        np.minimum.at(first, log.pool, at)
        listed = np.full(len(found), np.iinfo(np.int64).max)
        np.minimum.at(listed, log.pool_members, np.repeat(first, log.pool_sizes))
        found[missing] = listed[missing]
    return found


def _seen(log: EventLog, starts: npt.NDArray[np.int64], pairs: int) -> npt.NDArray[np.int64]:
    """(pairs,) how often the event's visitor was shown the article before."""
    person, shown = log.visitor_number, log.shown_index.tolist()
    assert person is not None
    memory = SeenArticles()
    events: list[int] = []
    articles: list[int] = []
    times: list[int] = []
    for event, (visitor, article) in enumerate(zip(person.tolist(), shown, strict=True)):
        if visitor < 0:
            continue
        for before, often in memory.counts(visitor).items():
            events.append(event)
            articles.append(before)
            times.append(often)
        memory.note(visitor, article)
    found = np.zeros(pairs, np.int64)
    if events:
        find = PositionLookup(log.pool_table, len(log.article_ids))
        rows = np.array(events)
        place = find(log.pool[rows], np.array(articles, np.int32))
        there = place >= 0  # it may have left the pool
        found[starts[rows[there]] + place[there]] = np.array(times)[there]
    return found


def _columns(decisions: Any) -> list[tuple[str, Any]]:
    return [(name, decisions.column(name)) for name in decisions.column_names if name != "visitor"]


def _names(log: EventLog) -> Any:
    """(n,) the visitor's id, or number where there are no ids; null where it is not known."""
    import pyarrow as pa

    people = log.visitors
    assert people is not None
    number: Any = pa.array(people.number)
    if people.ids is not None:
        return people.ids.take(number)
    names = pa.array([str(row) for row in range(len(people.contexts))])
    return pa.DictionaryArray.from_arrays(number, names)
