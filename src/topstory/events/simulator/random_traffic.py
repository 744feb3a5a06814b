"""Traffic on which articles are shown uniformly at random: the log that replay needs."""

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
from topstory.events.simulator.settings import Settings
from topstory.events.simulator.site_view import Sight
from topstory.events.simulator.window import Window
from topstory.files import replaced_folder
from topstory.kernels.simulation import show, visit

CHUNK = 1 << 19  # events drawn at a time, on one core
Progress = Callable[[int], object]  # called with the number of events made since the last call


@dataclass(frozen=True)
class Written:
    """What a simulated log on disk is like."""

    events: int
    articles: int
    ctr: float
    bytes: int


@dataclass(frozen=True, eq=False)
class RandomTraffic:
    """`events` visits over a window, numbered from 0; any part of them can be made by itself."""

    settings: Settings
    window: Window
    groups: npt.NDArray[np.float32]  # (V, GROUPS)
    sight: Sight
    articles: ArticleTable
    events: int
    seed: int

    def log(self, progress: Progress | None = None) -> EventLog:
        """All of it in memory."""
        room = _Room.of(self.events, self.sight.contexts.shape[1])
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            jobs = [
                (threads.submit(self._draw, room.part(start, stop), start), stop - start)
                for start, stop in blocks(self.events, CHUNK)
            ]
            try:
                for job, made in jobs:
                    job.result()
                    if progress is not None:
                        progress(made)
            finally:
                threads.shutdown(cancel_futures=True)
        return self._log(room)

    def write(
        self, out: str | PathLike[str], format: str, progress: Progress | None = None
    ) -> Written:
        """All of it into a folder or, as r6a, a file; in bounded memory, whole or not at all."""
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
        return Written(self.events, len(self.articles.ids), clicks / self.events, size)

    def parts(self) -> Iterator[EventLog]:
        """All of it, batch after batch in the order of time."""
        ahead = (os.cpu_count() or 1) + 1
        waiting: deque[Future[EventLog]] = deque()
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            try:
                for start, stop in blocks(self.events, CHUNK):
                    waiting.append(threads.submit(self._part, start, stop))
                    if len(waiting) > ahead:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                threads.shutdown(cancel_futures=True)

    def _part(self, start: int, stop: int) -> EventLog:
        room = _Room.of(stop - start, self.sight.contexts.shape[1])
        self._draw(room, start)
        return self._log(room)

    def _draw(self, room: _Room, first: int) -> None:
        """The events from `first` on, as many as there is room for."""
        window, seed = self.window, np.uint64(self.seed)
        loyalty = float(self.settings.loyalty)
        second = np.empty(len(room.pool), np.int32)
        visit(
            *(seed, first, self.events, loyalty, window.share, self.groups),
            *(room.pool, second, room.visitor),
        )
        show(
            *(seed, first, room.pool, room.visitor, self.groups, window.offsets, window.members),
            *(window.intercept, window.appeal, room.position, room.payoff),
        )
        np.multiply(room.pool, 3600, out=room.ticks, casting="unsafe")
        np.add(room.ticks, second, out=room.ticks, casting="unsafe")
        np.take(self.sight.contexts, room.visitor, axis=0, out=room.users, mode="clip")

    def _log(self, room: _Room) -> EventLog:
        sight = self.sight
        return EventLog(
            users=room.users,
            pool=room.pool,
            position=room.position,
            payoff=room.payoff,
            recorded_propensity=None,
            times=Times(room.ticks, self.window.start * 3600 * SECOND, SECOND),
            pool_table=self.window.pools,
            article_table=self.articles,
            visitors=Visitors(room.visitor, sight.contexts, sight.profiles),
        )


@dataclass(frozen=True, eq=False)
class _Room:
    """Columns that are being filled."""

    users: npt.NDArray[np.float32]
    pool: npt.NDArray[np.int32]  # the hour, too: each has its own
    position: npt.NDArray[np.uint16]
    payoff: npt.NDArray[np.float32]
    ticks: npt.NDArray[np.uint32]  # seconds from the window's start
    visitor: npt.NDArray[np.int32]

    @classmethod
    def of(cls, events: int, dimension: int) -> _Room:
        return cls(
            np.empty((events, dimension), np.float32),
            np.empty(events, np.int32),
            np.empty(events, np.uint16),
            np.empty(events, np.float32),
            np.empty(events, np.uint32),
            np.empty(events, np.int32),
        )

    def part(self, start: int, stop: int) -> _Room:
        return _Room(*(getattr(self, field.name)[start:stop] for field in fields(self)))
