"""A log into a folder of Parquet files (docs/log-format.md)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from topstory.events.columns import BLOCK, blocks
from topstory.events.contexts import SparseContexts
from topstory.events.folder import (
    ARTICLES,
    EVENTS,
    FORMAT,
    POOLS,
    VERSION,
    Contents,
    EventFile,
    check_replaceable,
    write_contents,
)
from topstory.events.parquet import articles_schema, events_schema, pools_schema
from topstory.events.replacing import replacing
from topstory.events.times import Times, as_datetime

if TYPE_CHECKING:
    from topstory.events.log import EventLog

ROW_GROUP = BLOCK
FILE = 4 * ROW_GROUP  # so that one long day is still read and written on several cores

# A log that jumps between days more often than this is cut by rows instead: thousands of tiny
# files serve nobody.
FILES_PER_DAY = 10


def write(log: EventLog, folder: str | PathLike[str]) -> None:
    """`EventLog.write`."""
    files = list(_files(log))
    features = log.features
    contents = Contents(
        format=FORMAT,
        version=VERSION,
        events=len(log),
        articles=len(log.article_ids),
        pools=len(log.pool_table),
        dimension=log.dimension,
        contexts="sparse" if isinstance(log.users, SparseContexts) else "dense",
        article_features=None if features is None else features.shape[1],
        timed=log.times is not None,
        recorded_propensity=log.recorded_propensity is not None,
        files=tuple(EventFile(name, stop - start) for name, start, stop in files),
    )
    with replacing(Path(folder), check_replaceable) as fresh:
        (fresh / EVENTS).mkdir()
        _write_articles(log, contents, fresh / ARTICLES)
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


def _files(log: EventLog) -> Iterator[tuple[str, int, int]]:
    """(name, first row, row after the last) of each file of events, in the log's order."""
    runs = None if log.times is None else _runs(log.times)
    if runs is None:
        for number, (start, stop) in enumerate(blocks(len(log), FILE)):
            yield f"{EVENTS}/part-{number:05d}.parquet", start, stop
        return
    seen: dict[str, int] = {}
    for day, first, last in runs:
        name = as_datetime(day * 86_400_000_000).date().isoformat()
        for start, stop in blocks(last - first, FILE):
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
        if len(days) > FILES_PER_DAY * max(len(set(days)), 10):
            return None
    return list(zip(days, starts, [*starts[1:], len(times)], strict=True))


def _write_articles(log: EventLog, contents: Contents, path: Path) -> None:
    schema = articles_schema(described=contents.article_features is not None)
    columns: list[Any] = [_arrow(log.article_ids, pa.string())]
    if log.features is not None:
        articles, width = log.features.shape
        offsets = _arrow(np.arange(articles + 1, dtype=np.int32) * np.int32(width))
        columns.append(
            pa.ListArray.from_arrays(
                offsets, _arrow(log.features.ravel()), type=schema.field("features").type
            )
        )
    with _writer(path, schema) as writer:
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def _write_pools(log: EventLog, path: Path) -> None:
    schema = pools_schema()
    ids = _arrow(log.article_ids, pa.string())
    with _writer(path, schema) as writer:
        # Not all at once: written out as strings, many pools fill the memory.
        for start, stop in blocks(len(log.pool_table), BLOCK // 8):
            offsets = log.pool_offsets[start : stop + 1]
            members = ids.take(_arrow(log.pool_members[offsets[0] : offsets[-1]]))
            lists = pa.ListArray.from_arrays(
                _arrow((offsets - offsets[0]).astype(np.int32)),
                members,
                type=schema.field("articles").type,
            )
            numbers = _arrow(np.arange(start, stop, dtype=np.int32))
            writer.write_table(pa.Table.from_arrays([numbers, lists], schema=schema))


def _write_events(log: EventLog, contents: Contents, path: Path, first: int, last: int) -> None:
    schema = events_schema(contents)
    with _writer(path, schema) as writer:
        for start, stop in blocks(last - first, ROW_GROUP):
            part = log[first + start : first + stop]
            table = pa.Table.from_arrays(_event_columns(part, schema), schema=schema)
            writer.write_table(table, row_group_size=ROW_GROUP)


def _event_columns(part: EventLog, schema: pa.Schema) -> list[Any]:
    columns: list[Any] = []
    if part.times is not None:
        columns.append(_arrow(part.times.microseconds()).view(schema.field("timestamp").type))
    kind = schema.field("user").type
    if isinstance(part.users, SparseContexts):
        offsets = _arrow(part.users.indptr.astype(np.int32))
        columns.append(pa.ListArray.from_arrays(offsets, _arrow(part.users.indices), type=kind))
    else:
        flat = _arrow(part.users.ravel())
        columns.append(pa.FixedSizeListArray.from_arrays(flat, type=kind))
    columns.append(_arrow(part.pool))
    # Parquet would write the whole dictionary into each row group: only the ids that occur in it.
    index = part.shown_index
    used = np.flatnonzero(np.bincount(index, minlength=len(part.article_ids)))
    code = np.zeros(len(part.article_ids), np.int32)
    code[used] = np.arange(len(used))
    ids = _arrow([part.article_ids[i] for i in used], pa.string())
    columns.append(pa.DictionaryArray.from_arrays(_arrow(code[index]), ids))
    return [*columns, _arrow(part.payoff), _arrow(part.propensity)]


def _arrow(values: Any, kind: Any = None) -> Any:
    return pa.array(values, kind)


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    # Contexts hardly repeat, so a dictionary of them is only work; the checksums let a reader
    # tell a damaged page from a strange one, at no cost that could be measured.
    repeated: Any = [name for name in schema.names if name not in ("timestamp", "user", "features")]
    return pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=repeated, write_page_checksum=True
    )
