"""Article ids in Arrow arrays: looked up, recognised, and turned into Python values."""

from __future__ import annotations

from typing import Any

import numpy as np

from topstory.events.columns.pools import Indices

UNKNOWN = -1  # the index of an id that is not known


def id_indices(ids: Any, known: Any) -> Indices:
    """The index in `known` (an Arrow array of ids) of each id in an Arrow array; -1: unknown."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(ids.type):
        if not len(ids.dictionary):  # nothing but nulls, or nothing at all
            return np.full(len(ids), UNKNOWN, np.int32)
        codes = ids.indices.fill_null(len(ids.dictionary)).to_numpy(zero_copy_only=False)
        meaning = np.append(id_indices(ids.dictionary, known), np.int32(UNKNOWN))
        return np.asarray(meaning[codes], np.int32)
    if ids.type != known.type:
        ids = ids.cast(known.type)
    indices = pc.index_in(ids, value_set=known).fill_null(UNKNOWN)
    return np.asarray(indices.to_numpy(zero_copy_only=False), np.int32)


def is_string_type(kind: Any) -> bool:
    """Whether an Arrow type is one of its string types, dictionary-encoded or not.

    >>> import pyarrow as pa
    >>> is_string_type(pa.dictionary(pa.int32(), pa.string())), is_string_type(pa.int64())
    (True, False)
    """
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return is_string_type(kind.value_type)
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def as_python(value: Any) -> Any:
    """A value out of any array as Python's own.

    >>> import pyarrow as pa
    >>> as_python(pa.array(["a"])[0]), as_python(np.array(["a"])[0])
    ('a', 'a')
    """
    if hasattr(value, "as_py"):
        return value.as_py()
    return value.tolist() if hasattr(value, "tolist") else value
