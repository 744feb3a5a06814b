"""Our own plain layout as JSON lines: one event a line (docs/importing.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from topstory.events.articles import ArticleTable
from topstory.events.log import EventLog
from topstory.events.readers.arrow_columns import seconds
from topstory.events.readers.faults import Faults
from topstory.events.readers.gathering import NOWHERE, Gathering, Pool, pool_fault, unvarying
from topstory.events.readers.lines import line_blocks
from topstory.events.readers.plain_articles import read_articles
from topstory.events.readers.plain_users import NamedUsers, NotAUser, On, Users
from topstory.events.readers.reader import Progress
from topstory.events.readers.settings import Settings
from topstory.events.readers.sifting import sift
from topstory.events.times import moment

OPTIONS: Mapping[str, str] = {
    "articles": "the file of articles and their features: .jsonl, .csv or .parquet "
    "(default: articles have no features)",
    "constant": "yes: append the constant 1 to each user (default no: it is there)",
}
REMEMBERED = 1 << 14


class NoEvent(ValueError):
    """Why a line is no event, in words that do not vary from line to line."""


class _Event(msgspec.Struct):
    pool: list[str | int]
    shown: str | int
    payoff: float | bool
    user: list[float] | On | None = None
    timestamp: datetime | int | float | None = None
    propensity: float | None = None


_EVENT = msgspec.json.Decoder(_Event)
_NAMED = msgspec.json.Decoder(dict[str, Any])


class JsonlReader:
    """Reads one JSON object a line.

    >>> JsonlReader().name
    'jsonl'
    """

    name = "jsonl"
    about = "plain layout: one JSON object a line"
    options = OPTIONS

    def read(
        self, files: Sequence[Path], faults: Faults, progress: Progress, **options: Any
    ) -> Iterator[EventLog]:
        """The events; the first decides what features users have, and whether there are times."""
        settings = Settings(self.name, options, self.options)
        articles = settings.text("articles")
        table = None if articles is None else read_articles(Path(articles))
        lines = _Lines(table, Users(settings.flag("constant")))
        for path in files:
            gathering = Gathering(str(path))
            for block in line_blocks(path, faults, progress):
                for number, line in enumerate(block.lines(), block.first):
                    if not line.strip():
                        continue
                    try:
                        lines.take(number, line, gathering)
                    except (NoEvent, NotAUser) as error:
                        gathering.refuse(number, str(error), line)
                    if gathering.full:
                        yield from lines.finish(gathering, faults)
                        gathering = Gathering(str(path))
            yield from lines.finish(gathering, faults)


class _Lines:
    """Takes in line after line, and remembers the pools."""

    def __init__(self, articles: ArticleTable | None, users: Users) -> None:
        self._articles, self._users = articles, users
        self._named = NamedUsers()
        self._pools: dict[Pool, str | None] = {}
        self._timed: bool | None = None

    def take(self, number: int, line: bytes, gathering: Gathering) -> None:
        """One line; raises NoEvent or NotAUser if it is none."""
        event = _decoded(_EVENT, line)
        pool = tuple(map(str, event.pool))
        if pool not in self._pools:
            if len(self._pools) >= REMEMBERED:
                self._pools.clear()
            known = None if self._articles is None else self._articles.index
            self._pools[pool] = pool_fault(pool, known)
        fault = self._pools[pool]
        if fault is not None:
            raise NoEvent(fault)
        user: Any = event.user
        if user is None:
            user = self._named.values(_decoded(_NAMED, line))
        row = self._users.check(user)
        if self._timed is None:
            self._timed = event.timestamp is not None
        micros = self._micros(event.timestamp) if self._timed else None
        shown = str(event.shown)
        at = pool.index(shown) if shown in pool else NOWHERE
        gathering.add(number, row, pool, at, float(event.payoff), event.propensity, micros, line)

    def finish(self, gathering: Gathering, faults: Faults) -> Iterator[EventLog]:
        """The good events."""
        articles = self._articles
        if articles is None:
            ids = (key for pool in gathering.pools for key in pool)
            articles = ArticleTable(tuple(dict.fromkeys(ids)))
        log = sift(gathering.rows(self._users.stack(gathering.users), articles), faults)
        if log is not None:
            yield log

    def _micros(self, timestamp: datetime | int | float | None) -> int:
        if timestamp is None:
            raise NoEvent("there is no timestamp, though the first event has one")
        if isinstance(timestamp, datetime):
            return moment(timestamp)
        try:
            return int(seconds(np.array([float(timestamp)]))[0])
        except OverflowError:
            raise NoEvent("the timestamp is outside the years 1 to 9999") from None


def _decoded(decoder: msgspec.json.Decoder[Any], line: bytes) -> Any:
    try:
        return decoder.decode(line)
    except msgspec.ValidationError as error:
        raise NoEvent(f"not an event: {unvarying(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NoEvent("not valid JSON") from None
    except RecursionError:
        raise NoEvent("its JSON is nested too deeply") from None
