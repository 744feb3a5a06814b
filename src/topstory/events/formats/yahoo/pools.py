"""The pools of a Yahoo log: the articles at the end of a line, parsed once for many lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.pools import PoolTable
from topstory.events.formats.faults import Faults

SLOTS = 16  # pools that are recognised by their bytes
LONGEST = 1 << 14  # bytes of such a pool's part of the line
MOST = 256  # articles in it
HELD = 1 << 26  # bytes of parts that are remembered
REMEMBERED = 1 << 17  # articles

Features = tuple[float, ...]

STRUCTURE = "not `time article click |user features |article …|article …`"
NO_POOL = "no articles are listed"
NOT_LISTED = "the shown article is not among those listed"
TWICE = "an article is listed twice"
LACKING = "an article lists only some of its features: the rest taken as 0, or as listed before"
CHANGED = "an article's features differ from those it had before: the first were kept"


class Unfit(Exception):
    """Why a line cannot be an event."""


@dataclass(slots=True)
class Article:
    """An article as one part of a line gives it; a feature that is not there is None."""

    id: str
    features: tuple[float | None, ...] | None
    remarks: tuple[str, ...] | None = None  # None: not compared with what was known of it yet


@dataclass(frozen=True)
class Pool:
    """A pool by its number in the batch, and the ids as they stand in the line."""

    number: int
    ids: tuple[bytes, ...]


class Slots:
    """The latest pools, as the kernels take them."""

    def __init__(self) -> None:
        self._parts = np.zeros((SLOTS, LONGEST), np.uint8)
        self._lengths = np.zeros(SLOTS, np.int32)  # 0: the slot is free
        self._numbers = np.zeros(SLOTS, np.int32)
        self._members = np.zeros(SLOTS, np.int32)
        self._starts = np.zeros((SLOTS, MOST), np.int32)
        self._ends = np.zeros((SLOTS, MOST), np.int32)
        self._next = 0

    @property
    def arrays(self) -> tuple[Any, ...]:
        """`parts`, `lengths`, `numbers`, `members`, `starts` and `ends` of the kernels."""
        slots = self._parts, self._lengths, self._numbers, self._members
        return *slots, self._starts, self._ends

    def clear(self) -> None:
        """Forget them all."""
        self._lengths[:] = 0

    def put(self, part: bytes, pool: Pool) -> None:
        """Take in a pool, in place of the one that has been there longest."""
        if len(part) > LONGEST or len(pool.ids) > MOST:
            return
        slot, self._next = self._next, (self._next + 1) % SLOTS
        self._parts[slot, : len(part)] = np.frombuffer(part, np.uint8)
        self._lengths[slot], self._numbers[slot] = len(part), pool.number
        self._members[slot] = len(pool.ids)
        place = 0
        for i, key in enumerate(pool.ids):
            place = part.index(key, part.index(b"|", place))
            self._starts[slot, i], self._ends[slot, i] = place, place + len(key)


class Pools:
    """The pools of one batch, and the features of the articles of all batches.

    >>> pools = Pools(lambda id, words: Article(id, None))
    >>> pools.find(b"|id-1 |id-2", b"id-1").ids, pools.find(b"|id-1 |id-2", b"id-2").number
    ((b'id-1', b'id-2'), 0)
    >>> pools.tables()[0].ids
    ('id-1', 'id-2')
    """

    def __init__(self, article: Callable[[str, list[bytes]], Article]) -> None:
        self._article = article
        self._known: dict[str, Features] = {}
        self._parsed: dict[bytes, Article] = {}
        self._slots = Slots()
        self.clear()

    def clear(self) -> None:
        """Begin a new batch."""
        self._slots.clear()
        self._by_part: dict[bytes, Pool] = {}
        self._held = 0
        self._articles: dict[str, int] = {}
        self._features: list[Any] = []
        self._offsets = [0]
        self._members: list[int] = []
        self._remarks: list[tuple[str, int, str, int, bytes]] = []

    @property
    def known(self) -> tuple[Any, ...]:
        """What the kernels recognise pools by."""
        return self._slots.arrays

    def find(self, part: bytes, shown: bytes, file: str = "", line: int = 0) -> Pool:
        """The pool that a part of a line lists, known from now on.

        Unfit if it is none, or `shown` is not in it.
        """
        pool = self._by_part.get(part)
        if pool is not None:
            if shown not in pool.ids:
                raise Unfit(NOT_LISTED)
        else:
            pool = self._add(part, shown, file, line)
            self._held += len(part)
            if self._held > HELD:
                self._by_part.clear()
                self._held = len(part)
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

    def tell(self, faults: Faults, events: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        """Note what was remarked on the pools, for each of their events (counted by pool)."""
        for remark, number, file, line, text in self._remarks:
            faults.note(remark, file, line, text, int(events[number]))

    def _add(self, part: bytes, shown: bytes, file: str, line: int) -> Pool:
        segments = part.split(b"|")[1:]
        articles = [self._parse(segment) for segment in segments]
        ids = tuple(segment.split(None, 1)[0] for segment in segments)
        if len(set(ids)) < len(ids):
            raise Unfit(TWICE)
        if shown not in ids:
            raise Unfit(NOT_LISTED)
        number = len(self._offsets) - 1
        remarks: dict[str, bytes] = {}
        for segment, article in zip(segments, articles, strict=True):
            if article.remarks is None:
                article.remarks = self._settle(article)
            for remark in article.remarks:
                remarks.setdefault(remark, b"|" + segment)
            if article.id not in self._articles:
                self._articles[article.id] = len(self._articles)
                self._features.append(article.features)
            self._members.append(self._articles[article.id])
        self._offsets.append(len(self._members))
        self._remarks += [(why, number, file, line, text) for why, text in remarks.items()]
        return Pool(number, ids)

    def _parse(self, segment: bytes) -> Article:
        article = self._parsed.get(segment)
        if article is None:
            words = segment.split()
            if not words:
                raise Unfit(STRUCTURE)
            try:
                article = self._article(words[0].decode(), words[1:])
            except UnicodeDecodeError:
                raise Unfit(STRUCTURE) from None
            if len(self._parsed) > REMEMBERED:
                self._parsed.clear()
            self._parsed[segment] = article
        return article

    def _settle(self, article: Article) -> tuple[str, ...]:
        """Give an article the features that it had first, and say what that means."""
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
        return (LACKING,) * (None in given) + (CHANGED,) * differs
