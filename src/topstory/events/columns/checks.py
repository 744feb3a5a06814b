"""Checks of one column of a log, and its conversion to the log's types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import blocks

Mask = npt.NDArray[np.bool_]


def first_row(length: int, bad: Callable[[int, int], Mask]) -> int | None:
    """The first row for which `bad(start, stop)` is true; it is called block by block.

    >>> values = np.array([1.0, 2.0, np.nan])
    >>> first_row(3, lambda start, stop: np.isnan(values[start:stop]))
    2
    """
    for start, stop in blocks(length):
        mask = bad(start, stop)
        if mask.any():
            return start + int(mask.argmax())
    return None


def numbers(name: str, values: object, kinds: str = "biuf") -> npt.NDArray[Any]:
    """`values` as an array of numbers of the given dtype kinds, else ValueError.

    >>> numbers("pool", [0.5], kinds="iu")
    Traceback (most recent call last):
    ...
    ValueError: pool must be whole numbers, got dtype float64
    """
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be one array, got rows of different lengths") from None
    if array.size and array.dtype.kind not in kinds:
        wanted = "whole numbers" if kinds == "iu" else "numbers"
        raise ValueError(f"{name} must be {wanted}, got dtype {array.dtype}")
    return array


def owned(values: object, source: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """`source` (which is `values` as an array) in the wanted dtype, contiguous, and not shared.

    A read-only array of the right dtype is taken as it is; anything that its owner could
    still write to is copied.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is reported as not finite
        column = np.ascontiguousarray(source, dtype=dtype)
    borrowed = column is source and not isinstance(values, list | tuple)
    return column.copy() if borrowed and source.flags.writeable else column


def one_per_event(name: str, array: npt.NDArray[Any], events: int) -> None:
    """Raise ValueError unless the column has one value for each of the log's events."""
    if array.ndim != 1 or len(array) != events:
        raise ValueError(
            f"{name} must hold one value for each of the {events} rows of users, "
            f"got shape {array.shape}"
        )


def reals(name: str, values: object, events: int) -> npt.NDArray[np.float32]:
    """A float32 column of finite numbers.

    >>> reals("payoff", [0, 1, float("nan")], events=3)
    Traceback (most recent call last):
    ...
    ValueError: row 2: payoff is nan, not a finite number; drop the event or give it one
    """
    source = numbers(name, values)
    one_per_event(name, source, events)
    column: npt.NDArray[np.float32] = owned(values, source, np.float32)
    row = first_row(events, lambda start, stop: ~np.isfinite(column[start:stop]))
    if row is not None:
        raise ValueError(
            f"row {row}: {name} is {source[row]}, not a finite number; "
            "drop the event or give it one"
        )
    return column


def row_numbers(rows: Any, events: int) -> npt.NDArray[np.intp]:
    """The rows that a mask or an array of row numbers (negative: from the end) picks out.

    >>> row_numbers([True, False, True], events=3), row_numbers([-1, 0], events=3)
    (array([0, 2]), array([2, 0]))
    """
    wanted = np.asarray(rows)
    if wanted.ndim == 1 and wanted.dtype == np.bool_:
        if len(wanted) != events:
            raise IndexError(
                f"a mask needs one value for each of the log's {events} events, got {len(wanted)}"
            )
        return np.flatnonzero(wanted)
    if wanted.ndim != 1 or (wanted.size and wanted.dtype.kind not in "iu"):
        raise IndexError(
            f"a log takes an int, a slice, a mask or an array of row numbers, got {rows!r}"
        )
    wanted = wanted.astype(np.intp)
    outside = (wanted < -events) | (wanted >= events)
    if outside.any():
        raise IndexError(f"row {wanted[outside][0]} is outside a log of {events} events")
    return np.where(wanted < 0, wanted + events, wanted)
