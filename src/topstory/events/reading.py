"""A folder of Parquet files into a log (docs/log-format.md)."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topstory.events.articles import ArticleTable, as_id
from topstory.events.contexts import Contexts, SparseContexts, check_sparse, unfit_rows
from topstory.events.folder import ARTICLES, CONTENTS, POOLS, Contents, read_contents
from topstory.events.log import EventLog
from topstory.events.parquet import (
    articles_schema,
    batches,
    events_schema,
    opened,
    pools_schema,
)
from topstory.events.pools import PoolTable
from topstory.events.replacing import left_aside
from topstory.events.shown import UNKNOWN, Finder, look_up, plain, position_type
from topstory.events.times import EARLIEST, LATEST, Times

Array = npt.NDArray[Any]

# A log that is replaced while it is read is simply read again; nobody replaces it this often.
TRIES = 5


def read(folder: str | PathLike[str]) -> EventLog:
    """`EventLog.read`."""
    folder = Path(folder)
    for _ in range(TRIES):
        before = _version(folder)
        try:
            log = _read(folder)
        except (OSError, ValueError):
            if before == _version(folder):
                _point_to_interrupted(folder)
                raise
        else:
            if before == _version(folder):
                return log
    raise OSError(f"{folder}: the log was replaced again and again while it was read; try again")


def _version(folder: Path) -> tuple[int, ...]:
    try:
        stat = (folder / CONTENTS).stat()
    except OSError:
        return ()
    return stat.st_dev, stat.st_ino, stat.st_ctime_ns


def _point_to_interrupted(folder: Path) -> None:
    aside = left_aside(Path(os.path.realpath(folder)))
    if not folder.exists() and aside.is_dir():
        raise FileNotFoundError(
            f"{folder}: a write was interrupted while it replaced the log; "
            f"the old one is whole: rename {aside.name} to {folder.name}"
        )


def _read(folder: Path) -> EventLog:
    contents = read_contents(folder)
    articles = _read_articles(folder / ARTICLES, contents)
    pools = _read_pools(folder / POOLS, contents, articles)
    files = [(folder / file.name, file.events) for file in contents.files]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        # Every footer first: no memory is taken on the word of log.json alone.
        for check in [threads.submit(_check_footer, contents, *file) for file in files]:
            check.result()
        columns = _Columns(contents, articles, pools)
        jobs = [threads.submit(columns.fill, number, *file) for number, file in enumerate(files)]
        try:
            for job in jobs:
                job.result()
        finally:
            threads.shutdown(cancel_futures=True)
    return columns.log()


def _check_footer(contents: Contents, path: Path, rows: int) -> None:
    with opened(path, events_schema(contents), rows):
        pass


def _read_articles(path: Path, contents: Contents) -> ArticleTable:
    width = contents.article_features
    ids: list[str] = []
    features = np.empty((contents.articles, width or 0))
    schema = articles_schema(described=width is not None)
    for start, batch in batches(path, schema, contents.articles):
        ids += batch.column("article").to_pylist()
        if width is None:
            continue
        lists = batch.column("features")
        odd = np.flatnonzero(lists.value_lengths().to_numpy(zero_copy_only=False) != width)
        if len(odd):
            raise ValueError(
                f"{path}: row {start + odd[0]}: an article must have {width} features, "
                f"as {CONTENTS} says"
            )
        rows = lists.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
        strange = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(strange):
            raise ValueError(f"{path}: row {start + strange[0]}: features must be finite")
        features[start : start + len(batch)] = rows
    seen: set[str] = set()
    for row, key in enumerate(ids):
        as_id(key, f"{path}: row {row}")
        if key in seen:
            raise ValueError(f"{path}: row {row}: article {key!r} is listed twice")
        seen.add(key)
    return ArticleTable(tuple(ids), None if width is None else features)


def _read_pools(path: Path, contents: Contents, articles: ArticleTable) -> PoolTable:
    known = pa.array(articles.ids, pa.string())
    offsets = np.zeros(contents.pools + 1, np.int64)
    members = [np.empty(0, np.int32)]
    for start, batch in batches(path, pools_schema(), contents.pools):
        numbers = batch.column("pool").to_numpy()
        if not np.array_equal(numbers, np.arange(start, start + len(batch))):
            raise ValueError(
                f"{path}: column 'pool' must count from 0 to {contents.pools - 1}, in order"
            )
        lists = batch.column("articles")
        sizes = lists.value_lengths().to_numpy(zero_copy_only=False)
        offsets[start + 1 : start + 1 + len(batch)] = sizes
        ids = lists.flatten()
        indices = look_up(ids, known)
        if (indices == UNKNOWN).any():
            at = int((indices == UNKNOWN).argmax())
            number = start + int(np.searchsorted(np.cumsum(sizes), at, side="right"))
            raise ValueError(
                f"{path}: pool {number} lists unknown article {ids[at].as_py()!r}; "
                f"add it to {ARTICLES}"
            )
        members.append(indices)
    table = PoolTable(np.cumsum(offsets), np.concatenate(members))
    try:
        table.check(articles)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return table


class _Columns:
    """Columns of the final length; each file fills its own rows, so files may come in any order.

    What is in a file is not trusted: everything `from_arrays` checks is checked again.
    """

    def __init__(self, contents: Contents, articles: ArticleTable, pools: PoolTable) -> None:
        events = contents.events
        self._contents, self._articles, self._pools = contents, articles, pools
        self._starts = np.cumsum([0, *(file.events for file in contents.files)]).tolist()
        self._known = pa.array(articles.ids, pa.string())
        self._find = Finder(pools, len(articles.ids))
        self._sparse = contents.contexts == "sparse"
        # How many features are on is known only once a file is read.
        self._parts: list[list[Array]] = [[] for _ in contents.files]
        self._sizes = np.zeros(events + 1 if self._sparse else 0, np.int64)
        self._users = np.empty((0 if self._sparse else events, contents.dimension), np.float32)
        self._pool = np.empty(events, np.int32)
        self._position = np.empty(events, position_type(pools))
        self._payoff = np.empty(events, np.float32)
        self._propensity = np.empty(events if contents.recorded_propensity else 0, np.float32)
        self._micros = np.empty(events if contents.timed else 0, np.int64)

    def fill(self, number: int, path: Path, rows: int) -> None:
        """Read file `number` into its place."""
        schema = events_schema(self._contents)
        if not self._contents.recorded_propensity:
            # Always in the file, for other tools; here it follows from the pools.
            schema = schema.remove(schema.get_field_index("propensity"))
        for start, batch in batches(path, schema, rows):
            place = slice(self._starts[number] + start, self._starts[number] + start + len(batch))
            where = f"{path}: row "
            self._fill_users(batch.column("user"), place, number, where, start)
            self._fill_shown(batch, place, where, start)
            payoff = _values(batch, "payoff")
            _refuse(~np.isfinite(payoff), payoff, where, start, "payoff {}; it must be finite")
            self._payoff[place] = payoff
            if self._contents.recorded_propensity:
                chance = _values(batch, "propensity")
                bad = ~((chance > 0) & (chance <= 1))
                _refuse(bad, chance, where, start, "propensity {}; it must lie in (0, 1]")
                self._propensity[place] = chance
            if self._contents.timed:
                micros = batch.column("timestamp").view(pa.int64()).to_numpy()
                bad = (micros < EARLIEST) | (micros > LATEST)
                _refuse(bad, micros, where, start, "timestamp {} us; years go from 1 to 9999")
                self._micros[place] = micros
        # Else Arrow keeps what it no longer needs: 100 MB more after 5 M events.
        pa.default_memory_pool().release_unused()

    def log(self) -> EventLog:
        """The log, once every file has been filled in."""
        users: Contexts = self._users
        if self._sparse:
            indices = [part for parts in self._parts for part in parts]
            users = SparseContexts(
                np.cumsum(self._sizes),
                np.concatenate([np.empty(0, np.int32), *indices]),
                self._contents.dimension,
            )
        contents = self._contents
        return EventLog(
            users=users,
            pool=self._pool,
            position=self._position,
            payoff=self._payoff,
            recorded_propensity=self._propensity if contents.recorded_propensity else None,
            times=Times.from_microseconds(self._micros) if contents.timed else None,
            pool_table=self._pools,
            article_table=self._articles,
        )

    def _fill_users(self, column: Any, place: slice, number: int, where: str, start: int) -> None:
        values = column.flatten().to_numpy(zero_copy_only=False)
        if not self._sparse:
            users = values.reshape(len(column), -1)
            if not np.isfinite(values).all():
                _refuse(unfit_rows(users), users, where, start, "user {}; features must be finite")
            self._users[place] = users
            return
        sizes = column.value_lengths().to_numpy(zero_copy_only=False)
        indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))
        check_sparse(SparseContexts(indptr, values, self._contents.dimension), where, start)
        self._sizes[place.start + 1 : place.stop + 1] = sizes
        self._parts[number].append(values.copy())

    def _fill_shown(self, batch: Any, place: slice, where: str, start: int) -> None:
        pool = _values(batch, "pool")
        bad = (pool < 0) | (pool >= len(self._pools))
        _refuse(bad, pool, where, start, f"pool {{}}; there are {len(self._pools)} pools")
        shown = batch.column("shown")
        article = look_up(shown, self._known)
        if article.min(initial=0) == UNKNOWN:
            bad = article == UNKNOWN
            _refuse(bad, shown, where, start, "shown article {} is not in articles.parquet")
        position = self._find(pool, article)
        if position.min(initial=0) == UNKNOWN:
            bad = position == UNKNOWN
            _refuse(bad, shown, where, start, "shown article {} is not in its pool")
        self._pool[place] = pool
        self._position[place] = position


def _values(batch: Any, name: str) -> Array:
    values: Array = batch.column(name).to_numpy()
    return values


def _refuse(bad: Array, values: Any, where: str, start: int, message: str) -> None:
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(f"{where}{start + at}: {message.format(plain(values[at]))}")
