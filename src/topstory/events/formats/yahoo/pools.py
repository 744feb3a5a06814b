"""The pools of a Yahoo log: the articles at the end of each line, parsed once for many lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.pools import PoolTable
from topstory.events.formats.faults import CHANGED_FEATURES, Faults

MAX_SLOTS = 16  # pools that the kernel recognises by their bytes
MAX_SLOT_BYTES = 1 << 14  # of such a pool's part of the line
MAX_SLOT_ARTICLES = 256  # in such a pool
MAX_KNOWN_BYTES = 1 << 26  # of pool texts that are remembered
MAX_PARSED_ARTICLES = 1 << 17  # remembered

Features = tuple[float, ...]

STRUCTURE = "not `time article click |user features |article …|article …`"
NO_POOL = "no articles are listed"
NOT_LISTED = "the shown article is not among those listed"
TWICE = "an article is listed twice"
MISSING_FEATURES = (
    "an article lists only some of its features: the rest taken as 0, or as listed before"
)


class InvalidLine(Exception):
    """Raised for a line that is not an event."""


@dataclass(slots=True)
class ListedArticle:
    """An article as a line lists it; a missing feature is None."""

    id: str
    features: tuple[float | None, ...] | None
    remarks: tuple[str, ...] | None = None  # None: not compared with its first features yet


@dataclass(frozen=True)
class ListedPool:
    """A pool: its number in the batch, and its ids as in the line."""

    number: int
    ids: tuple[bytes, ...]


class PoolSlots:
    """The most recent pools, laid out for the kernels."""

    def __init__(self) -> None:
        self._parts = np.zeros((MAX_SLOTS, MAX_SLOT_BYTES), np.uint8)
        self._lengths = np.zeros(MAX_SLOTS, np.int32)  # 0: the slot is free
        self._numbers = np.zeros(MAX_SLOTS, np.int32)
        self._members = np.zeros(MAX_SLOTS, np.int32)
        self._starts = np.zeros((MAX_SLOTS, MAX_SLOT_ARTICLES), np.int32)
        self._ends = np.zeros((MAX_SLOTS, MAX_SLOT_ARTICLES), np.int32)
        self._next = 0

    @property
    def arrays(self) -> tuple[Any, ...]:
        """`parts`, `lengths`, `numbers`, `members`, `starts` and `ends` of the kernels."""
        slots = self._parts, self._lengths, self._numbers, self._members
        return *slots, self._starts, self._ends

    def clear(self) -> None:
        """Forget them all."""
        self._lengths[:] = 0

    def put(self, part: bytes, pool: ListedPool) -> None:
        """Add a pool, in place of the oldest."""
        if len(part) > MAX_SLOT_BYTES or len(pool.ids) > MAX_SLOT_ARTICLES:
            return
        slot, self._next = self._next, (self._next + 1) % MAX_SLOTS
        self._parts[slot, : len(part)] = np.frombuffer(part, np.uint8)
        self._lengths[slot], self._numbers[slot] = len(part), pool.number
        self._members[slot] = len(pool.ids)
        place = 0
        for i, key in enumerate(pool.ids):
            place = part.index(key, part.index(b"|", place))
            self._starts[slot, i], self._ends[slot, i] = place, place + len(key)


class BatchPools:
    """The pools of one batch, and the features of the articles of all batches.

    >>> pools = BatchPools(lambda id, words: ListedArticle(id, None))
    >>> pools.find(b"|id-1 |id-2", b"id-1").ids, pools.find(b"|id-1 |id-2", b"id-2").number
    ((b'id-1', b'id-2'), 0)
    >>> pools.tables()[0].ids
    ('id-1', 'id-2')
    """

    def __init__(self, article: Callable[[str, list[bytes]], ListedArticle]) -> None:
        self._article = article
        self._known: dict[str, Features] = {}
        self._parsed: dict[bytes, ListedArticle] = {}
        self._slots = PoolSlots()
        self.clear()

    def clear(self) -> None:
        """Begin a new batch."""
        self._slots.clear()
        self._by_part: dict[bytes, ListedPool] = {}
        self._known_bytes = 0
        self._articles: dict[str, int] = {}
        self._features: list[Any] = []
        self._offsets = [0]
        self._members: list[int] = []
        self._remarks: list[tuple[str, int, str, int, bytes]] = []

    @property
    def known(self) -> tuple[Any, ...]:
        """The arrays by which the kernels recognise pools."""
        return self._slots.arrays

    def find(self, part: bytes, shown: bytes, file: str = "", line: int = 0) -> ListedPool:
        """The pool that this part of a line lists; the kernel recognises it from now on.

        Raises InvalidLine if it is not a pool, or does not list `shown`.
        """
        pool = self._by_part.get(part)
        if pool is not None:
            if shown not in pool.ids:
                raise InvalidLine(NOT_LISTED)
        else:
            pool = self._add(part, shown, file, line)
            self._known_bytes += len(part)
            if self._known_bytes > MAX_KNOWN_BYTES:
                self._by_part.clear()
                self._known_bytes = len(part)
            self._by_part[part] = pool
        self._slots.put(part, pool)
        return pool

    def tables(self) -> tuple[ArticleTable, PoolTable]:
        """The articles and pools of the batch."""
        rows = [row for row in self._features if row is not None]
        features = np.array(rows, np.float64) if rows else None
        offsets = np.array(self._offsets, np.int64)
        return (
            ArticleTable(tuple(self._articles), features),
            PoolTable(offsets, np.array(self._members, np.int32)),
        )

    def note_remarks(
        self, faults: Faults, events: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> None:
        """Report the remarks on the pools, once for each of their `events` (counted by pool)."""
        for remark, number, file, line, text in self._remarks:
            faults.note(remark, file, line, text, int(events[number]))

    def _add(self, part: bytes, shown: bytes, file: str, line: int) -> ListedPool:
        segments = part.split(b"|")[1:]
        articles = [self._parse(segment) for segment in segments]
        ids = tuple(segment.split(None, 1)[0] for segment in segments)
        if len(set(ids)) < len(ids):
            raise InvalidLine(TWICE)
        if shown not in ids:
            raise InvalidLine(NOT_LISTED)
        number = len(self._offsets) - 1
        remarks: dict[str, bytes] = {}
        for segment, article in zip(segments, articles, strict=True):
            if article.remarks is None:
                article.remarks = self._keep_first_features(article)
            for remark in article.remarks:
                remarks.setdefault(remark, b"|" + segment)
            if article.id not in self._articles:
                self._articles[article.id] = len(self._articles)
                self._features.append(article.features)
            self._members.append(self._articles[article.id])
        self._offsets.append(len(self._members))
        self._remarks += [(why, number, file, line, text) for why, text in remarks.items()]
        return ListedPool(number, ids)

    def _parse(self, segment: bytes) -> ListedArticle:
        article = self._parsed.get(segment)
        if article is None:
            words = segment.split()
            if not words:
                raise InvalidLine(STRUCTURE)
            try:
                article = self._article(words[0].decode(), words[1:])
            except UnicodeDecodeError:
                raise InvalidLine(STRUCTURE) from None
            if len(self._parsed) > MAX_PARSED_ARTICLES:
                self._parsed.clear()
            self._parsed[segment] = article
        return article

    def _keep_first_features(self, article: ListedArticle) -> tuple[str, ...]:
        """Give the article the features that it first had; returns remarks on what differs."""
        given = article.features
        if given is None:
            return ()
        known = self._known.setdefault(
            article.id, tuple(0.0 if value is None else value for value in given)
        )
        article.features = known
        differs = any(
            value is not None and value != before
            for value, before in zip(given, known, strict=True)
        )
        return (MISSING_FEATURES,) * (None in given) + (CHANGED_FEATURES,) * differs
