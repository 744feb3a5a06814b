"""What could be shown when: the pools of a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import ArrayRecord
from topstory.events.columns.articles import ArticleTable, as_id
from topstory.events.columns.checks import numbers, one_per_event, owned

Indices = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class PoolTable(ArrayRecord):
    """Pools end to end: pool p is `members[offsets[p]:offsets[p + 1]]`, as article indices.

    >>> articles = ArticleTable(("a", "b", "c"))
    >>> table = PoolTable.from_lists([["a", "b"], ["c", "a"]], articles)
    >>> table.offsets, table.members
    (array([0, 2, 4]), array([0, 1, 2, 0], dtype=int32))
    """

    offsets: npt.NDArray[np.int64]  # (P + 1,)
    members: Indices  # (sum of sizes,)

    @classmethod
    def from_lists(cls, lists: Sequence[Sequence[str]], articles: ArticleTable) -> PoolTable:
        """From lists of ids, all of which `articles` knows."""
        sizes = np.fromiter(map(len, lists), np.int64, len(lists))
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        flat = chain.from_iterable(lists)
        try:
            members = np.fromiter(map(articles.index.__getitem__, flat), np.int32, offsets[-1])
        except KeyError as error:
            missing = error.args[0]
            number = next(i for i, ids in enumerate(lists) if missing in ids)
            raise ValueError(
                f"pool {number} lists unknown article {missing!r}; "
                "add it to articles or take it out of the pool"
            ) from None
        table = cls(offsets, members)
        table.check(articles)
        return table

    def check(self, articles: ArticleTable) -> None:
        """Raise ValueError for an empty pool, or one that lists an article twice."""
        empty = self.sizes == 0
        if empty.any():
            raise ValueError(
                f"pool {int(empty.argmax())} is empty; every pool needs at least one article"
            )
        keys = np.sort(self.keys(len(articles.ids)))
        again = keys[1:] == keys[:-1]
        if again.any():
            number, article = divmod(int(keys[:-1][again][0]), len(articles.ids))
            raise ValueError(
                f"pool {number} lists article {articles.ids[article]!r} twice; list it once"
            )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """(P,) how many articles each pool holds."""
        sizes = np.diff(self.offsets)
        sizes.flags.writeable = False
        return sizes

    def keys(self, articles: int) -> npt.NDArray[np.int64]:
        """One number for every (pool, article) pair there is, in the order of `members`."""
        return np.repeat(np.arange(len(self)) * articles, self.sizes) + self.members

    def lists(self, ids: Sequence[str]) -> list[list[str]]:
        """The pools as lists of ids."""
        flat = [ids[i] for i in self.members.tolist()]
        bounds = self.offsets.tolist()
        return [flat[a:b] for a, b in pairwise(bounds)]


def pool_keys(table: PoolTable, article: Indices, pools: Iterable[int]) -> list[bytes]:
    r"""A key for each of `pools`: its members as bytes, renumbered by `article`.

    >>> table = PoolTable(np.array([0, 2, 3]), np.array([0, 1, 1], np.int32))
    >>> pool_keys(table, np.array([7, 8], np.int32), [1])
    [b'\x08\x00\x00\x00']
    """
    content, width = article[table.members].tobytes(), article.itemsize
    bounds = (table.offsets * width).tolist()
    return [content[bounds[pool] : bounds[pool + 1]] for pool in pools]


def pools_of_keys(keys: Iterable[bytes]) -> PoolTable:
    """The pools that have these keys, in order.

    >>> pools_of_keys([np.array([3, 4], np.int32).tobytes()]).members
    array([3, 4], dtype=int32)
    """
    listed = list(keys)
    offsets = np.cumsum([0, *(len(key) // 4 for key in listed)], dtype=np.int64)
    return PoolTable(offsets, np.frombuffer(b"".join(listed), np.int32))


def as_lists(pools: Iterable[Iterable[str | int]]) -> list[list[str]]:
    """Pools as lists of ids, each id a non-empty string.

    >>> as_lists([("a", "b"), np.array(["c"])])
    [['a', 'b'], ['c']]
    >>> as_lists([["a", 7]])
    [['a', '7']]
    """
    lists: list[list[Any]] = []
    for number, pool in enumerate(pools):
        if isinstance(pool, str):
            raise ValueError(f"pool {number} is the string {pool!r}; pass a list of article ids")
        try:
            # numpy hands out its own string type: tolist() gives plain strings
            lists.append(pool.tolist() if isinstance(pool, np.ndarray) else list(pool))
        except TypeError:
            raise ValueError(f"pool {number} is {pool!r}; pass a list of article ids") from None
    kinds = set(map(type, chain.from_iterable(lists)))
    if kinds <= {str}:
        known = dict.fromkeys(chain.from_iterable(lists))
        if all(key and key.isascii() for key in known):
            return lists
    return [[as_id(key, f"pool {number}") for key in ids] for number, ids in enumerate(lists)]


def pool_numbers(pool: npt.ArrayLike, events: int, pools: int) -> npt.NDArray[np.int32]:
    """(n,) the pool of each event, or an error that names the row.

    >>> pool_numbers([0, 2], events=2, pools=2)
    Traceback (most recent call last):
    ...
    ValueError: row 1: pool 2 does not exist; there are 2 pools, numbered from 0
    """
    source = numbers("pool", pool, kinds="iu")
    one_per_event("pool", source, events)
    if events and (source.min() < 0 or source.max() >= pools):
        row = int(((source < 0) | (source >= pools)).argmax())
        raise ValueError(
            f"row {row}: pool {source[row]} does not exist; there are {pools} pools, "
            "numbered from 0"
        )
    numbered: npt.NDArray[np.int32] = owned(pool, source, np.int32)
    return numbered
