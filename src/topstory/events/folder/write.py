"""Writing a log as a folder of Parquet files (docs/reference/log-format.md)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topstory.events.columns.array_record import BLOCK_ROWS, blocks
from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.contexts import Contexts, SparseContexts
from topstory.events.columns.decisions import stored_decisions
from topstory.events.columns.exact import ExactValues
from topstory.events.columns.profiles import profile_kinds
from topstory.events.columns.times import Times, as_datetime
from topstory.events.columns.varying import VaryingNumbers
from topstory.events.folder.contents import (
    ARTICLES,
    EVENTS,
    EVENTS_VERSION,
    FEATURES_VERSION,
    FORMAT,
    POOLS,
    USERS,
    VERSION,
    EventFile,
    LogContents,
    check_replaceable,
    write_contents,
)
from topstory.events.folder.location import check_local
from topstory.events.folder.parquet_files import parquet_writer
from topstory.events.folder.schemas import (
    articles_schema,
    events_schema,
    pools_schema,
    users_schema,
)
from topstory.files import replaced_folder

if TYPE_CHECKING:
    from topstory.events.columns.visitors import Visitors
    from topstory.events.log import EventLog

ROW_GROUP_ROWS = BLOCK_ROWS
FILE_ROWS = 4 * ROW_GROUP_ROWS  # so that even one long day is read and written on several cores

# A log that switches between days more often is split by rows instead of by days: thousands of
# tiny files are of no use.
MAX_FILES_PER_DAY = 10


def write(log: EventLog, folder: str | PathLike[str]) -> None:
    """`EventLog.write`."""
    files = list(_files(log))
    contents = msgspec.structs.replace(
        contents_of(log),
        events=len(log),
        files=tuple(EventFile(name, stop - start) for name, start, stop in files),
    )
    check_local(folder)
    with replaced_folder(Path(folder), check_replaceable) as fresh:
        (fresh / EVENTS).mkdir()
        write_articles(fresh / ARTICLES, log.article_table)
        if log.visitors is not None:
            write_users(fresh / USERS, log.visitors)
        _write_pools(log, fresh / POOLS)
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            jobs = [
                threads.submit(_write_events, log, contents, fresh / name, start, stop)
                for name, start, stop in files
            ]
            try:
                for job in jobs:
                    job.result()
            finally:
                threads.shutdown(cancel_futures=True)
        write_contents(fresh, contents)


def contents_of(log: EventLog) -> LogContents:
    """The `log.json` of a log, without its number of events and its files."""
    people, features = log.visitors, log.features
    recorded = log.recorded_propensity is not None
    return LogContents(
        format=FORMAT,
        version=_version(log),
        events=0,
        articles=len(log.article_ids),
        pools=len(log.pool_table),
        dimension=log.dimension,
        contexts="sparse" if isinstance(log.users, SparseContexts) else "dense",
        article_features=None if features is None else features.shape[1],
        timed=log.times is not None,
        recorded_propensity=recorded,
        files=(),
        article_profile=_names(log.article_profiles),
        article_profile_kinds=kinds_of(log.article_profiles),
        recorded_count=stored_count(log.propensities_recorded, recorded, len(log)),
        exact=log.exact is not None,
        feature_model=log.feature_model,
        propensity_estimate=log.propensity_estimate,
        decisions=() if log.decisions is None else tuple(log.decisions.column_names),
        event_numbers=log.event_numbers,
        varying=0 if log.varying is None else log.varying.width,
        event_features=log.event_features,
        **({} if people is None else contents_of_users(people)),
    )


def _version(log: EventLog) -> int:
    """The lowest that has all of it, so that earlier versions of topstory read what they can."""
    if log.event_features:
        return FEATURES_VERSION
    return EVENTS_VERSION if log.event_numbers else VERSION


def contents_of_users(people: Visitors) -> dict[str, Any]:
    """What `log.json` says of `users.parquet`."""
    return {
        "users": len(people.contexts),
        "user_profile": _names(people.profiles),
        "user_profile_kinds": kinds_of(people.profiles),
        "visitor_ids": people.ids is not None,
    }


def stored_count(count: int, recorded: bool, events: int) -> int | None:
    """The number of recorded propensities for `log.json`; None if it goes without saying.

    >>> stored_count(10, True, 10), stored_count(0, False, 10), stored_count(10, False, 10)
    (None, None, 10)
    """
    return None if count == (events if recorded else 0) else count


def _names(profiles: pa.Table | None) -> tuple[str, ...] | None:
    return None if profiles is None else tuple(profiles.column_names)


def kinds_of(profiles: pa.Table | None) -> dict[str, str] | None:
    """The kinds of a profile's fields for `log.json`."""
    return None if profiles is None else dict(profile_kinds(profiles))


