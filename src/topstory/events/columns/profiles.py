"""Raw profiles of users or articles: one row of typed fields each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topstory.events.columns.arrow_ids import is_string_type
from topstory.events.columns.times import EARLIEST, LATEST

ONE_CATEGORY = pa.dictionary(pa.int32(), pa.string())
MANY_CATEGORIES = pa.list_(ONE_CATEGORY)
RESERVED_COLUMNS = ("article", "features", "user")  # columns that the log's own files have

Kind = Literal["category", "categories", "number", "boolean", "date", "text"]
TYPES: Mapping[Kind, Any] = {
    "category": ONE_CATEGORY,
    "categories": MANY_CATEGORIES,
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.timestamp("us", "UTC"),
    "text": pa.string(),
}
_ACCEPTED = (
    "a profile holds categories (strings, or lists of strings), numbers, booleans, dates or text"
)
# Tells a text of ours from a string column of somebody else's table, which is a category.
_TEXT = {b"topstory.kind": b"text"}


def as_profiles(
    what: str,
    table: Any,
    rows: int | None = None,
    text: Collection[str] = (),
    kinds: Mapping[str, str] | None = None,
) -> pa.Table:
    """A table of typed fields, a row for each user or article, in the log's own form.

    A column holds one category in each row (a string), any number of them (a list of strings),
    a number, a boolean, a date or a time, or text; null is missing, and so is a number that is
    nan. Arrow, pandas and polars tables are accepted, and so are a dict of columns and a list of
    dicts, one per row, in which fields may be missing.

    Strings are categories, except in the columns that `text` names, and in those that an earlier
    call made text. `kinds` says what columns must be, such as the kinds of a fitted model; a
    column that cannot be that is an error, and one without any value becomes it.

    >>> table = as_profiles(
    ...     "profiles", {"gender": ["f", None], "likes": [["opera"], []], "age": [31, 52]}, rows=2
    ... )
    >>> table["likes"].to_pylist(), table["gender"].to_pylist(), table["age"].to_pylist()
    ([['opera'], []], ['f', None], [31.0, 52.0])
    >>> profile_kinds(table)
    {'gender': 'category', 'likes': 'categories', 'age': 'number'}
    >>> as_profiles("profiles", {"photo": [b"GIF89a"]})
    Traceback (most recent call last):
    ...
    ValueError: profiles: column 'photo' is binary; a profile holds categories (strings, or lists \
of strings), numbers, booleans, dates or text
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
    _check_declared(what, names, text, kinds or {})
    columns, fields = [], []
    for field in found.schema:
        marked = field.name in text or (field.metadata or {}).items() >= _TEXT.items()
        kind = (kinds or {}).get(field.name) or ("text" if marked else None)
        columns.append(_typed(f"{what}: column {field.name!r}", found.column(field.name), kind))
        made = columns[-1].type
        fields.append(pa.field(field.name, made, metadata=_TEXT if made == pa.string() else None))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def take_profiles(table: pa.Table, rows: npt.NDArray[np.integer[Any]]) -> pa.Table:
    """These rows of profiles in the log's own form; categories that none of them has are forgotten.

    >>> table = as_profiles("profiles", {"gender": ["f", "m"], "age": [31, 52]})
    >>> take_profiles(table, np.array([1]))["gender"].combine_chunks().dictionary.to_pylist()
    ['m']
    """
    columns = []
    for column in table.take(pa.array(rows, pa.int64())).columns:
        again = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else None
        columns.append(column if again is None else again.dictionary_encode().cast(column.type))
    return pa.Table.from_arrays(columns, schema=table.schema)


def profile_kinds(table: pa.Table) -> dict[str, Kind]:
    """The kind of each field of profiles in the log's own form, told by its Arrow type.

    >>> profile_kinds(as_profiles("profiles", {"title": ["Rain"], "new": [True]}, text=["title"]))
    {'title': 'text', 'new': 'boolean'}
    """
    by_type = {str(kind): name for name, kind in TYPES.items()}
    return {field.name: by_type[str(field.type)] for field in table.schema}


def field_names(table: Any) -> Collection[str]:
    """The fields of a table of any kind that `as_profiles` takes."""
    return _as_table("profiles", table).column_names


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


