"""Reading a log from its folder of Parquet files (docs/reference/log-format.md)."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topstory.events.columns.arrow_ids import UNKNOWN, as_numpy, as_python, id_indices, string_array
from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.contexts import Contexts, SparseContexts, check_sparse, invalid_rows
from topstory.events.columns.decisions import check_decisions, join_decisions, typed_decisions
from topstory.events.columns.exact import ExactValues
from topstory.events.columns.pools import PoolTable
from topstory.events.columns.positions import PositionLookup, position_type
from topstory.events.columns.times import EARLIEST, LATEST, Times
from topstory.events.columns.varying import VaryingNumbers, starts_of
from topstory.events.columns.visitors import Visitors, check_visitor_numbers
from topstory.events.folder.contents import (
    ARTICLES,
    CONTENTS,
    POOLS,
    USERS,
    LogContents,
    read_contents,
)
from topstory.events.folder.location import Location, RemotePath, location
from topstory.events.folder.memory import check_memory
from topstory.events.folder.parquet_files import batches, opened
from topstory.events.folder.read_tables import UserTable, read_articles, read_pools, read_users
from topstory.events.folder.schemas import events_schema
from topstory.events.log import EventLog
from topstory.files import left_aside

Array = npt.NDArray[Any]

# A log that is replaced while it is read is read again; nobody replaces it this often.
MAX_TRIES = 5


def read(folder: str | PathLike[str]) -> EventLog:
    """`EventLog.read`."""
    place = location(folder)
    for _ in range(MAX_TRIES):
        before = _version(place)
        try:
            log = _read(place)
        except (OSError, ValueError):
            if before == _version(place):
                _report_interrupted_write(place)
                raise
        else:
            if before == _version(place):
                return log
    raise OSError(f"{place}: the log was replaced repeatedly while it was read; try again")


def _version(folder: Location) -> tuple[int, ...]:
    if isinstance(folder, RemotePath):
        return (folder / CONTENTS).version()
    try:
        stat = (folder / CONTENTS).stat()
    except OSError:
        return ()
    return stat.st_dev, stat.st_ino, stat.st_ctime_ns


def _report_interrupted_write(folder: Location) -> None:
    if isinstance(folder, RemotePath):
        return
    aside = left_aside(Path(os.path.realpath(folder)))
    if not folder.exists() and aside.is_dir():
        raise FileNotFoundError(
            f"{folder}: a write was interrupted while it replaced the log; "
            f"the old log is complete: rename {aside.name} to {folder.name}"
        )


def _read(folder: Location) -> EventLog:
    contents = read_contents(folder)
    articles = read_articles(folder / ARTICLES, contents)
    pools = read_pools(folder / POOLS, contents, articles)
    users = None if contents.users is None else read_users(folder / USERS, contents)
    files = [(folder / file.name, file.events) for file in contents.files]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        # All footers first, so that no memory is allocated on the word of log.json alone.
        for check in [threads.submit(_check_footer, contents, *file) for file in files]:
            check.result()
        check_memory(folder, contents)
        columns = LogBuffers(contents, articles, pools, users)
        jobs = [threads.submit(columns.fill, number, *file) for number, file in enumerate(files)]
        try:
            for job in jobs:
                job.result()
        finally:
            threads.shutdown(cancel_futures=True)
    return columns.log()


def _check_footer(contents: LogContents, path: Location, rows: int) -> None:
    with opened(path, events_schema(contents), rows):
        pass


class LogBuffers:
    """Columns of the final length. Each file fills its own rows, so files may be read in any order.

    Files are not trusted: everything that `from_arrays` checks is checked again.
    """

    def __init__(
        self,
        contents: LogContents,
        articles: ArticleTable,
        pools: PoolTable,
        people: UserTable | None,
    ) -> None:
        events = contents.events
        self._contents, self._articles, self._pools = contents, articles, pools
        self._people = people
        self._visitor = np.empty(0 if people is None else events, np.int32)
        self._starts = np.cumsum([0, *(file.events for file in contents.files)]).tolist()
        self._known = string_array(articles.ids)
        self._find = PositionLookup(pools, len(articles.ids))
        self._sparse = contents.contexts == "sparse"
        # How many features are on is known only after reading the file.
        self._parts: list[list[Array]] = [[] for _ in contents.files]
        self._sizes = np.zeros(events + 1 if self._sparse else 0, np.int64)
        self._users = np.empty((0 if self._sparse else events, contents.dimension), np.float32)
        self._pool = np.empty(events, np.int32)
        self._position = np.empty(events, position_type(pools))
        self._payoff = np.empty(events, np.float32)
        self._propensity = np.empty(events if contents.recorded_propensity else 0, np.float32)
        exact = events if contents.exact else 0
        self._exact_users = np.empty((exact, contents.dimension))
        self._exact_payoff = np.empty(exact)
        self._micros = np.empty(events if contents.timed else 0, np.int64)
        self._decisions: list[list[pa.Table]] = [[] for _ in contents.files]
        self._varying: list[list[Array]] = [[] for _ in contents.files]

    def fill(
        self, number: int, path: Location, rows: int, first: int = 0, last: int | None = None
    ) -> None:
        """Read file `number` into its place, or its rows first … last − 1."""
        schema = events_schema(self._contents)
        if not self._contents.recorded_propensity:
            # The file always has it, for other tools; here it follows from the pools.
            schema = schema.remove(schema.get_field_index("propensity"))
        for start, batch in batches(path, schema, rows, first, last):
            place = slice(begin := self._starts[number] + start - first, begin + len(batch))
            where = f"{path}: row "
            if self._people is None:
                self._fill_users(batch.column("user"), place, number, where, start)
            else:
                visitor = _values(batch, "visitor")
                check_visitor_numbers(visitor, len(self._people.contexts), where, start)
                self._visitor[place] = visitor
                self._users[place] = self._people.contexts[visitor]
            self._fill_shown(batch, place, where, start)
            payoff = _values(batch, "payoff")
            _raise_at(~np.isfinite(payoff), payoff, where, start, "payoff {}; it must be finite")
            self._payoff[place] = payoff
            if self._contents.exact:
                self._fill_exact(batch, place, where, start)
            if self._contents.recorded_propensity:
                chance = _values(batch, "propensity")
                bad = ~((chance > 0) & (chance <= 1))
                _raise_at(bad, chance, where, start, "propensity {}; it must lie in (0, 1]")
                self._propensity[place] = chance
            if self._contents.varying:
                self._varying[number].append(self._read_varying(batch, place, where, start))
            if self._contents.decisions:
                table = pa.Table.from_batches([batch]).select(list(self._contents.decisions))
                check_decisions(table, where, start)
                self._decisions[number].append(typed_decisions(table))
            if self._contents.timed:
                micros = as_numpy(batch.column("timestamp").view(pa.int64()), zero_copy_only=True)
                bad = (micros < EARLIEST) | (micros > LATEST)
                _raise_at(bad, micros, where, start, "timestamp {} us; years go from 1 to 9999")
                self._micros[place] = micros
        # Otherwise Arrow keeps memory that it no longer needs: 100 MB after 5 M events.
        pa.default_memory_pool().release_unused()

    def log(self) -> EventLog:
        """The log; call it after all files have been read."""
        users: Contexts = self._users
        if self._sparse:
            indices = [part for parts in self._parts for part in parts]
            users = SparseContexts(
                np.cumsum(self._sizes),
                np.concatenate([np.empty(0, np.int32), *indices]),
                self._contents.dimension,
            )
        contents, people = self._contents, self._people
        visitors = None
        if people is not None:
            visitors = Visitors(self._visitor, people.contexts, people.profiles, people.ids)
        tables = [(table, len(table)) for tables in self._decisions for table in tables]
        return EventLog(
            users=users,
            pool=self._pool,
            position=self._position,
            payoff=self._payoff,
            recorded_propensity=self._propensity if contents.recorded_propensity else None,
            times=Times.from_microseconds(self._micros) if contents.timed else None,
            pool_table=self._pools,
            article_table=self._articles,
            visitors=visitors,
            recorded_count=contents.recorded_count,
            exact=ExactValues(self._exact_users, self._exact_payoff) if contents.exact else None,
            feature_model=contents.feature_model,
            propensity_estimate=contents.propensity_estimate,
            decisions=join_decisions(tables),
            event_numbers=contents.event_numbers,
            varying=self._varying_numbers(),
            event_features=contents.event_features,
        )

    def _varying_numbers(self) -> VaryingNumbers | None:
        width = self._contents.varying
        if not width:
            return None
        flat = [part for parts in self._varying for part in parts]
        values = np.concatenate([np.empty(0, np.float32), *flat]).reshape(-1, width)
        return VaryingNumbers(values, starts_of(self._pools.sizes[self._pool]))

    def _read_varying(self, batch: Any, place: slice, where: str, start: int) -> Array:
        """The numbers of each article of the pool; those of the shown one are in the context."""
        column, width = batch.column("varying"), self._contents.varying
        sizes = self._pools.sizes[self._pool[place]]
        found = as_numpy(column.value_lengths())
        wanted = f"{{}} numbers that vary by article; its pool needs {width} for each article"
        _raise_at(found != sizes * width, found, where, start, wanted)
        flat = as_numpy(column.flatten())
        values = flat.reshape(-1, width)
        shown = values[starts_of(sizes) + self._position[place]]
        users = self._users[place][:, -1 - width : -1]
        same = (shown == users).all(axis=1)  # false for what is no number
        _raise_at(~same, shown, where, start, "varying {} is not what the context has")
        if not np.isfinite(flat).all():
            raise ValueError(f"{where}{start} or later: a number that varies is not finite")
        return np.array(flat)

    def _fill_exact(self, batch: Any, place: slice, where: str, start: int) -> None:
        """The same contexts and payoffs, before they were rounded."""
        flat = as_numpy(batch.column("user_exact").flatten())
        users, payoff = flat.reshape(len(batch), -1), _values(batch, "payoff_exact")
        with np.errstate(over="ignore"):  # then it differs
            same = (users.astype(np.float32) == self._users[place]).all(axis=1)
            paid = payoff.astype(np.float32) == self._payoff[place]
        _raise_at(~same, users, where, start, "user_exact {} is not what `user` was rounded from")
        _raise_at(~paid, payoff, where, start, "payoff_exact {} is not what `payoff` came from")
        self._exact_users[place], self._exact_payoff[place] = users, payoff

    def _fill_users(self, column: Any, place: slice, number: int, where: str, start: int) -> None:
        values = as_numpy(column.flatten())
        if not self._sparse:
            users = values.reshape(len(column), -1)
            if not np.isfinite(values).all():
                _raise_at(
                    invalid_rows(users), users, where, start, "user {}; features must be finite"
                )
            self._users[place] = users
            return
        sizes = as_numpy(column.value_lengths())
        indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))
        check_sparse(SparseContexts(indptr, values, self._contents.dimension), where, start)
        self._sizes[place.start + 1 : place.stop + 1] = sizes
        self._parts[number].append(values.copy())

    def _fill_shown(self, batch: Any, place: slice, where: str, start: int) -> None:
        pool = _values(batch, "pool")
        bad = (pool < 0) | (pool >= len(self._pools))
        _raise_at(bad, pool, where, start, f"pool {{}}; there are {len(self._pools)} pools")
        shown = batch.column("shown")
        article = id_indices(shown, self._known)
        if article.min(initial=0) == UNKNOWN:
            bad = article == UNKNOWN
            _raise_at(bad, shown, where, start, "shown article {} is not in articles.parquet")
        position = self._find(pool, article)
        if position.min(initial=0) == UNKNOWN:
            bad = position == UNKNOWN
            _raise_at(bad, shown, where, start, "shown article {} is not in its pool")
        self._pool[place] = pool
        self._position[place] = position


def _values(batch: Any, name: str) -> Array:
    values: Array = as_numpy(batch.column(name), zero_copy_only=True)
    return values


def _raise_at(bad: Array, values: Any, where: str, start: int, message: str) -> None:
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(f"{where}{start + at}: {message.format(as_python(values[at]))}")