def _files(log: EventLog) -> Iterator[tuple[str, int, int]]:
    """(name, first row, row after the last) of each file of events, in the log's order."""
    runs = None if log.times is None else _runs(log.times)
    if runs is None:
        for number, (start, stop) in enumerate(blocks(len(log), FILE_ROWS)):
            yield f"{EVENTS}/part-{number:05d}.parquet", start, stop
        return
    seen: dict[str, int] = {}
    for day, first, last in runs:
        name = as_datetime(day * 86_400_000_000).date().isoformat()
        for start, stop in blocks(last - first, FILE_ROWS):
            again = seen.get(name, 0)
            seen[name] = again + 1
            suffix = f"-{again}" if again else ""
            yield f"{EVENTS}/{name}{suffix}.parquet", first + start, first + stop


def _runs(times: Times) -> list[tuple[int, int, int]] | None:
    """(day, first row, row after the last) of each run of one UTC day; None if too many."""
    if not len(times):
        return []
    starts: list[int] = []
    days: list[int] = []
    for start, stop in blocks(len(times)):
        block = times.days(start, stop)
        turns = np.flatnonzero(np.diff(block)) + 1
        if not days or block[0] != days[-1]:
            turns = np.concatenate(([0], turns))
        starts.extend((turns + start).tolist())
        days.extend(block[turns].tolist())
        if len(days) > MAX_FILES_PER_DAY * max(len(set(days)), 10):
            return None
    return list(zip(days, starts, [*starts[1:], len(times)], strict=True))


def write_articles(path: Path, table: ArticleTable) -> None:
    """Write `articles.parquet`."""
    features = table.features
    schema = articles_schema(described=features is not None)
    columns: list[Any] = [_arrow(table.ids, pa.string())]
    if features is not None:
        articles, width = features.shape
        offsets = _arrow(np.arange(articles + 1, dtype=np.int32) * np.int32(width))
        columns.append(
            pa.ListArray.from_arrays(
                offsets, _arrow(features.ravel()), type=schema.field("features").type
            )
        )
    _write_rows(path, pa.Table.from_arrays(columns, schema=schema), table.profiles)


def write_users(path: Path, visitors: Visitors) -> None:
    """Write `users.parquet`."""
    schema = users_schema(visitors.contexts.shape[1], visitors.ids is not None)
    flat = _arrow(visitors.contexts.ravel())
    columns: list[Any] = [pa.FixedSizeListArray.from_arrays(flat, type=schema.field("user").type)]
    if visitors.ids is not None:
        columns.append(visitors.ids)
    _write_rows(path, pa.Table.from_arrays(columns, schema=schema), visitors.profiles)


def _write_rows(path: Path, table: pa.Table, profiles: pa.Table | None) -> None:
    if profiles is not None:
        for field in profiles.schema:
            table = table.append_column(field, profiles.column(field.name))
    with parquet_writer(path, table.schema) as writer:
        writer.write_table(table, row_group_size=ROW_GROUP_ROWS)


def pools_columns(first: int, offsets: npt.NDArray[np.int64], members: Any, ids: Any) -> pa.Table:
    """Rows of `pools.parquet`: pools numbered from `first`, members as indices into Arrow `ids`."""
    schema = pools_schema()
    lists = pa.ListArray.from_arrays(
        _arrow((offsets - offsets[0]).astype(np.int32)),
        ids.take(_arrow(members)),
        type=schema.field("articles").type,
    )
    numbers = _arrow(np.arange(first, first + len(offsets) - 1, dtype=np.int32))
    return pa.Table.from_arrays([numbers, lists], schema=schema)


