"""Events read one by one, gathered until there are enough of them for a log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.events.articles import ArticleTable, as_id
from topstory.events.contexts import SparseContexts
from topstory.events.readers.faults import CUT
from topstory.events.readers.reader import BATCH
from topstory.events.readers.sifting import Refusal, Rows

Pool = tuple[str, ...]

NOWHERE = -1
ENOUGH = 1 << 24  # bytes of text: as Python objects they take ten times as much

_INDEX = re.compile(r"\[\d+\]")


def unvarying(reason: str) -> str:
    """A reason without the places in arrays that it names: one reason for many rows.

    >>> unvarying("Expected `float`, got `str` - at `$.user[3]`")
    'Expected `float`, got `str` - at `$.user[…]`'
    """
    return _INDEX.sub("[…]", reason)


def pool_fault(pool: Sequence[str], known: Mapping[str, object] | None = None) -> str | None:
    """What is wrong with a pool, if anything; `known` are the articles there may be.

    >>> pool_fault(["a", "b", "a"])
    'the pool lists an article twice'
    >>> pool_fault(["a"], known={"b": 0})
    'the pool lists an article that the articles file does not have'
    """
    if not pool:
        return "the pool is empty"
    # ASCII can be written, and is seen for all ids at once: most pools differ from the others.
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


class Gathering:
    """The events of one file that have been read, but not yet checked.

    >>> gathering = Gathering("events.jsonl")
    >>> gathering.add(1, [1.0], ("a", "b"), at=1, payoff=1.0)
    >>> gathering.add(2, [1.0], ("a", "b"), at=0, payoff=0.0)
    >>> rows = gathering.rows(np.array(gathering.users, np.float32), ArticleTable(("a", "b")))
    >>> rows.shown
    array([1, 0], dtype=int32)
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.refused: list[Refusal] = []
        self._bytes = 0
        self.users: list[Any] = []  # in whatever form the reader keeps them
        self._lines: list[int] = []
        self._texts: list[bytes] = []
        self._pools: dict[Pool, int] = {}
        self._pool: list[int] = []
        self._at: list[int] = []
        self._payoff: list[float] = []
        self._propensity: list[float | None] = []
        self._micros: list[int] = []

    @property
    def full(self) -> bool:
        """Whether these are enough for one log, or for their faults to be told."""
        return len(self._lines) + len(self.refused) >= BATCH or self._bytes >= ENOUGH

    @property
    def pools(self) -> list[Pool]:
        """The pools so far."""
        return list(self._pools)

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
        size: int = 0,
    ) -> None:
        """An event; the pool has no fault, and the shown article is `at` that place, or NOWHERE.

        `size` is how many bytes were read for it, `text` some of them to be shown if it is bad.
        """
        self.users.append(user)
        self._lines.append(line)
        self._texts.append(text[: CUT + 1])
        self._bytes += size or len(text)
        self._pool.append(self._pools.setdefault(pool, len(self._pools)))
        self._at.append(at)
        self._payoff.append(payoff)
        self._propensity.append(propensity)
        if micros is not None:
            self._micros.append(micros)

    def refuse(self, line: int, reason: str, text: str | bytes) -> None:
        """A row that is no event."""
        begin = text[: CUT + 1]
        self.refused.append(Refusal(line, reason, begin))
        self._bytes += len(begin)

    def rows(self, users: npt.NDArray[np.float32] | SparseContexts, articles: ArticleTable) -> Rows:
        """All of them, to be sifted. What has no propensity was chosen uniformly."""
        pools = self.pools
        shown = [
            articles.index[pools[pool][at]] if at != NOWHERE else NOWHERE
            for pool, at in zip(self._pool, self._at, strict=True)
        ]
        propensity = None
        if any(value is not None for value in self._propensity):
            propensity = np.array(
                [
                    1.0 / len(pools[pool]) if value is None else value
                    for value, pool in zip(self._propensity, self._pool, strict=True)
                ]
            )
        return Rows(
            file=self.file,
            lines=np.array(self._lines, np.int64),
            users=users,
            pools=pools,
            pool=np.array(self._pool, np.int32),
            shown=np.array(shown, np.int32),
            payoff=np.array(self._payoff, np.float64),
            propensity=propensity,
            micros=np.array(self._micros, np.int64) if self._micros else None,
            articles=articles,
            refused=self.refused,
            text=self._texts.__getitem__,
        )
