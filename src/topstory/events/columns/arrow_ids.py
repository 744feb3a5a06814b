"""Article ids in Arrow arrays: looked up, recognised, and turned into Python values.

Where pandas is installed, `pa.array`, `to_numpy` and `fill_null` of Arrow import it, which takes as
long as all else that a replay imports. `string_array` and `as_numpy` do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topstory.events.columns.pools import Indices

UNKNOWN = -1  # the index of an id that is not known
MAX_STRING_BYTES = np.iinfo(np.int32).max  # of one Arrow array: its offsets are 32 bits


def id_indices(ids: Any, known: Any) -> Indices:
    """The index in `known` (an Arrow array of ids) of each id in an Arrow array; -1: unknown."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(ids.type):
        if not len(ids.dictionary):  # nothing but nulls, or nothing at all
            return np.full(len(ids), UNKNOWN, np.int32)
        codes = _filled(ids.indices, len(ids.dictionary))
        meaning = np.append(id_indices(ids.dictionary, known), np.int32(UNKNOWN))
        return np.asarray(meaning[codes], np.int32)
    if ids.type != known.type:
        ids = ids.cast(known.type)
    return np.asarray(_filled(pc.index_in(ids, value_set=known), UNKNOWN), np.int32)


def _filled(numbers: Any, value: int) -> Any:
    return as_numpy(numbers.fill_null(value) if numbers.null_count else numbers)


def as_numpy(array: Any, zero_copy_only: bool = False) -> Any:
    """What `array.to_numpy(zero_copy_only)` gives; only to be read.

    >>> import pyarrow as pa
    >>> as_numpy(pa.array([3, 4])), as_numpy(pa.array([3, None]))
    (array([3, 4]), array([ 3., nan]))
    """
    import pyarrow as pa

    number = pa.types.is_integer(array.type) or pa.types.is_floating(array.type)
    if number and len(array) and not array.null_count:
        return np.from_dlpack(array)
    return array.to_numpy(zero_copy_only=zero_copy_only)


def string_array(values: Sequence[str]) -> Any:
    """What `pa.array(values, pa.string())` gives; TypeError if a value is no string.

    >>> string_array(["a", "é"]).to_pylist()
    ['a', 'é']
    """
    import pyarrow as pa

    text = "".join(values)
    parts: Sequence[str | bytes] = values if text.isascii() else [v.encode() for v in values]
    data = text.encode()
    if len(data) > MAX_STRING_BYTES:
        return pa.array(values, pa.string())
    ends = np.zeros(len(values) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, parts), np.int32, len(values)), out=ends[1:])
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends.data), pa.py_buffer(data))


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