def _write_pools(log: EventLog, path: Path) -> None:
    ids = _arrow(log.article_ids, pa.string())
    with parquet_writer(path, pools_schema()) as writer:
        # In blocks: as strings, many pools would fill the memory.
        for start, stop in blocks(len(log.pool_table), BLOCK_ROWS // 8):
            offsets = log.pool_offsets[start : stop + 1]
            members = log.pool_members[offsets[0] : offsets[-1]]
            writer.write_table(pools_columns(start, offsets, members, ids))


def _write_events(log: EventLog, contents: LogContents, path: Path, first: int, last: int) -> None:
    schema = events_schema(contents)
    with parquet_writer(path, schema) as writer:
        for start, stop in blocks(last - first, ROW_GROUP_ROWS):
            part = log[first + start : first + stop]
            columns = EventRows(
                times=None if part.times is None else part.times.microseconds(),
                users=part.users,
                visitor=None if part.visitors is None else part.visitors.number,
                pool=part.pool,
                shown=part.shown_index,
                payoff=part.payoff,
                propensity=part.propensity,
                exact=part.exact,
                decisions=part.decisions,
                sizes=part.pool_sizes[part.pool],
                varying=part.varying,
            )
            table = events_table(columns, part.article_ids, schema)
            writer.write_table(table, row_group_size=ROW_GROUP_ROWS)


@dataclass(frozen=True, eq=False)
class EventRows:
    """Events in the form in which files store them."""

    times: npt.NDArray[np.int64] | None  # microseconds
    users: Contexts
    visitor: npt.NDArray[np.int32] | None  # if given, it is written instead of users
    pool: npt.NDArray[np.int32]
    shown: npt.NDArray[np.int32]  # article indices
    payoff: npt.NDArray[np.float32]
    propensity: npt.NDArray[np.float32]
    exact: ExactValues | None
    decisions: pa.Table | None
    sizes: npt.NDArray[np.int64]  # of the events' pools
    varying: VaryingNumbers | None


def events_table(events: EventRows, ids: Sequence[str], schema: pa.Schema) -> pa.Table:
    """Rows of a file of events, whose shown articles are indices into `ids`."""
    columns: list[Any] = []
    if events.times is not None:
        columns.append(_arrow(events.times).view(schema.field("timestamp").type))
    if events.visitor is not None:
        columns.append(_arrow(events.visitor))
    elif isinstance(events.users, SparseContexts):
        kind = schema.field("user").type
        offsets = _arrow(events.users.indptr.astype(np.int32))
        columns.append(pa.ListArray.from_arrays(offsets, _arrow(events.users.indices), type=kind))
    else:
        kind = schema.field("user").type
        flat = _arrow(events.users.ravel())
        columns.append(pa.FixedSizeListArray.from_arrays(flat, type=kind))
    columns.append(_arrow(events.pool))
    # Parquet writes the whole dictionary into each row group, so it gets only the ids in use.
    used = np.flatnonzero(np.bincount(events.shown, minlength=len(ids)))
    code = np.zeros(len(ids), np.int32)
    code[used] = np.arange(len(used))
    names = _arrow([ids[i] for i in used.tolist()], pa.string())
    columns.append(pa.DictionaryArray.from_arrays(_arrow(code[events.shown]), names))
    columns += [_arrow(events.payoff), _arrow(events.propensity)]
    if events.exact is not None:
        flat, kind = _arrow(events.exact.users.ravel()), schema.field("user_exact").type
        columns += [
            pa.FixedSizeListArray.from_arrays(flat, type=kind),
            _arrow(events.exact.payoff),
        ]
    if events.varying is not None:
        columns.append(_varying(events.varying, events.sizes, schema.field("varying").type))
    if events.decisions is not None:
        columns += stored_decisions(events.decisions).columns
    return pa.Table.from_arrays(columns, schema=schema)


def _varying(numbers: VaryingNumbers, sizes: npt.NDArray[np.int64], kind: Any) -> Any:
    packed = numbers.packed(sizes)
    ends = np.append(packed.starts, len(packed.values)) * packed.width
    return pa.ListArray.from_arrays(
        _arrow(ends.astype(np.int32)), _arrow(packed.values.ravel()), type=kind
    )


def _arrow(values: Any, kind: Any = None) -> Any:
    return pa.array(values, kind)
