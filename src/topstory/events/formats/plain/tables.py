"""The plain layout as a table: events in rows (docs/guides/importing.md)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.checks import Mask
from topstory.events.columns.pools import PoolTable
from topstory.events.columns.positions import PositionLookup
from topstory.events.formats.pipeline.row_batch import pool_fault
from topstory.events.formats.pipeline.validation import (
    NOT_IN_POOL,
    ParsedRows,
    rejected_rows,
)
from topstory.events.formats.plain.users import NOT_A_NUMBER, USER_ID, USER_PREFIX
from topstory.events.formats.tabular.arrow_columns import (
    Column,
    as_text,
    column_numbers,
    column_times,
    dictionary_codes,
)
from topstory.events.formats.tabular.table_part import TablePart

SEPARATOR = "|"  # between the ids of a pool, or the numbers of a user, in one text
JOINER = "\x1f"  # joins the ids of a pool to find equal pools; no sensible id contains it

FIELDS = ("timestamp", "user", "pool", "shown", "payoff", "propensity")


def is_wanted(name: str) -> bool:
    """Whether a column of that name is read.

    >>> is_wanted("user_age"), is_wanted("browser")
    (True, False)
    """
    return name in FIELDS or name.startswith(USER_PREFIX)


class TableParser:
    """Turns parts of tables into rows to validate; all users must have the first one's features."""

    def __init__(self, articles: ArticleTable | None, constant: bool) -> None:
        self._articles, self._constant = articles, constant
        self._names: list[str] = []
        self._width = 0

    def rows(self, path: Path, part: TablePart) -> ParsedRows:
        """The rows whose user and pool are valid; the others are in `rejected`."""
        columns = part.columns
        self._check(path, list(columns))
        rejected = list(part.rejected)
        bad = np.zeros(len(part.lines), bool)

        def reject(mask: Mask, reason: str) -> None:
            rejected.extend(rejected_rows(mask & ~bad, reason, part.lines, part.text))
            bad[mask] = True

        known = self._articles
        pool, pools = _pools(columns["pool"])
        faults = [pool_fault(ids, None if known is None else known.index) for ids in pools]
        for fault in {fault: None for fault in faults if fault is not None}:
            reject(np.array([each == fault for each in faults])[pool], fault)
        users, misfits = self._users(columns)
        for name, mask in self._not_numbers(columns):
            reject(mask, NOT_A_NUMBER.format(name))
        reject(misfits, "the user has another number of features than the first one")
        good = np.flatnonzero(~bad)
        used, inverse = np.unique(pool[good], return_inverse=True)
        numbered = inverse.astype(np.int32)
        lists = [pools[number] for number in used.tolist()]
        if known is None:
            known = ArticleTable(tuple(dict.fromkeys(chain.from_iterable(lists))))
        table = PoolTable.from_lists(lists, known)
        codes, values = dictionary_codes(columns["shown"])
        index = [known.index.get(as_text(value) or "", NOT_IN_POOL) for value in values]
        shown = np.array(index, np.int32)[codes[good]]
        position = PositionLookup(table, len(known.ids))(numbered, np.maximum(shown, 0))
        sizes = np.array([len(ids) for ids in pools])
        propensity, blank = _propensity(columns.get("propensity"), sizes[pool], good)
        return ParsedRows(
            file=str(path),
            lines=part.lines[good],
            users=users[good],
            pools=table,
            pool=numbered,
            position=np.where(shown < 0, NOT_IN_POOL, position).astype(np.int32),
            payoff=column_numbers(columns["payoff"])[good],
            propensity=propensity,
            micros=column_times(columns["timestamp"])[good] if "timestamp" in columns else None,
            articles=known,
            listed=0 if self._articles is None else len(known.ids),
            rejected=rejected,
            text=lambda i: part.text(int(good[i])),
            blank=blank,
        )

    def _check(self, path: Path, names: list[str]) -> None:
        for name in ("pool", "shown", "payoff"):
            if name not in names:
                raise ValueError(
                    f"{path}: there is no column {name!r} among the columns that are read: "
                    f"{', '.join(names) or 'none'}; rename it, or say which column it is with a "
                    "mapping (--map; --suggest writes one)"
                )
        if "user" not in names and not any(name.startswith(USER_PREFIX) for name in names):
            raise ValueError(
                f"{path}: there is no column 'user', nor any that begins with user_; a mapping "
                "(--map; --suggest writes one) takes any columns"
            )
        if "user" not in names and USER_ID in names:
            raise ValueError(
                f"{path}: the column 'user_id' would become a feature of the user, as every column "
                "user_… does; drop it, or rename it, to 'visitor' for one"
            )
        self._names = self._names or names
        if sorted(names) != sorted(self._names):
            raise ValueError(
                f"{path}: it has the columns {', '.join(names)}, but the first file "
                f"{', '.join(self._names)}; import them apart"
            )

    def _not_numbers(self, columns: dict[str, Column]) -> Iterator[tuple[str, Mask]]:
        """Columns of the user that should hold numbers, and the rows where they do not."""
        if "user" not in columns:
            for name in self._names:
                if name.startswith(USER_PREFIX):
                    yield name, ~np.isfinite(column_numbers(columns[name]))

    def _users(self, columns: dict[str, Column]) -> tuple[npt.NDArray[np.float32], Mask]:
        """(n, d), and (n,) whose number of features is not d."""
        if "user" in columns:
            flat, lengths = _lists(columns["user"])
            if not self._width and len(lengths):
                self._width = max(1, int(lengths[0]))
            misfits = lengths != self._width
            dense = np.ones((len(lengths), max(1, self._width)))
            dense[~misfits] = flat[~np.repeat(misfits, lengths)].reshape(-1, dense.shape[1])
        else:
            own = [name for name in self._names if name.startswith(USER_PREFIX)]
            dense = np.column_stack([column_numbers(columns[name]) for name in own])
            misfits = np.zeros(len(dense), bool)
        if self._constant:
            dense = np.column_stack([dense, np.ones(len(dense))])
        with np.errstate(over="ignore"):  # overflow is rejected
            return dense.astype(np.float32), misfits


