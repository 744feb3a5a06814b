"""The plain layout as JSON lines: one event a line (docs/guides/importing.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.times import parse_time
from topstory.events.formats.faults import Faults, NotAnEvent
from topstory.events.formats.options import ReaderOptions
from topstory.events.formats.pipeline.first_event import FirstEvent
from topstory.events.formats.pipeline.line_parser import LineParser
from topstory.events.formats.pipeline.line_reader import LineReader
from topstory.events.formats.pipeline.row_batch import RowBatch, general_reason, pool_fault
from topstory.events.formats.pipeline.validation import (
    BAD_TIME,
    NOT_IN_POOL,
    ParsedRows,
    outcome_fault,
)
from topstory.events.formats.plain.articles import read_articles
from topstory.events.formats.plain.misspelt import note_misspelt
from topstory.events.formats.plain.users import NamedUsers, SparseUser, UserChecker
from topstory.events.formats.tabular.arrow_columns import seconds_to_microseconds

OPTIONS: Mapping[str, str] = {
    "articles": "the file of articles and their features: .jsonl, .csv or .parquet "
    "(default: articles have no features)",
    "constant": "yes: append the constant 1 to each user (default no: it is there)",
}
LACKING = ": rename it, or say which it is with a mapping (--map; --suggest writes one)"
_LACKING_FIELD = re.compile("missing required field `([a-z]+)`$")
MAX_KNOWN_IDS = 1 << 18  # ids in the pools that are remembered


class _PlainEvent(msgspec.Struct):
    pool: list[str | int]
    shown: str | int
    payoff: float | bool
    user: list[float] | SparseUser | None = None
    timestamp: datetime | int | float | None = None
    propensity: float | None = None


_EVENT = msgspec.json.Decoder(_PlainEvent)
_NAMED = msgspec.json.Decoder(dict[str, Any])


class JsonlReader(LineReader):
    """Reads one JSON object a line.

    >>> JsonlReader().name
    'jsonl'
    """

    name = "jsonl"
    options = OPTIONS

    def parser(self, options: Mapping[str, Any], first_event: FirstEvent) -> LineParser:
        """The first event decides what features users have, and whether there are times."""
        chosen = ReaderOptions(self.name, options, self.options)
        articles = chosen.text("articles")
        table = None if articles is None else read_articles(Path(articles))
        return _JsonlParser(first_event, table, chosen.flag("constant"))


class _JsonlParser(LineParser):
    def __init__(
        self, first_event: FirstEvent, articles: ArticleTable | None, constant: bool
    ) -> None:
        super().__init__(first_event)
        self._articles = articles
        self._users, self._named = UserChecker(first_event, constant), NamedUsers(first_event)
        self._pools: dict[tuple[str, ...], str | None] = {}  # a pool -> what is wrong with it
        self._known_ids = 0

    def parse_row(self, number: int, row: bytes, batch: RowBatch, faults: Faults) -> None:
        """One line."""
        event = _decoded(_EVENT, row)
        pool = tuple(map(str, event.pool))
        if pool not in self._pools:
            self._known_ids += len(pool)
            if self._known_ids > MAX_KNOWN_IDS:
                self._pools.clear()
                self._known_ids = len(pool)
            known = None if self._articles is None else self._articles.index
            self._pools[pool] = pool_fault(pool, known)
        shown, payoff = str(event.shown), float(event.payoff)
        at = pool.index(shown) if shown in pool else NOT_IN_POOL
        fault = self._pools[pool] or outcome_fault(at, len(pool), payoff, event.propensity)
        if fault is not None:
            raise NotAnEvent(fault)
        user: Any = event.user
        if user is None:
            user = self._named.values(_decoded(_NAMED, row))
        checked = self._users.check(user)
        if event.propensity is None and self.first_event.decided.get("propensity", True):
            note_misspelt(_decoded(_NAMED, row), faults, batch.file, number, row)
        self.first_event.setdefault("propensity", event.propensity is not None)
        micros = self._micros(event.timestamp)
        batch.add(number, checked, pool, at, payoff, event.propensity, micros, row)

    def finish(self, batch: RowBatch) -> ParsedRows:
        """Users as a matrix; the articles are those of the pools unless a file lists them."""
        articles = self._articles or ArticleTable(tuple(batch.members()))
        users = self._users.stack(batch.users)
        listed = 0 if self._articles is None else len(articles.ids)
        return batch.rows(users, articles, articles.index, listed)

    def _micros(self, timestamp: datetime | int | float | None) -> int | None:
        if not self.first_event.setdefault("timed", timestamp is not None):
            return None
        if timestamp is None:
            raise NotAnEvent("there is no timestamp, though the first event has one")
        if isinstance(timestamp, datetime):
            return parse_time(timestamp)
        try:
            return int(seconds_to_microseconds(np.array([float(timestamp)]))[0])
        except OverflowError:
            raise NotAnEvent(BAD_TIME) from None


def _decoded(decoder: msgspec.json.Decoder[Any], line: bytes) -> Any:
    try:
        return decoder.decode(line)
    except msgspec.ValidationError as error:
        if lacking := _LACKING_FIELD.search(str(error)):
            raise NotAnEvent(f"there is no field {lacking[1]!r}{LACKING}") from None
        raise NotAnEvent(f"not an event: {general_reason(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NotAnEvent("not valid JSON") from None
    except RecursionError:
        raise NotAnEvent("its JSON is nested too deeply") from None
