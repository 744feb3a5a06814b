"""The articles of a log, and their features."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import ArrayRecord
from topstory.events.columns.checks import numbers

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class ArticleTable(ArrayRecord):
    """Article ids, which the rest of a log refers to by index, and their features if any.

    >>> table = ArticleTable.from_mapping({"a": [0.1, 1.0], "b": [0.9, 1.0]})
    >>> table.ids, table.index["b"], table.mapping["b"]
    (('a', 'b'), 1, array([0.9, 1. ]))
    """

    ids: tuple[str, ...]
    features: npt.NDArray[np.float64] | None = None  # (A, m)
    profiles: pa.Table | None = None  # A rows

    def described(self, profiles: Any, text: Collection[str] = ()) -> ArticleTable:
        """The same articles, with raw profiles."""
        from topstory.events.columns.profiles import as_profiles

        made = as_profiles("article_profiles", profiles, len(self.ids), text)
        return replace(self, profiles=made)

    @classmethod
    def from_mapping(cls, articles: Mapping[str, npt.ArrayLike | None]) -> ArticleTable:
        """From id -> features; values that are all None make a table without features."""
        ids = tuple(as_id(key, "articles") for key in articles)
        if all(value is None for value in articles.values()):
            return cls(ids)
        rows = [_features(key, value) for key, value in articles.items()]
        for key, row in zip(ids, rows, strict=True):
            if len(row) != len(rows[0]):
                raise ValueError(
                    f"article {key!r} has {len(row)} features but {ids[0]!r} has {len(rows[0])}; "
                    "give all the same number"
                )
        return cls(ids, np.array(rows))

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> ArticleTable:
        """These articles only."""
        features, profiles = self.features, self.profiles
        if profiles is not None:
            from topstory.events.columns.profiles import take_profiles

            profiles = take_profiles(profiles, rows)
        kept = None if features is None else features[rows]
        return ArticleTable(tuple(self.ids[row] for row in rows.tolist()), kept, profiles)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Id -> index."""
        return {key: i for i, key in enumerate(self.ids)}

    @cached_property
    def mapping(self) -> Mapping[str, npt.NDArray[np.float64] | None]:
        """Id -> features, read-only; the values are None if there are none."""
        rows = self.features if self.features is not None else [None] * len(self.ids)
        return MappingProxyType(dict(zip(self.ids, rows, strict=True)))


def merge_profiles(ids: Sequence[str], tables: Sequence[ArticleTable]) -> pa.Table | None:
    """The raw profiles of `ids`, each from the first table that has it; None if some have none."""
    parts = [(table.ids, table.profiles) for table in tables if table.ids]
    profiles = [table for _, table in parts if table is not None]
    if not profiles or len(profiles) < len(parts):
        return None
    import pyarrow as pa

    from topstory.events.columns.profiles import as_profiles, same_columns

    if not same_columns(profiles):
        return None
    row: dict[str, int] = {}
    for at, key in enumerate(key for keys, _ in parts for key in keys):
        row.setdefault(key, at)
    stacked = as_profiles("article_profiles", pa.concat_tables(profiles))
    return stacked.take(pa.array([row[key] for key in ids], pa.int64())).combine_chunks()


def as_id(key: object, where: str) -> str:
    """`key` as an article's id: a non-empty string; a whole number becomes one.

    >>> as_id(109528, where="pool 0")
    '109528'
    >>> as_id(1.5, where="pool 0")
    Traceback (most recent call last):
    ...
    ValueError: pool 0: article id 1.5 is not a string; pass str(id)
    """
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        return str(int(key))
    if not isinstance(key, str):
        raise ValueError(f"{where}: article id {key!r} is not a string; pass str(id)")
    if not key:
        raise ValueError(f"{where}: article id '' is empty; give every article a name")
    try:
        key.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{where}: article id {key!r} cannot be written as UTF-8") from None
    return str(key)  # numpy's own string type becomes a plain one


def _features(key: str, value: npt.ArrayLike | None) -> npt.NDArray[np.float64]:
    if value is None:
        raise ValueError(
            f"article {key!r} has no features but others have; give all of them features, or none"
        )
    row = numbers(f"features of article {key!r}", value).astype(np.float64)
    if row.ndim != 1 or not len(row):
        raise ValueError(f"features of article {key!r} must be 1-D, got shape {row.shape}")
    if not np.isfinite(row).all():
        at = int((~np.isfinite(row)).argmax())
        raise ValueError(f"article {key!r}: feature {at} is {row[at]}; features must be finite")
    return row
