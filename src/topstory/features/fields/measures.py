"""Values as one number each: numbers, booleans, and dates as days since 1970."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from topstory.events.columns.profiles import Kind
from topstory.events.columns.times import DAY, EPOCH
from topstory.features.fields.field import wrong
from topstory.kernels.compilation import Floats

_MICROSECOND = timedelta(microseconds=1)


def measure(name: str, kind: Kind, value: Any) -> float | None:
    """The number of a value; None if it is missing. ValueError for a value of another kind.

    >>> measure("age", "number", 31), measure("new", "boolean", True)
    (31.0, 1.0)
    >>> measure("joined", "date", "1970-01-02T12:00:00Z")
    1.5
    >>> measure("age", "number", "31")
    Traceback (most recent call last):
    ...
    ValueError: profile: 'age' must be a number, got '31'
    """
    if value is None:
        return None
    if kind == "number":
        return _number(name, value)
    if kind == "boolean":
        if value is True or value is False or isinstance(value, np.bool_):
            return float(value)
        raise wrong(name, "true or false", value)
    return float(_microseconds(name, value)) / DAY


def as_time(name: str, value: Any) -> datetime:
    """A date or a time, in UTC; one without a zone is UTC."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
        if not isinstance(found, datetime):
            found = datetime(found.year, found.month, found.day)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (AttributeError, OverflowError, TypeError, ValueError):
        wanted = "a date such as 2009-05-01 or 2009-05-01T12:00:00Z"
        raise wrong(name, wanted, value) from None


def measures(kind: Kind, column: Any) -> Floats:
    """(n,) the numbers of a column; nan where it is missing."""
    if kind == "date":
        micros = column.cast(pa.int64())
        there = micros.is_valid().to_numpy(zero_copy_only=False)
        days = micros.fill_null(0).to_numpy(zero_copy_only=False) / DAY
        return np.where(there, days, np.nan)
    if kind == "boolean":
        column = column.cast(pa.float64())
    found: Floats = column.to_numpy(zero_copy_only=False)
    return found


def _number(name: str, value: Any) -> float | None:
    if type(value) is not float:  # the usual case first: a profile has little time
        if isinstance(value, bool | np.bool_):
            raise wrong(name, "a number", value)
        if not isinstance(value, int | float | np.integer | np.floating):
            raise wrong(name, "a number", value)
        try:
            value = float(value)
        except OverflowError:
            value = math.inf
    if math.isinf(value):
        raise wrong(name, "a finite number", value)
    return None if math.isnan(value) else value


def _microseconds(name: str, value: Any) -> int:
    if not isinstance(value, str | date):
        raise wrong(name, "a date such as 2009-05-01 or 2009-05-01T12:00:00Z", value)
    return (as_time(name, value) - EPOCH) // _MICROSECOND
