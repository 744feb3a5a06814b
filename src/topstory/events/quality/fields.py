"""The fields of raw profiles: what each holds, and how much of it is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from topstory.events.columns.times import as_datetime

if TYPE_CHECKING:
    from topstory.events.log import EventLog

MAX_COMMON = 3  # values that are named


class CommonValue(msgspec.Struct, frozen=True):
    """A frequent value of a field."""

    value: str
    share: float  # of the events, or of the articles


class FieldSummary(msgspec.Struct, frozen=True):
    """One field of the profiles of users or of articles."""

    side: str  # user or article
    name: str
    kind: str  # category, categories, number, boolean, date or text
    missing: float  # share: of the events for users, of the articles for articles
    distinct: int  # values; of a list, its members
    lowest: float | None = None  # of numbers
    median: float | None = None
    highest: float | None = None
    earliest: str | None = None  # of dates
    latest: str | None = None
    common: tuple[CommonValue, ...] = ()  # the most frequent values, the first most


def describe_fields(log: EventLog) -> tuple[FieldSummary, ...]:
    """Every field of the log's raw profiles; users count once for each of their events.

    >>> from topstory.events import EventLog
    >>> log = EventLog.from_arrays(
    ...     None, [["a"]], [0, 0, 0], ["a"] * 3, [0, 1, 0], visitor=[0, 1, 0],
    ...     profiles={"age": [31, None], "device": ["phone", "desk"]})
    >>> age, device = describe_fields(log)
    >>> round(age.missing, 2), age.lowest, device.common[0].value, device.distinct
    (0.33, 31.0, 'phone', 2)
    """
    found: list[FieldSummary] = []
    if log.visitors is not None and log.profiles is not None:
        weights = np.bincount(log.visitors.number, minlength=len(log.profiles))
        found += _describe("user", log.profiles, weights.astype(np.float64))
    if log.article_profiles is not None:
        found += _describe("article", log.article_profiles, np.ones(len(log.article_ids)))
    return tuple(found)


def _describe(side: str, table: Any, weights: npt.NDArray[np.float64]) -> list[FieldSummary]:
    from topstory.events.columns.profiles import profile_kinds

    total = float(weights.sum()) or 1.0
    found = []
    for name, kind in profile_kinds(table).items():
        column = table.column(name).combine_chunks()
        present = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), bool)
        facts: dict[str, Any] = {"missing": float(weights[~present].sum()) / total}
        values, own = column.filter(present), weights[present]
        if kind in ("number", "date"):
            facts |= _range(kind, values)
        else:
            facts |= _common(kind, values, own, total)
        found.append(FieldSummary(side=side, name=name, kind=kind, **facts))
    return found


def _range(kind: str, values: Any) -> dict[str, Any]:
    numbers = values.cast("int64" if kind == "date" else "float64")
    numbers = numbers.to_numpy(zero_copy_only=False)
    if not len(numbers):
        return {"distinct": 0}
    ends = {"distinct": len(np.unique(numbers))}
    if kind == "date":
        first, last = (as_datetime(int(end)) for end in (numbers.min(), numbers.max()))
        return ends | {"earliest": first.isoformat(), "latest": last.isoformat()}
    median = float(np.median(numbers))
    return ends | {
        "lowest": float(numbers.min()),
        "median": median,
        "highest": float(numbers.max()),
    }


def _common(
    kind: str, values: Any, weights: npt.NDArray[np.float64], total: float
) -> dict[str, Any]:
    if kind == "categories":
        sizes = values.value_lengths().to_numpy(zero_copy_only=False)
        values, weights = values.flatten(), np.repeat(weights, sizes)
    if kind == "boolean":
        values = values.cast("string")
    encoded = values if hasattr(values, "dictionary") else values.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    names = encoded.dictionary.to_pylist()
    counts = np.bincount(codes, weights, minlength=len(names))
    seen = np.bincount(codes, minlength=len(names)) > 0
    order = np.argsort(-counts, kind="stable")[:MAX_COMMON].tolist()
    common = tuple(CommonValue(names[i], float(counts[i]) / total) for i in order if seen[i])
    return {"distinct": int(seen.sum()), "common": () if kind == "text" else common}
