"""Our own plain layout as JSON lines: one event a line (docs/guides/importing.md)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.times import moment
from topstory.events.formats.faults import Faults, NoEvent
from topstory.events.formats.options import Settings
from topstory.events.formats.pipeline.first_event import Shape
from topstory.events.formats.pipeline.line_parser import LineParser
from topstory.events.formats.pipeline.line_reader import LineReader
from topstory.events.formats.pipeline.row_batch import Gathering, pool_fault, unvarying
from topstory.events.formats.pipeline.validation import NOWHERE, TIME, Rows, outcome_fault
from topstory.events.formats.plain.articles import read_articles
from topstory.events.formats.plain.users import NamedUsers, On, Users
from topstory.events.formats.tabular.arrow_columns import seconds

OPTIONS: Mapping[str, str] = {
    "articles": "the file of articles and their features: .jsonl, .csv or .parquet "
    "(default: articles have no features)",
    "constant": "yes: append the constant 1 to each user (default no: it is there)",
}
REMEMBERED = 1 << 18  # ids in the pools that are kept at hand


class _Event(msgspec.Struct):
    pool: list[str | int]
    shown: str | int
    payoff: float | bool
    user: list[float] | On | None = None
    timestamp: datetime | int | float | None = None
    propensity: float | None = None


_EVENT = msgspec.json.Decoder(_Event)
_NAMED = msgspec.json.Decoder(dict[str, Any])


class JsonlReader(LineReader):
    """Reads one JSON object a line.

    >>> JsonlReader().name
    'jsonl'
    """

    name = "jsonl"
    about = "plain layout: one JSON object a line"
    options = OPTIONS

    def parser(self, options: Mapping[str, Any], shape: Shape) -> LineParser:
        """The first event decides what features users have, and whether there are times."""
        settings = Settings(self.name, options, self.options)
        articles = settings.text("articles")
        table = None if articles is None else read_articles(Path(articles))
        return _Lines(shape, table, settings.flag("constant"))


class _Lines(LineParser):
    def __init__(self, shape: Shape, articles: ArticleTable | None, constant: bool) -> None:
        super().__init__(shape)
        self._articles = articles
        self._users, self._named = Users(shape, constant), NamedUsers(shape)
        self._pools: dict[tuple[str, ...], str | None] = {}  # a pool -> what is wrong with it
        self._held = 0

    def take(self, number: int, row: bytes, gathering: Gathering, faults: Faults) -> None:
        """One line."""
        event = _decoded(_EVENT, row)
        pool = tuple(map(str, event.pool))
        if pool not in self._pools:
            self._held += len(pool)
            if self._held > REMEMBERED:
                self._pools.clear()
                self._held = len(pool)
            known = None if self._articles is None else self._articles.index
            self._pools[pool] = pool_fault(pool, known)
        shown, payoff = str(event.shown), float(event.payoff)
        at = pool.index(shown) if shown in pool else NOWHERE
        fault = self._pools[pool] or outcome_fault(at, len(pool), payoff, event.propensity)
        if fault is not None:
            raise NoEvent(fault)
        user: Any = event.user
        if user is None:
            user = self._named.values(_decoded(_NAMED, row))
        checked = self._users.check(user)
        micros = self._micros(event.timestamp)
        gathering.add(number, checked, pool, at, payoff, event.propensity, micros, row)

    def finish(self, gathering: Gathering) -> Rows:
        """The users stacked, and the articles of the pools if no file lists them."""
        articles = self._articles or ArticleTable(tuple(gathering.members()))
        users = self._users.stack(gathering.users)
        return gathering.rows(users, articles, articles.index, listed=self._articles is not None)

    def _micros(self, timestamp: datetime | int | float | None) -> int | None:
        if not self.shape.first("timed", timestamp is not None):
            return None
        if timestamp is None:
            raise NoEvent("there is no timestamp, though the first event has one")
        if isinstance(timestamp, datetime):
            return moment(timestamp)
        try:
            return int(seconds(np.array([float(timestamp)]))[0])
        except OverflowError:
            raise NoEvent(TIME) from None


def _decoded(decoder: msgspec.json.Decoder[Any], line: bytes) -> Any:
    try:
        return decoder.decode(line)
    except msgspec.ValidationError as error:
        raise NoEvent(f"not an event: {unvarying(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NoEvent("not valid JSON") from None
    except RecursionError:
        raise NoEvent("its JSON is nested too deeply") from None
