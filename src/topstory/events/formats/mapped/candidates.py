"""The pool of each event: as a column lists it, or the articles that were live at the time."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topstory.events.columns.pools import PoolTable
from topstory.events.formats.mapped.articles import Articles
from topstory.events.formats.mapped.fields import split_list
from topstory.events.formats.mapped.mapping import ListColumn
from topstory.events.formats.tabular.arrow_columns import Column, as_text, dictionary_codes

JOINER = "\x1f"  # no sensible id contains it


class RowPools(NamedTuple):
    """The distinct pools of some rows; a pool may be empty: its rows are no events."""

    pool: npt.NDArray[np.int64]  # (n,)
    table: PoolTable
    repeated: npt.NDArray[np.bool_]  # (n,) where an article was listed twice
    unlisted: npt.NDArray[np.bool_]  # (n,) where one is not in the articles file


def listed_pools(
    column: Column, spec: ListColumn, articles: Articles, missing: Collection[str]
) -> RowPools:
    """Pools from a column of lists, or of texts; ids that are blank are left out."""
    separator = spec.separator
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        column = pc.binary_join(column.cast(pa.list_(pa.string())), JOINER)
        separator = JOINER
    codes, values = dictionary_codes(column)
    texts = [_plain(as_text(value), separator, missing) for value in values]
    lists = pc.split_pattern(pa.array(texts, pa.string()), separator)
    sizes = np.asarray(pc.list_value_length(lists).to_numpy(zero_copy_only=False), np.int64)
    encoded = pc.utf8_trim_whitespace(lists.flatten()).dictionary_encode()
    names: list[str | None] = encoded.dictionary.to_pylist()
    kept = np.array([bool(name) and name not in missing for name in names], bool)
    before = articles.listed
    index = articles.indices([n if k else None for n, k in zip(names, kept, strict=True)])
    members = index[np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)]
    row = np.repeat(np.arange(len(sizes)), sizes)
    row, members = row[members >= 0], members[members >= 0]
    _, first = np.unique(row * (1 << 32) + members, return_index=True)
    twice = np.bincount(row, minlength=len(sizes)) > np.bincount(row[first], minlength=len(sizes))
    first.sort()
    row, members = row[first], members[first]
    counts = np.bincount(row, minlength=len(sizes))
    offsets = np.concatenate(([0], np.cumsum(counts)))
    foreign = np.zeros(len(sizes), bool)
    if before:
        foreign[row[members >= before]] = True
    return RowPools(
        codes, PoolTable(offsets, members.astype(np.int32)), twice[codes], foreign[codes]
    )


def _plain(text: str | None, separator: str, missing: Collection[str]) -> str:
    """The list as one text with separators; blank if there is none."""
    if text is None or text.strip() in missing:
        return ""
    if text.startswith("["):
        return separator.join(split_list(text.strip(), separator, missing) or [])
    return text


class LivePools:
    """The articles that are live, at any time."""

    def __init__(self, articles: Articles) -> None:
        self._starts, self._ends = articles.starts, articles.ends
        self._edges = np.unique(np.concatenate((self._starts, self._ends)))
        self._members: dict[int, npt.NDArray[np.int32]] = {}

    def at(self, micros: npt.NDArray[np.int64]) -> RowPools:
        """The pool of each time.

        An article is live from its start until just before its end.
        """
        stretch = np.searchsorted(self._edges, micros, side="right")
        used, pool = np.unique(stretch, return_inverse=True)
        lists = [self._live(int(number)) for number in used]
        sizes = np.array([len(members) for members in lists], np.int64)
        table = PoolTable(
            np.concatenate(([0], np.cumsum(sizes))),
            np.concatenate([np.empty(0, np.int32), *lists]),
        )
        nothing = np.zeros(len(micros), bool)
        return RowPools(pool.astype(np.int64), table, nothing, nothing)

    def _live(self, number: int) -> npt.NDArray[np.int32]:
        found = self._members.get(number)
        if found is None:
            begun = self._edges[number - 1] if number else np.iinfo(np.int64).min
            live = (self._starts <= begun) & (begun < self._ends)
            found = self._members[number] = np.flatnonzero(live).astype(np.int32)
        return found
