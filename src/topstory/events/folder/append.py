"""Writing a log batch by batch into a folder, in bounded memory."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

import msgspec
import numpy as np
import pyarrow.parquet as pq

from topstory.events.columns.contexts import take_contexts
from topstory.events.columns.decisions import join_decisions, take_decisions
from topstory.events.columns.exact import join_exact
from topstory.events.columns.times import DAY, as_datetime
from topstory.events.columns.varying import join_varying
from topstory.events.columns.visitors import Visitors
from topstory.events.concat import join_users
from topstory.events.folder.contents import (
    ARTICLES,
    EVENTS,
    POOLS,
    USERS,
    EventFile,
    LogContents,
    write_contents,
)
from topstory.events.folder.location import check_local
from topstory.events.folder.merge import MergedArticles, MergedPools
from topstory.events.folder.parquet_files import parquet_writer
from topstory.events.folder.schemas import events_schema
from topstory.events.folder.write import (
    FILE_ROWS,
    MAX_FILES_PER_DAY,
    ROW_GROUP_ROWS,
    EventRows,
    contents_of,
    contents_of_users,
    events_table,
    kinds_of,
    stored_count,
    write_articles,
    write_users,
)
from topstory.events.log import EventLog

MAX_WAITING_BYTES = 1 << 26  # of events that wait for a full row group


class Appender:
    """Writes batches as one log into an existing empty folder; `finish` completes it.

    Pools and articles are merged as by `EventLog.concat`, with one difference: an article whose
    features change keeps the first ones, and `appender.articles.changed` counts such batches.

    >>> import tempfile
    >>> log = EventLog.from_arrays(np.ones((1, 1)), [["a", "b"]], [0], ["b"], [1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Appender(Path(folder)) as appender:
    ...         appender.append(log)
    ...         appender.append(log)
    ...         contents = appender.finish()
    ...     EventLog.read(folder)
    <EventLog: 2 events, 2 articles, 1 pool, untimed, CTR 1.0000>
    """

    def __init__(self, folder: Path) -> None:
        check_local(folder)
        self._folder = folder
        self.articles = MergedArticles()
        self.propensities_recorded = 0
        self._pools = MergedPools(folder / POOLS)
        self._contents: LogContents | None = None
        self._visitors: Visitors | None = None
        self._files: list[EventFile] = []
        self._names: dict[str, int] = {}  # how many files a name has already
        self._day: int | None = None  # None: files are split by rows
        self._shuffled = False
        self._waiting: list[EventRows] = []
        self._rows, self._bytes = 0, 0  # of what is waiting
        self._in_file = 0
        self._writer: pq.ParquetWriter | None = None
        # Compression runs on a second core; at most one row group waits for it.
        self._thread = ThreadPoolExecutor(1, "append")
        self._job: Future[None] | None = None
        (folder / EVENTS).mkdir()

    def __enter__(self) -> Appender:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._thread.shutdown(cancel_futures=True)
        if self._writer is not None:
            self._writer.close()
        self._pools.close()

    def append(self, log: EventLog) -> None:
        """Add a batch of events."""
        self._check_agreement(log)
        if not len(log):
            return
        self._check_visitors(log.visitors)
        self.propensities_recorded += log.propensities_recorded
        article = self.articles.add(log.article_table)
        events = EventRows(
            times=None if log.times is None else log.times.microseconds(),
            users=log.users,
            visitor=None if log.visitors is None else log.visitors.number,
            pool=self._pools.add(log, article, self.articles),
            shown=article[log.shown_index],
            payoff=log.payoff,
            propensity=log.propensity,
            exact=log.exact,
            decisions=log.decisions,
            sizes=log.pool_sizes[log.pool],
            varying=log.varying,
        )
        if events.times is None or self._shuffled:
            self._add(events)
            return
        days = events.times // DAY
        starts = [0, *(np.flatnonzero(np.diff(days)) + 1).tolist()]
        many = {file.name[: len("events/2009-05-01")] for file in self._files}
        if len(self._files) + len(starts) > MAX_FILES_PER_DAY * max(len(many), 10):
            self._shuffled = True  # from here on, files are split by rows
            self._start_day(None)
            self._add(events)
            return
        for start, stop in zip(starts, [*starts[1:], len(days)], strict=True):
            if self._day != days[start]:
                self._start_day(int(days[start]))
            self._add(_slice(events, start, stop))

    def finish(self, users: Visitors | None = None) -> LogContents:
        """Write the remaining events, and the table of contents.

        Args:
            users: the table of users whose rows the batches refer to, if it was not known before.
        """
        if self._contents is None:
            raise ValueError("there were no events to write")
        self._end_file()
        self._wait()
        articles = self.articles.table()
        write_articles(self._folder / ARTICLES, articles)
        people = users or self._visitors
        if people is not None:
            write_users(self._folder / USERS, people)
        pools = self._pools.finish(self.articles)
        features, profiles = articles.features, articles.profiles
        events = sum(file.events for file in self._files)
        recorded = self._contents.recorded_propensity
        contents = msgspec.structs.replace(
            self._contents,
            events=events,
            recorded_count=stored_count(self.propensities_recorded, recorded, events),
            articles=len(articles.ids),
            pools=pools,
            article_features=None if features is None else features.shape[1],
            article_profile=None if profiles is None else tuple(profiles.column_names),
            article_profile_kinds=kinds_of(profiles),
            files=tuple(self._files),
            **({} if people is None else contents_of_users(people)),
        )
        write_contents(self._folder, contents)
        return contents

    def _check_agreement(self, log: EventLog) -> None:
        contents = contents_of(log)
        before = self._contents or contents
        for key in (
            "dimension",
            "contexts",
            "timed",
            "users",
            "exact",
            "feature_model",
            "decisions",
            "visitor_ids",
            "event_numbers",
            "varying",
            "event_features",
        ):
            if getattr(before, key) != getattr(contents, key):
                raise ValueError(
                    f"the batches do not fit together: {key} is {getattr(before, key)!r} in the "
                    f"first and {getattr(contents, key)!r} in a later one"
                )
        recorded = before.recorded_propensity or contents.recorded_propensity
        self._contents = msgspec.structs.replace(
            before,
            recorded_propensity=recorded,
            propensity_estimate=before.propensity_estimate or contents.propensity_estimate,
        )

    def _check_visitors(self, visitors: Visitors | None) -> None:
        """Batches that identify their visitors must share one table of users."""
        before = self._visitors or visitors
        if visitors is not None and before is not None:
            if visitors.contexts is not before.contexts or visitors.profiles is not before.profiles:
                raise ValueError("the batches do not fit together: their tables of users differ")
            self._visitors = visitors

    def _start_day(self, day: int | None) -> None:
        """Start the file of another day."""
        self._end_file()
        self._day = day

    def _add(self, events: EventRows) -> None:
        """Add events to the current file; start another when it is full."""
        start, total = 0, len(events.pool)
        while start < total:
            stop = min(
                total, start + ROW_GROUP_ROWS - self._rows, start + FILE_ROWS - self._in_file
            )
            part = _slice(events, start, stop)
            self._waiting.append(part)
            self._rows += stop - start
            self._in_file += stop - start
            self._bytes += part.users.nbytes + 28 * (stop - start)
            self._bytes += 0 if part.exact is None else part.exact.nbytes
            self._bytes += 0 if part.decisions is None else part.decisions.nbytes
            if part.varying is not None:
                self._bytes += 4 * part.varying.width * int(part.sizes.sum())
            if self._rows == ROW_GROUP_ROWS or self._bytes > MAX_WAITING_BYTES:
                self._flush()
            if self._in_file == FILE_ROWS:
                self._end_file()
            start = stop

    def _flush(self) -> None:
        """Hand the waiting events to the writing thread, as one row group."""
        if not self._rows:
            return
        assert self._contents is not None
        schema = events_schema(self._contents)
        if self._writer is None:
            name = self._name()
            self._files.append(EventFile(name, 0))
            self._writer = parquet_writer(self._folder / name, schema)
        file = self._files[-1]
        self._files[-1] = EventFile(file.name, file.events + self._rows)
        waiting, writer, ids = self._waiting, self._writer, self.articles.ids
        self._waiting, self._rows, self._bytes = [], 0, 0

        def work() -> None:
            table = events_table(_join(waiting), ids, schema)
            writer.write_table(table, row_group_size=ROW_GROUP_ROWS)

        self._wait()
        self._job = self._thread.submit(work)

    def _wait(self) -> None:
        job, self._job = self._job, None
        if job is not None:
            job.result()

    def _end_file(self) -> None:
        self._flush()
        if self._writer is not None:
            self._wait()
            self._writer.close()
        self._writer, self._in_file = None, 0

    def _name(self) -> str:
        if self._day is None:
            again = self._names.get("part", 0)
            self._names["part"] = again + 1
            return f"{EVENTS}/part-{again:05d}.parquet"
        day = as_datetime(self._day * DAY).date().isoformat()
        again = self._names.get(day, 0)
        self._names[day] = again + 1
        return f"{EVENTS}/{day}{f'-{again}' if again else ''}.parquet"


def _slice(events: EventRows, start: int, stop: int) -> EventRows:
    rows = slice(start, stop)
    return EventRows(
        times=None if events.times is None else events.times[rows],
        users=take_contexts(events.users, rows),
        visitor=None if events.visitor is None else events.visitor[rows],
        pool=events.pool[rows],
        shown=events.shown[rows],
        payoff=events.payoff[rows],
        propensity=events.propensity[rows],
        exact=None if events.exact is None else events.exact[rows],
        decisions=None if events.decisions is None else take_decisions(events.decisions, rows),
        sizes=events.sizes[rows],
        varying=None if events.varying is None else events.varying[rows],
    )


def _join(parts: list[EventRows]) -> EventRows:
    times = [part.times for part in parts if part.times is not None]
    visitors = [part.visitor for part in parts if part.visitor is not None]
    exact = [part.exact for part in parts if part.exact is not None]
    varying = [(part.varying, part.sizes) for part in parts if part.varying is not None]
    return EventRows(
        times=np.concatenate(times) if times else None,
        users=join_users([part.users for part in parts]),
        visitor=np.concatenate(visitors) if visitors else None,
        pool=np.concatenate([part.pool for part in parts]),
        shown=np.concatenate([part.shown for part in parts]),
        payoff=np.concatenate([part.payoff for part in parts]),
        propensity=np.concatenate([part.propensity for part in parts]),
        exact=join_exact(exact) if exact else None,
        decisions=join_decisions([(part.decisions, len(part.pool)) for part in parts]),
        sizes=np.concatenate([part.sizes for part in parts]),
        varying=join_varying(varying) if varying else None,
    )
