"""Events that are read one by one, collected for a log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.events.columns.articles import ArticleTable, as_id
from topstory.events.columns.contexts import SparseContexts
from topstory.events.columns.pools import PoolTable
from topstory.events.formats.faults import MAX_SHOWN_CHARACTERS
from topstory.events.formats.pipeline.validation import ParsedRows, RejectedRow

Pool = tuple[Any, ...]  # of ids, or of what the reader knows articles by

_INDEX = re.compile(r"\[\d+\]")


def general_reason(reason: str) -> str:
    """A reason without array indices, so that it is the same for many rows.

    >>> general_reason("Expected `float`, got `str` - at `$.user[3]`")
    'Expected `float`, got `str` - at `$.user[…]`'
    """
    return _INDEX.sub("[…]", reason)


def pool_fault(pool: Sequence[str], known: Mapping[str, object] | None = None) -> str | None:
    """What is wrong with a pool, or None; `known`: the only articles it may list.

    >>> pool_fault(["a", "b", "a"])
    'the pool lists an article twice'
    >>> pool_fault(["a"], known={"b": 0})
    'the pool lists an article that the articles file does not have'
    """
    if not pool:
        return "the pool is empty"
    # ASCII is always valid, and one check covers all ids: fast, since most pools differ.
    if "" in pool or not ("".join(pool).isascii() or all(map(_is_id, pool))):
        return "the pool lists an article id that is empty or not a text"
    if len(set(pool)) < len(pool):
        return "the pool lists an article twice"
    if known is not None and any(key not in known for key in pool):
        return "the pool lists an article that the articles file does not have"
    return None


def _is_id(key: str) -> bool:
    try:
        return bool(as_id(key, ""))
    except ValueError:
        return False


class RowBatch:
    """Events of one file that have been parsed but not yet validated.

    >>> batch = RowBatch("events.jsonl")
    >>> batch.add(1, [1.0], ("a", "b"), at=1, payoff=1.0)
    >>> batch.add(2, [1.0], ("b", "c"), at=0, payoff=0.0)
    >>> articles = ArticleTable(tuple(batch.members()))
    >>> rows = batch.rows(np.array(batch.users, np.float32), articles, articles.index)
    >>> rows.pools.members, rows.position
    (array([0, 1, 1, 2], dtype=int32), array([1, 0], dtype=int32))
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.rejected: list[RejectedRow] = []
        self.users: list[Any] = []  # in the reader's own form
        self._lines: list[int] = []
        self._texts: list[bytes] = []
        self._pools: dict[Pool, int] = {}
        self._pool: list[int] = []
        self._at: list[int] = []
        self._payoff: list[float] = []
        self._propensity: list[float | None] = []
        self._micros: list[int] = []

    def add(
        self,
        line: int,
        user: Any,
        pool: Pool,
        at: int,
        payoff: float,
        propensity: float | None = None,
        micros: int | None = None,
        text: bytes = b"",
    ) -> None:
        """Add an event. The pool is valid, and `at` is the shown article's position in it.

        `text` is shown if the row turns out to be bad.
        """
        self.users.append(user)
        self._lines.append(line)
        self._texts.append(text[: MAX_SHOWN_CHARACTERS + 1])
        self._pool.append(self._pools.setdefault(pool, len(self._pools)))
        self._at.append(at)
        self._payoff.append(payoff)
        self._propensity.append(propensity)
        if micros is not None:
            self._micros.append(micros)

    def reject(self, line: int, reason: str, text: bytes) -> None:
        """Count a row that is not an event."""
        self.rejected.append(RejectedRow(line, reason, text[: MAX_SHOWN_CHARACTERS + 1]))

    def members(self) -> Iterable[Any]:
        """The members of all pools, each once, in order of appearance."""
        return dict.fromkeys(chain.from_iterable(self._pools))

    def rows(
        self,
        users: npt.NDArray[np.float32] | SparseContexts,
        articles: ArticleTable,
        index: Mapping[Any, int],
        listed: int = 0,
    ) -> ParsedRows:
        """All rows, to be validated. `index`: a member of a pool -> its index in the articles.

        Rows without a propensity are taken as chosen uniformly.
        """
        sizes = np.fromiter(map(len, self._pools), np.int64, len(self._pools))
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        flat = map(index.__getitem__, chain.from_iterable(self._pools))
        pool = np.array(self._pool, np.int32)
        propensity = blank = None
        if None in self._propensity:
            blank = np.array([p is None for p in self._propensity])
        if blank is None or not blank.all():
            propensity = np.array(self._propensity, np.float64)  # None becomes nan
            if blank is not None:
                propensity = np.where(blank, 1.0 / sizes[pool], propensity)
        return ParsedRows(
            file=self.file,
            lines=np.array(self._lines, np.int64),
            users=users,
            pools=PoolTable(offsets, np.fromiter(flat, np.int32, offsets[-1])),
            pool=pool,
            position=np.array(self._at, np.int32),
            payoff=np.array(self._payoff, np.float64),
            propensity=propensity,
            micros=np.array(self._micros, np.int64) if self._micros else None,
            articles=articles,
            listed=listed,
            rejected=self.rejected,
            text=self._texts.__getitem__,
            blank=blank,
        )
