"""Columns of an imported table as numbers, times and text; unreadable values are marked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topstory.events.columns.array_record import Floats
from topstory.events.columns.times import LATEST, SECOND, parse_time
from topstory.events.formats.tabular.text_columns import plain_times

Column = Any  # any array of pyarrow, whose stubs have a type for each
_NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?$"
_DAY_AND_TIME = r"^[0-9]{4}-[01][0-9]-[0-3][0-9][ T][0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
_NAIVE_TIME, _ZONED_TIME = f"{_DAY_AND_TIME}$", f"{_DAY_AND_TIME}Z$"
INVALID_TIME = LATEST + 1  # a time that no event can have


def as_text(value: object) -> str | None:
    r"""A value as text; None for null, or if it is not UTF-8.

    >>> as_text(b"caf\xc3\xa9"), as_text(b"\xe9"), as_text(7)
    ('café', None, '7')
    """
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    return None if value is None else str(value)


def dictionary_codes(column: Column) -> tuple[npt.NDArray[np.int64], list[Any]]:
    """(n,) code of each value, and the distinct values; null counts as a value.

    >>> codes, values = dictionary_codes(pa.array(["a", None, "a"]))
    >>> [values[code] for code in codes]
    ['a', None, 'a']
    """
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode("encode")
    values = column.dictionary.to_pylist()
    codes = column.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), [*values, None]


def column_numbers(column: Column) -> Floats:
    """(n,) float64; nan for nulls and for values that are not numbers.

    >>> column_numbers(pa.array([b"1.5", b"-2e3", b"x", b""]))
    array([ 1.5e+00, -2.0e+03,      nan,      nan])
    """
    kind = column.type
    try:
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            column = column.cast(pa.string())
        cast = column.cast(pa.float64()).fill_null(math.nan)
        return np.asarray(cast.to_numpy(zero_copy_only=False), np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _mixed_numbers(column)


def column_times(column: Column) -> npt.NDArray[np.int64]:
    """(n,) microseconds since 1970, from timestamps, unix seconds or ISO text; else INVALID_TIME.

    >>> column_times(pa.array([b"1970-01-01T00:00:01Z", b"1970-01-01 00:00:02", b"3.5", b"soon"]))
    array([           1000000,            2000000,            3500000,
           253402300800000000])
    """
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        exact: Column = pc.cast(column, pa.timestamp("us", None), safe=False)
        return np.asarray(
            exact.cast(pa.int64()).fill_null(INVALID_TIME).to_numpy(zero_copy_only=False)
        )
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return seconds_to_microseconds(column_numbers(column))
    plain = plain_times(column)
    if plain is None:
        return _other_times(column)
    micros, read = plain
    rest = np.flatnonzero(~read)
    if len(rest):
        micros[rest] = _other_times(column.take(pa.array(rest)))
    return micros


def _other_times(column: Column) -> npt.NDArray[np.int64]:
    """Times as text, however it is written."""
    for zone in ("UTC", None):  # either all times have a zone, or none
        try:
            times = column.cast(pa.string()).cast(pa.timestamp("us", zone)).cast(pa.int64())
            return np.asarray(times.fill_null(INVALID_TIME).to_numpy(zero_copy_only=False))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    try:
        return seconds_to_microseconds(
            np.asarray(column.cast(pa.string()).cast(pa.float64()).fill_null(math.nan))
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a mix of kinds, or no times
        return _mixed_times(column)


def seconds_to_microseconds(values: Floats) -> npt.NDArray[np.int64]:
    """Unix seconds as microseconds; INVALID_TIME for a time that no event can have.

    >>> seconds_to_microseconds(np.array([1.5, np.nan, 1e300]))
    array([           1500000, 253402300800000000, 253402300800000000])
    """
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = np.rint(values * SECOND)
        return np.where(np.abs(scaled) < INVALID_TIME, scaled, INVALID_TIME).astype(np.int64)


def _mixed_numbers(column: Column) -> Floats:
    """Numbers among other values: Arrow reads what is plainly a number, Python the rest."""
    found, rest = np.full(len(column), math.nan), np.ones(len(column), bool)
    plain = _matching(column, _NUMBER)
    if plain is not None:
        rest = ~plain
        numbers: Column = column.filter(pa.array(plain)).cast(pa.string()).cast(pa.float64())
        found[plain] = numbers.to_numpy(zero_copy_only=False)
    codes, values = dictionary_codes(column.filter(pa.array(rest)))
    found[rest] = np.array([_number(value) for value in values])[codes]
    return found


def _mixed_times(column: Column) -> npt.NDArray[np.int64]:
    """Times of several kinds, or times among other values."""
    found, rest = np.full(len(column), INVALID_TIME), np.ones(len(column), bool)
    for pattern, zone in ((_ZONED_TIME, "UTC"), (_NAIVE_TIME, None)):
        plain = _matching(column, pattern)
        if plain is None:
            continue
        try:
            texts: Column = column.filter(pa.array(plain)).cast(pa.string())
            found[plain] = np.asarray(texts.cast(pa.timestamp("us", zone)).cast(pa.int64()))
            rest &= ~plain
        except pa.ArrowInvalid:  # such as the 30th of February: one by one
            continue
    codes, values = dictionary_codes(column.filter(pa.array(rest)))
    found[rest] = np.array([_micros(value) for value in values], np.int64)[codes]
    return found


def _matching(column: Column, pattern: str) -> npt.NDArray[np.bool_] | None:
    """Which values match; None if the column is not one of text."""
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        return None
    matches: Column = pc.match_substring_regex(column, pattern)
    return np.asarray(matches.fill_null(False).to_numpy(zero_copy_only=False), bool)


def _number(value: object) -> float:
    try:
        text = as_text(value)
        return math.nan if text is None or "_" in text else float(text)
    except ValueError:
        return math.nan


def _micros(value: object) -> int:
    text = as_text(value)
    if text is None:
        return INVALID_TIME
    number = _number(text)
    if not math.isnan(number):
        return int(seconds_to_microseconds(np.array([number]))[0])
    try:
        return parse_time(text.strip())
    except (ValueError, OverflowError):
        return INVALID_TIME
