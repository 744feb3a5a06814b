"""Columns of text that are read in one pass: plain numbers, plain times, and hashes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topstory.events.columns.array_record import Floats
from topstory.events.columns.checks import Mask
from topstory.kernels.parsing.columns import hash_texts, read_numbers, read_times

Hashes = npt.NDArray[np.uint64]
NOTHING = np.uint64(0xD1B54A32D192ED03)  # stands for a value that is missing


class _Buffers(NamedTuple):
    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int32]


def _buffers(column: Any) -> _Buffers | None:
    """The bytes of a column of text, and where each value begins and ends; None: it is none."""
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return None
    _, offsets, data = column.buffers()
    if not len(column) or data is None or not data.size:
        return _Buffers(np.frombuffer(b"\0", np.uint8), np.zeros(len(column) + 1, np.int32))
    starts = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return _Buffers(np.frombuffer(data, np.uint8), starts)


def plain_numbers(column: Any) -> tuple[Floats, Mask] | None:
    """(n,) the numbers that are plainly written, and which rows they are; None: it is no text.

    >>> plain_numbers(pa.array([b"1.5", b" 2 ", b"1e3", b"", None]))
    (array([1.5, 2. , nan, nan, nan]), array([ True,  True, False, False, False]))
    """
    found = _buffers(column)
    if found is None:
        return None
    values, read = np.full(len(column), np.nan), np.empty(len(column), bool)
    read_numbers(found.data, found.offsets, values, read)
    missing = _missing(column)
    if missing is not None:
        values[missing], read[missing] = np.nan, False
    return values, read


def plain_times(column: Any) -> tuple[npt.NDArray[np.int64], Mask] | None:
    """(n,) microseconds since 1970 of the times that are plainly written, and which rows they are.

    >>> plain_times(pa.array(["1970-01-01 00:00:02", "1970-01-01T00:00:00.5Z", "soon"]))
    (array([2000000,  500000,       0]), array([ True,  True, False]))
    """
    found = _buffers(column)
    if found is None:
        return None
    micros, read = np.zeros(len(column), np.int64), np.empty(len(column), bool)
    read_times(found.data, found.offsets, micros, read)
    missing = _missing(column)
    if missing is not None:
        micros[missing], read[missing] = 0, False
    return micros, read


def text_hashes(strings: Any, keys: tuple[int, int] = (0, 1)) -> tuple[Hashes, Hashes]:
    """Two hashes of 64 bits of each text; a missing one has its own. `keys`: what they start from.

    >>> first, second = text_hashes(pa.array(["a", "b", None, "a"]))
    >>> first[0] == first[3], first[0] == first[1], second[2] == second[1]
    (np.True_, np.False_, np.False_)
    """
    found = _buffers(strings)
    assert found is not None
    first, second = (np.full(len(strings), key, np.uint64) for key in keys)
    hash_texts(found.data, found.offsets, first, second)
    missing = _missing(strings)
    if missing is not None:
        first[missing], second[missing] = NOTHING, ~NOTHING
    return first, second


def _missing(column: Any) -> Mask | None:
    """Which values are null, whatever bytes are in their place."""
    if not column.null_count:
        return None
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), bool)