def _check_declared(
    what: str, names: Sequence[str], text: Collection[str], kinds: Mapping[str, str]
) -> None:
    if isinstance(text, str):
        raise ValueError(f"{what}: text must be a list of columns, got the string {text!r}")
    for name in (*text, *kinds):
        if name not in names:
            raise ValueError(
                f"{what}: there is no column {name!r} among {', '.join(names) or 'none'}"
            )
    for name, kind in kinds.items():
        if kind not in TYPES:
            raise ValueError(f"{what}: {name!r}: no kind is called {kind!r}: {', '.join(TYPES)}")


def _typed(where: str, column: Any, kind: str | None) -> Any:
    own = _kind_of(column.type)
    if own is None:
        raise ValueError(f"{where} is {column.type}; {_ACCEPTED}")
    if own == "nothing" or (kind is not None and column.null_count == len(column)):
        return pa.nulls(len(column), TYPES[cast("Kind", kind or "category")])
    if kind not in (None, own, "text" if own == "category" else own):
        raise ValueError(f"{where} must hold {kind}, but it is {column.type}: {own}")
    array = column.combine_chunks()
    match kind or own:
        case "category":
            return _encoded(array)
        case "categories":
            return _lists(where, array)
        case "number":
            return _numbers(where, array)
        case "date":
            return _dates(where, array)
        case "text":
            return _one(array).cast(pa.string())
        case _:
            return _one(array)


def _kind_of(kind: pa.DataType) -> str | None:
    """What a column of any Arrow type may become; None: nothing of ours."""
    types = pa.types
    if types.is_null(kind):
        return "nothing"
    if is_string_type(kind):
        return "category"
    if types.is_list(kind) or types.is_large_list(kind):
        strings = is_string_type(kind.value_type) or types.is_null(kind.value_type)
        return "categories" if strings else None
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    return "date" if types.is_timestamp(kind) or types.is_date(kind) else None


def _lists(where: str, flat: Any) -> Any:
    # flatten() drops the hidden values of null lists, so the offsets are computed again.
    flat = _one(flat)
    sizes = flat.value_lengths().fill_null(0)
    values = _encoded(flat.flatten())
    if values.null_count:
        raise ValueError(f"{where} has a null in a list; leave it out of the list")
    starts = pa.array([0], pa.int32())
    ends = pc.cumulative_sum(sizes.cast(pa.int32()))
    offsets = pa.concat_arrays([starts, ends])
    missing = pc.is_null(flat) if flat.null_count else None
    return pa.ListArray.from_arrays(offsets, values, type=MANY_CATEGORIES, mask=missing)


def _numbers(where: str, column: Any) -> Any:
    try:
        made = _one(column).cast(pa.float64())
    except pa.ArrowInvalid:  # an integer that no float64 equals
        raise ValueError(
            f"{where} holds integers beyond 2^53, which are no measurements: if they are names, "
            "give them as strings"
        ) from None
    values = made.to_numpy(zero_copy_only=False)  # nan where it is null
    if np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise ValueError(f"{where}, row {row}: {values[row]}; a number must be finite, or missing")
    return pc.if_else(pc.is_nan(made), pa.scalar(None, pa.float64()), made)


def _dates(where: str, column: Any) -> Any:
    column = _one(column)
    timestamps = pa.types.is_timestamp(column.type)
    zone = column.type.tz if timestamps else None
    finer = timestamps and column.type.unit == "ns"
    try:
        # What is finer than a microsecond is cut off; a time without a zone is UTC.
        micros = column.cast(pa.timestamp("us", zone), safe=not finer).cast(TYPES["date"])
    except pa.ArrowInvalid:
        raise ValueError(f"{where} has a date outside the years 1 to 9999") from None
    valid = micros.cast(pa.int64()).drop_null().to_numpy()
    if len(valid) and not EARLIEST <= valid.min() <= valid.max() <= LATEST:
        raise ValueError(f"{where} has a date outside the years 1 to 9999")
    return micros


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


def _one(column: Any) -> Any:
    """One array; Arrow leaves several chunks where one would overflow."""
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
