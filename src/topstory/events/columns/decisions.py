"""What a service recorded of each decision beside the event itself: optional columns of a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from topstory.events.columns.arrow_ids import as_numpy, is_string_type

pc: Any = pyarrow.compute  # its types know no columns of any type
_LABEL: Any = pa.dictionary(pa.int32(), pa.string())
# By name: the type in memory. Files hold labels as plain strings. Null: not recorded.
COLUMNS: dict[str, Any] = {
    "decision": pa.int64(),  # its number in the journal
    "request": pa.string(),  # the client's id of the request
    "visitor": _LABEL,  # who came; not in a log with a table of users, which knows it already
    "bucket": _LABEL,
    "bucket_propensity": pa.float64(),  # of the shown article, in this bucket
    "mixture_propensity": pa.float64(),  # of the shown article, over all buckets
    "model_version": pa.int64(),
    "slot": pa.int32(),  # the place on the page, from 0
}
_PROPENSITIES = ("bucket_propensity", "mixture_propensity")


def as_decisions(columns: Any, events: int) -> pa.Table:
    """The columns in the log's own types, one value or null for each event.

    >>> as_decisions({"bucket": ["learning", None], "slot": [0, 1]}, events=2).to_pydict()
    {'bucket': ['learning', None], 'slot': [0, 1]}
    >>> as_decisions({"bucket_propensity": [0.5, 1.5]}, events=2)
    Traceback (most recent call last):
    ...
    ValueError: decisions: row 1: bucket_propensity 1.5 is outside (0, 1]; leave it null where it \
was not recorded
    """
    given = dict(columns) if isinstance(columns, Mapping) else _columns_of(columns)
    for name in given:
        if name not in COLUMNS:
            raise ValueError(f"decisions: there is no column {name!r}; choose from {_names()}")
    made = {}
    for name, kind in COLUMNS.items():
        if name in given:
            made[name] = _typed(name, given[name], kind)
            if len(made[name]) != events:
                raise ValueError(
                    f"decisions: column {name!r} has {len(made[name])} values for {events} events"
                )
    table = pa.table(made)
    check_decisions(table, "decisions: row ")
    return table


def typed_decisions(table: pa.Table) -> pa.Table:
    """Columns of a file, in the types of memory."""
    labels = [name for name in table.column_names if COLUMNS[name] == _LABEL]
    for name in labels:
        place = table.column_names.index(name)
        column = table.column(name).cast(pa.string()).dictionary_encode()
        table = table.set_column(place, name, column)
    return table


def stored_decisions(table: pa.Table) -> pa.Table:
    """Columns of memory, in the types of files: labels as strings."""
    return table.cast(stored_schema(table.column_names))


def stored_schema(names: Sequence[str]) -> pa.Schema:
    """The columns of that name in a file; they may be null."""
    kinds = [(name, COLUMNS[name]) for name in names]
    return pa.schema([(name, pa.string() if kind == _LABEL else kind) for name, kind in kinds])


def check_decisions(table: pa.Table, where: str, start: int = 0) -> None:
    """ValueError for a value that cannot be; `where` begins the message."""
    for name in table.column_names:
        values: Any = table.column(name)
        if name in _PROPENSITIES:
            inside = pc.and_(pc.greater(values, 0.0), pc.less_equal(values, 1.0))
            wanted = "is outside (0, 1]; leave it null where it was not recorded"
        elif name == "slot":
            inside, wanted = pc.greater_equal(values, 0), "is negative; the first slot is 0"
        else:
            continue
        if pc.all(inside).as_py() is False:
            row = pc.index(inside, False).as_py()
            raise ValueError(f"{where}{start + row}: {name} {values[row].as_py()} {wanted}")


def take_decisions(table: pa.Table, rows: Any) -> pa.Table:
    """The columns of some rows: a slice without steps, or row numbers."""
    if isinstance(rows, slice):
        start, stop, _ = rows.indices(table.num_rows)
        return table.slice(start, max(0, stop - start))
    return table.take(pa.array(rows))


def join_decisions(parts: Sequence[tuple[pa.Table | None, int]]) -> pa.Table | None:
    """Tables one after the other, each with its number of events; null where one has no column."""
    known = {name for table, _ in parts if table is not None for name in table.column_names}
    if not known:
        return None
    made = {}
    for name, kind in COLUMNS.items():
        if name not in known:
            continue
        chunks: list[Any] = []
        for table, events in parts:
            if table is not None and name in table.column_names:
                chunks += table.column(name).chunks
            else:
                chunks.append(pa.nulls(events, kind))
        made[name] = _whole(pa.chunked_array(chunks, kind))
    return pa.table(made)


def visitor_numbers(table: pa.Table) -> npt.NDArray[np.int64] | None:
    """(n,) equal for events of one visitor, -1 where none is known; None without such a column.

    >>> visitor_numbers(as_decisions({"visitor": ["ann", None, "bob", "ann"]}, 4)).tolist()
    [0, -1, 1, 0]
    """
    return label_numbers(table, "visitor")[0]


def take_column(table: pa.Table | None, name: str) -> npt.NDArray[np.int64] | None:
    """(n,) a column of whole numbers, 0 where it is null; None without such a column.

    >>> take_column(as_decisions({"slot": [2, None]}, 2), "slot").tolist()
    [2, 0]
    """
    if table is None or name not in table.column_names:
        return None
    column = _whole(table.column(name)).fill_null(0)
    return np.asarray(as_numpy(column), np.int64)


def label_numbers(
    table: pa.Table, name: str
) -> tuple[npt.NDArray[np.int64] | None, tuple[str, ...]]:
    """(n,) for each event the number of its label, -1 for null; and the labels."""
    if name not in table.column_names:
        return None, ()
    column = _whole(table.column(name))
    numbers = np.full(len(column), -1, np.int64)
    if len(column) > column.null_count:
        indices = column.indices
        numbers[:] = as_numpy(indices.fill_null(-1) if indices.null_count else indices)
    return numbers, tuple(column.dictionary.to_pylist())


def _typed(name: str, values: Any, kind: Any) -> Any:
    plain = pa.string() if kind == _LABEL else kind
    try:
        if not isinstance(values, pa.Array | pa.ChunkedArray):
            values = pa.array(values, from_pandas=True)
        known = len(values) - values.null_count
        if known and is_string_type(plain) and not is_string_type(values.type):
            raise ValueError(f"it holds {values.type}, not strings")
        if values.type == kind:
            return values
        values = values.cast(plain)
        return values.dictionary_encode() if kind == _LABEL else values
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ValueError(f"decisions: column {name!r} must be {plain}: {error}") from None


def _whole(column: Any) -> Any:
    """One array of all chunks."""
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    found = column.combine_chunks()
    if isinstance(found, pa.ChunkedArray):  # combine_chunks of no chunks, or too many bytes
        found = pa.concat_arrays(found.chunks) if found.num_chunks else pa.nulls(0, column.type)
    return found


def _columns_of(table: Any) -> dict[str, Any]:
    try:
        found = table if isinstance(table, pa.Table) else pa.table(table)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ValueError(f"decisions must be a table or a dict of columns: {error}") from None
    return {name: found.column(name) for name in found.column_names}


def _names() -> str:
    return ", ".join(COLUMNS)