def _pools(column: Column) -> tuple[npt.NDArray[np.int64], list[tuple[str, ...]]]:
    """(n,) number of each row's pool, and the distinct pools; an invalid one is empty."""
    separator = SEPARATOR
    if _is_list(column):
        try:
            column = pc.binary_join(column.cast(pa.list_(pa.string())), JOINER)
        except pa.ArrowException as error:
            raise ValueError(f"the column 'pool' must hold lists of ids ({error})") from None
        separator = JOINER
    codes, values = dictionary_codes(column)
    texts = map(as_text, values)
    return codes, [tuple(text.split(separator)) if text else () for text in texts]


def _lists(column: Column) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """All numbers end to end, and (n,) how many each row has."""
    if not _is_list(column):
        try:
            column = column.cast(pa.string())
        except pa.ArrowException:  # not UTF-8 somewhere: those users have no features
            codes, values = dictionary_codes(column)
            column = pa.array([as_text(value) for value in values], pa.string()).take(codes)
        column = pc.split_pattern(column, SEPARATOR)
    lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    flat_values: Any = column.flatten()
    return column_numbers(flat_values), lengths.astype(np.int64)


def _is_list(column: Column) -> bool:
    kind = column.type
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _propensity(
    column: Column | None, sizes: npt.NDArray[np.int64], good: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.float64] | None, Mask | None]:
    """As recorded; 1 / the pool's size where the field is null or blank, and where that is."""
    if column is None:
        return None, None
    codes, values = dictionary_codes(column)
    blank = np.array([value is None or value in (b"", "") for value in values], bool)[codes[good]]
    with np.errstate(divide="ignore"):
        return np.where(blank, 1.0 / sizes[good], column_numbers(column)[good]), blank
