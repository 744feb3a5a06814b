"""Merging the articles and pools of batches, for a log that is written batch by batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from topstory.events.columns.arrow_ids import string_array
from topstory.events.columns.articles import ArticleTable, merge_profiles
from topstory.events.columns.pools import Indices, pool_keys, pools_of_keys
from topstory.events.folder.parquet_files import parquet_writer
from topstory.events.folder.schemas import pools_schema
from topstory.events.folder.write import pools_columns
from topstory.events.log import EventLog

MAX_KNOWN_BYTES = 1 << 26  # of pools that are recognised when they come again
MAX_WAITING_MEMBERS = 1 << 22  # pool members that wait to be written


class MergedArticles:
    """Articles in order of appearance; an article keeps the features that it first had.

    >>> articles = MergedArticles()
    >>> articles.add(ArticleTable.from_mapping({"a": [1.0], "b": [2.0]}))
    array([0, 1], dtype=int32)
    >>> articles.add(ArticleTable.from_mapping({"b": [3.0], "c": [4.0]}))
    array([1, 2], dtype=int32)
    >>> articles.ids, articles.features().ravel(), articles.changed
    (['a', 'b', 'c'], array([1., 2., 4.]), {'b': 1})
    """

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.changed: dict[str, int] = {}  # id -> batches that gave it other features
        self._index: dict[str, int] = {}
        self._features: list[npt.NDArray[np.float64]] = []
        self._width: int | None = None
        self._last: ArticleTable | None = None
        self._last_map = np.empty(0, np.int32)
        self._described: list[ArticleTable] = []  # those with raw profiles

    def add(self, table: ArticleTable) -> Indices:
        """Index in the table -> index here."""
        if not table.ids:
            return np.empty(0, np.int32)
        if table is self._last:  # such as that of an articles file: the same in every batch
            return self._last_map
        width = None if table.features is None else table.features.shape[1]
        if self.ids and width != self._width:
            raise ValueError(
                "the articles do not fit together: they have "
                f"{self._width or 'no'} features in the first batch "
                f"and {width or 'no'} in a later one"
            )
        self._width = width
        if table.profiles is not None and table not in self._described[-1:]:
            self._described.append(table)
        new = np.empty(len(table.ids), np.int32)
        for i, key in enumerate(table.ids):
            new[i] = self._index.setdefault(key, len(self.ids))
            if new[i] == len(self.ids):
                self.ids.append(key)
                if table.features is not None:
                    self._features.append(table.features[i].copy())
            elif table.features is not None and (
                self._features[new[i]].tobytes() != table.features[i].tobytes()
            ):
                self.changed[key] = self.changed.get(key, 0) + 1
        self._last, self._last_map = table, new
        return new

    def features(self) -> npt.NDArray[np.float64] | None:
        """(A, m), or None."""
        return np.array(self._features) if self._features else None

    def table(self) -> ArticleTable:
        """All articles."""
        profiles = merge_profiles(self.ids, self._described)
        return ArticleTable(tuple(self.ids), self.features(), profiles)


class MergedPools:
    """Pools in order of appearance, written to a file batch by batch."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None
        self._numbers: dict[bytes, int] = {}
        self._known = 0
        self._total, self._written = 0, 0
        self._waiting: list[bytes] = []
        self._members = 0

    def add(self, log: EventLog, article: Indices, articles: MergedArticles) -> Indices:
        """(n,) the number of each event's pool here; `article`: index in the log -> index here."""
        new = np.full(len(log.pool_table), -1, np.int32)
        used = np.flatnonzero(np.bincount(log.pool, minlength=len(new))).tolist()
        for pool, key in zip(used, pool_keys(log.pool_table, article, used), strict=True):
            number = self._numbers.get(key)
            if number is None:
                number = self._add_new(key)
            new[pool] = number
        if self._members > MAX_WAITING_MEMBERS:
            self._write(articles)
        return new[log.pool]

    def finish(self, articles: MergedArticles) -> int:
        """Write the remaining pools; returns how many there are in all."""
        self._write(articles)
        self.close()
        return self._total

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _add_new(self, key: bytes) -> int:
        self._known += len(key) + 128
        if self._known > MAX_KNOWN_BYTES:
            # A pool that comes again is then listed twice, which is harmless.
            self._numbers.clear()
            self._known = len(key) + 128
        number = self._numbers[key] = self._total
        self._total += 1
        self._waiting.append(key)
        self._members += len(key) // 4
        return number

    def _write(self, articles: MergedArticles) -> None:
        if self._writer is None:
            self._writer = parquet_writer(self._path, pools_schema())
        table = pools_of_keys(self._waiting)
        ids = string_array(articles.ids)
        self._writer.write_table(pools_columns(self._written, table.offsets, table.members, ids))
        self._written = self._total
        self._waiting, self._members = [], 0
