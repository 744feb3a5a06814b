"""Times as exports write them: ISO text, seconds, milliseconds, or a pattern of their own."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topstory.events.columns.times import parse_time
from topstory.events.formats.tabular.arrow_columns import (
    INVALID_TIME,
    Column,
    as_text,
    column_numbers,
    column_times,
    dictionary_codes,
    seconds_to_microseconds,
)

UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
# As exports write days, where they do not write ISO; with times and without.
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d.%m.%y")
PATTERNS = tuple(f"{day}{time}" for day in _DAYS for time in (" %H:%M:%S", " %H:%M", ""))
# Seconds reach this in the year 5138; fewer milliseconds are before March 1973.
_NOT_SECONDS = 1e11


def check_format(format: str, where: str) -> None:
    """Raise ValueError unless it is auto, iso, a unit, or a pattern.

    >>> check_format("seconds", "timestamp")
    Traceback (most recent call last):
    ...
    ValueError: timestamp: the format is auto, iso, s, ms, us, ns or a pattern such as \
%d/%m/%Y %H:%M, got 'seconds'
    """
    if format not in ("auto", "iso", *UNITS) and "%" not in format:
        raise ValueError(
            f"{where}: the format is auto, iso, s, ms, us, ns or a pattern such as "
            f"%d/%m/%Y %H:%M, got {format!r}"
        )


def column_moments(column: Column, format: str = "auto") -> npt.NDArray[np.int64]:
    """(n,) microseconds since 1970; INVALID_TIME where there is none.

    A time without a zone is UTC. With auto, a number is seconds, milliseconds, microseconds or
    nanoseconds, by its size.

    >>> column_moments(pa.array([b"1700000000", b"1700000000000"])).tolist()
    [1700000000000000, 1700000000000000]
    >>> column_moments(pa.array([b"14/11/2023 22:13"]), "%d/%m/%Y %H:%M").tolist()
    [1699999980000000]
    """
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return column_times(column)
    if "%" in format:
        return _by_pattern(column, format)
    if format == "iso":
        return _without_numbers(column)
    if format in UNITS:
        return seconds_to_microseconds(column_numbers(column) / UNITS[format])
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _by_size(column_numbers(column))
    found = column_times(column)  # a number is in seconds here: right only if it is small
    unclear = np.flatnonzero((found == INVALID_TIME) | (np.abs(found) >= _NOT_SECONDS * 1e6))
    if len(unclear):
        rest = column.take(pa.array(unclear))
        numbers = column_numbers(rest)
        plain = ~np.isnan(numbers)
        found = found.copy()
        found[unclear[plain]] = _by_size(numbers[plain])
    return found


def _by_size(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    seconds = numbers.copy()
    with np.errstate(invalid="ignore"):
        for _ in range(3):
            seconds = np.where(np.abs(seconds) >= _NOT_SECONDS, seconds / 1e3, seconds)
    return seconds_to_microseconds(seconds)


def _without_numbers(column: Column) -> npt.NDArray[np.int64]:
    found = column_times(column)
    numbers = ~np.isnan(column_numbers(column))
    return np.where(numbers, INVALID_TIME, found)


def _by_pattern(column: Column, format: str) -> npt.NDArray[np.int64]:
    """By Arrow where it can; Python's strptime knows more directives."""
    text = column if pa.types.is_string(column.type) else None
    if text is None:
        try:
            text = column.cast(pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            text = None
    if text is not None and not re.search(r"%[^YmdHMS]", format):
        parsed: Column = pc.strptime(text, format=format, unit="us", error_is_null=True)
        return np.asarray(
            parsed.cast(pa.int64()).fill_null(INVALID_TIME).to_numpy(zero_copy_only=False)
        )
    codes, values = dictionary_codes(column)
    return np.array([_one(as_text(value), format) for value in values], np.int64)[codes]


def _one(text: str | None, format: str) -> int:
    if text is None:
        return INVALID_TIME
    try:
        moment = datetime.strptime(text.strip(), format)
    except ValueError:
        return INVALID_TIME
    try:
        return parse_time(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except OverflowError:
        return INVALID_TIME


def usual_pattern(values: Sequence[str]) -> str | None:
    """The pattern by which nearly all of these are times; None if there is none.

    Where day and month could be either, the day is first.

    >>> usual_pattern(["31.12.2025 23:59", "01.02.2026 08:00"]), usual_pattern(["5.2026"])
    ('%d.%m.%Y %H:%M', None)
    """
    column = pa.array(values, pa.string())
    for pattern in PATTERNS:
        if (_by_pattern(column, pattern) != INVALID_TIME).sum() > 0.9 * len(values):
            return pattern
    return None


def is_moment(text: str) -> bool:
    """Whether a text looks like a time, and not like any number.

    >>> is_moment("2023-11-14 22:13:20"), is_moment("1700000000"), is_moment("17"), is_moment("x")
    (True, True, False, False)
    """
    try:
        number = float(text)
    except ValueError:
        return int(column_moments(pa.array([text]))[0]) != INVALID_TIME
    # From the year 2001 to 2096, in one of the units.
    return math.isfinite(number) and any(1e9 <= number / unit <= 4e9 for unit in UNITS.values())
