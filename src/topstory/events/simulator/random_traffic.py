"""Logs of articles shown uniformly at random: what replay needs."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import blocks
from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.times import SECOND, Times
from topstory.events.columns.visitors import Visitors
from topstory.events.folder.append import Appender
from topstory.events.folder.contents import check_replaceable
from topstory.events.formats.yahoo.write_r6a import write_r6a_parts
from topstory.events.log import EventLog
from topstory.events.simulator.settings import WorldSettings
from topstory.events.simulator.site_view import SiteView
from topstory.events.simulator.window import WorldWindow
from topstory.files import replaced_folder
from topstory.kernels.simulation import show, visit

CHUNK_EVENTS = 1 << 19  # drawn at a time, on one core
Progress = Callable[[int], object]  # called with the number of events made since the last call


@dataclass(frozen=True)
class WrittenLog:
    """Facts about a simulated log on disk."""

    events: int
    articles: int
    ctr: float
    bytes: int


@dataclass(frozen=True, eq=False)
class RandomTraffic:
    """`events` visits over a window, numbered from 0; any part can be made on its own."""

    settings: WorldSettings
    window: WorldWindow
    groups: npt.NDArray[np.float32]  # (V, GROUPS)
    view: SiteView
    articles: ArticleTable
    events: int
    seed: int

    def log(self, progress: Progress | None = None) -> EventLog:
        """The whole log in memory."""
        buffers = _EventBuffers.of(self.events, self.view.contexts.shape[1])
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            jobs = [
                (threads.submit(self._draw, buffers.part(start, stop), start), stop - start)
                for start, stop in blocks(self.events, CHUNK_EVENTS)
            ]
            try:
                for job, made in jobs:
                    job.result()
                    if progress is not None:
                        progress(made)
            finally:
                threads.shutdown(cancel_futures=True)
        return self._log(buffers)

    def write(
        self, out: str | PathLike[str], format: str, progress: Progress | None = None
    ) -> WrittenLog:
        """Write the log to a folder or, as r6a, to a file; in bounded memory, all or nothing."""
        clicks = 0.0

        def parts() -> Iterator[EventLog]:
            nonlocal clicks
            for part in self.parts():
                clicks += float(part.payoff.sum(dtype=np.float64))
                yield part
                if progress is not None:
                    progress(len(part))

        out = Path(out)
        if format == "r6a":
            write_r6a_parts(parts(), out, lambda _: None)
        elif format == "log":
            with replaced_folder(out, check_replaceable) as fresh, Appender(fresh) as appender:
                for part in parts():
                    appender.append(part)
                appender.finish()
        else:
            raise ValueError(f"format must be 'log' or 'r6a', got {format!r}")
        files = [out] if out.is_file() else [path for path in out.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        return WrittenLog(self.events, len(self.articles.ids), clicks / self.events, size)

    def parts(self) -> Iterator[EventLog]:
        """The whole log, batch by batch in order of time."""
        ahead = (os.cpu_count() or 1) + 1
        waiting: deque[Future[EventLog]] = deque()
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            try:
                for start, stop in blocks(self.events, CHUNK_EVENTS):
                    waiting.append(threads.submit(self._part, start, stop))
                    if len(waiting) > ahead:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                threads.shutdown(cancel_futures=True)

    def _part(self, start: int, stop: int) -> EventLog:
        buffers = _EventBuffers.of(stop - start, self.view.contexts.shape[1])
        self._draw(buffers, start)
        return self._log(buffers)

    def _draw(self, buffers: _EventBuffers, first: int) -> None:
        """Fill the buffers with the events from `first` on."""
        window, seed = self.window, np.uint64(self.seed)
        loyalty = float(self.settings.loyalty)
        second = np.empty(len(buffers.pool), np.int32)
        visit(
            *(seed, first, self.events, loyalty, window.share, self.groups),
            *(buffers.pool, second, buffers.visitor),
        )
        show(
            *(
                seed,
                first,
                buffers.pool,
                buffers.visitor,
                self.groups,
                window.offsets,
                window.members,
            ),
            *(window.intercept, window.appeal, buffers.position, buffers.payoff),
        )
        np.multiply(buffers.pool, 3600, out=buffers.ticks, casting="unsafe")
        np.add(buffers.ticks, second, out=buffers.ticks, casting="unsafe")
        np.take(self.view.contexts, buffers.visitor, axis=0, out=buffers.users, mode="clip")

    def _log(self, buffers: _EventBuffers) -> EventLog:
        view = self.view
        return EventLog(
            users=buffers.users,
            pool=buffers.pool,
            position=buffers.position,
            payoff=buffers.payoff,
            recorded_propensity=None,
            times=Times(buffers.ticks, self.window.start * 3600 * SECOND, SECOND),
            pool_table=self.window.pools,
            article_table=self.articles,
            visitors=Visitors(buffers.visitor, view.contexts, view.profiles),
        )


@dataclass(frozen=True, eq=False)
class _EventBuffers:
    """Columns to be filled."""

    users: npt.NDArray[np.float32]
    pool: npt.NDArray[np.int32]  # also the hour: each has its own pool
    position: npt.NDArray[np.uint16]
    payoff: npt.NDArray[np.float32]
    ticks: npt.NDArray[np.uint32]  # seconds from the window's start
    visitor: npt.NDArray[np.int32]

    @classmethod
    def of(cls, events: int, dimension: int) -> _EventBuffers:
        return cls(
            np.empty((events, dimension), np.float32),
            np.empty(events, np.int32),
            np.empty(events, np.uint16),
            np.empty(events, np.float32),
            np.empty(events, np.uint32),
            np.empty(events, np.int32),
        )

    def part(self, start: int, stop: int) -> _EventBuffers:
        return _EventBuffers(*(getattr(self, field.name)[start:stop] for field in fields(self)))
