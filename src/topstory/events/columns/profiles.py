"""Raw profiles of users or articles: one row of categories each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from topstory.events.columns.arrow_ids import is_string_type

ONE_CATEGORY = pa.dictionary(pa.int32(), pa.string())
MANY_CATEGORIES = pa.list_(ONE_CATEGORY)
RESERVED_COLUMNS = ("article", "features", "user")  # columns that the log's own files have


def as_profiles(what: str, table: Any, rows: int | None = None) -> pa.Table:
    """A table of categories, a row for each user or article, in the log's own form.

    A column holds one category in each row (a string) or any number of them (a list of
    strings); null is unknown. Arrow, pandas and polars tables are accepted, and so are a dict of
    columns and a list of dicts, one per row, in which fields may be missing.

    >>> table = as_profiles("profiles", {"gender": ["f", None], "likes": [["opera"], []]}, rows=2)
    >>> table["likes"].to_pylist(), table["gender"].to_pylist()
    ([['opera'], []], ['f', None])
    >>> as_profiles("profiles", {"age": [31, 52]}, rows=2)
    Traceback (most recent call last):
    ...
    ValueError: profiles: column 'age' is int64; a profile holds categories: give strings, \
or lists of strings
    """
    found = _as_table(what, table)
    if rows is not None and found.num_rows != rows:
        raise ValueError(f"{what} must have a row for each of the {rows}, got {found.num_rows}")
    names = found.column_names
    for name in names:
        if not name or name in RESERVED_COLUMNS or names.count(name) > 1:
            raise ValueError(
                f"{what}: column {name!r} must have a name of its own: not empty, not twice, "
                f"and none of {', '.join(RESERVED_COLUMNS)}"
            )
    columns = [_categories(what, name, found.column(name)) for name in names]
    return pa.Table.from_arrays(columns, names=names)


def same_columns(tables: Sequence[pa.Table | None]) -> bool:
    """Whether the tables have the same columns, so that they can be stacked."""
    first = tables[0]
    return all(
        table is first
        or (table is not None and first is not None and table.schema.equals(first.schema))
        for table in tables
    )


def _as_table(what: str, table: Any) -> pa.Table:
    try:
        if isinstance(table, Mapping):
            return pa.table(dict(table))
        if isinstance(table, list | tuple) and all(isinstance(row, Mapping) for row in table):
            names = dict.fromkeys(name for row in table for name in row)
            return pa.table({name: [row.get(name) for row in table] for name in names})
        return table if isinstance(table, pa.Table) else pa.table(table)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ValueError(
            f"{what} must be a table of Arrow, pandas or polars, a dict of columns, or a list of "
            f"dicts: {error}"
        ) from None


def _categories(what: str, name: str, column: Any) -> Any:
    kind = column.type
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    value = kind.value_type if lists else kind
    if not (is_string_type(value) or pa.types.is_null(value)):
        raise ValueError(
            f"{what}: column {name!r} is {kind}; a profile holds categories: "
            "give strings, or lists of strings"
        )
    if not lists:
        return _encoded(column.combine_chunks())
    # flatten() drops the hidden values of null lists, so the offsets are computed again.
    flat = column.combine_chunks()
    sizes = flat.value_lengths().fill_null(0)
    values = _encoded(flat.flatten())
    if values.null_count:
        raise ValueError(f"{what}: column {name!r} has a null in a list; leave it out of the list")
    starts = pa.array([0], pa.int32())
    ends = pc.cumulative_sum(sizes.cast(pa.int32()))
    return pa.ListArray.from_arrays(pa.concat_arrays([starts, ends]), values, type=MANY_CATEGORIES)


def _encoded(column: Any) -> Any:
    if isinstance(column, pa.ChunkedArray):  # combine_chunks leaves several where one overflows
        column = column.unify_dictionaries().combine_chunks()
    if column.type == ONE_CATEGORY:
        return column
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(
            column.indices.cast(pa.int32()), column.dictionary.cast(pa.string())
        )
    return column.cast(pa.string()).dictionary_encode()
