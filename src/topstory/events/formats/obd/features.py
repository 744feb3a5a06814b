"""The features of the Open Bandit Dataset: hashed categories, one place for each value."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from topstory.events.columns.articles import ArticleTable
from topstory.events.formats.faults import Faults
from topstory.events.formats.reader import Progress
from topstory.events.formats.tabular.arrow_columns import (
    Column,
    as_text,
    column_numbers,
    dictionary_codes,
)
from topstory.events.formats.tabular.csv_tables import csv_tables

USER_PREFIX, ITEM_PREFIX, AFFINITY_PREFIX = "user_feature_", "item_feature_", "user-item_affinity_"
# Of all user features together; more would make contexts too long to be useful.
MAX_USER_VALUES = 4096


@dataclass(frozen=True)
class UserCategories:
    """The values of each user feature, sorted; and how many affinities there are.

    >>> import pyarrow as pa
    >>> categories = UserCategories({"user_feature_0": ("x", "y")})
    >>> categories.one_hot({"user_feature_0": pa.array([b"y", b"x"])}, affinity=False)
    array([[0., 1., 1.],
           [1., 0., 1.]], dtype=float32)
    """

    values: Mapping[str, tuple[str, ...]]
    affinities: tuple[str, ...] = ()

    def one_hot(self, columns: Mapping[str, Column], affinity: bool) -> npt.NDArray[np.float32]:
        """(n, d) zeros and ones, then the affinities if they are wanted, then the constant."""
        rows = len(next(iter(columns.values())))
        parts: list[npt.NDArray[np.float32]] = []
        for name, values in self.values.items():
            codes, found = dictionary_codes(columns[name])
            place = {value: i for i, value in enumerate(values)}
            eye = np.zeros((len(found), len(values)), np.float32)
            for i, value in enumerate(found):
                text = as_text(value)
                if text is None:
                    eye[i] = np.nan  # not UTF-8: the row is rejected
                else:
                    eye[i, place[text]] = 1.0
            parts.append(eye[codes])
        if affinity:
            with np.errstate(over="ignore"):
                parts += [
                    column_numbers(columns[name]).astype(np.float32)[:, None]
                    for name in self.affinities
                ]
        return np.hstack([*parts, np.ones((rows, 1), np.float32)])


def read_categories(
    files: Sequence[Path], progress: Progress, intact: Mapping[str, int]
) -> UserCategories:
    """Collect them from all files; the second pass reports bad rows."""
    found: dict[str, set[str]] = {}
    own: tuple[str, ...] | None = None  # of the first file that has rows
    affinities: tuple[str, ...] = ()
    for path in files:
        names: tuple[str, ...] | None = None
        others: tuple[str, ...] = ()
        for table in csv_tables(path, Faults(intact=intact), progress, _describes_users):
            names = tuple(name for name in table.columns if name.startswith(USER_PREFIX))
            others = tuple(name for name in table.columns if name.startswith(AFFINITY_PREFIX))
            for name in names:
                texts = map(as_text, dictionary_codes(table.columns[name])[1])
                found.setdefault(name, set()).update(text for text in texts if text is not None)
        if names is not None and own is None:
            own, affinities, first = names, others, path
        if names is not None and own is not None:
            for what, here, there in (
                ("user features", names, own),
                ("user-item affinities", others, affinities),
            ):
                if set(here) != set(there):
                    raise ValueError(f"{path}: its {what} are not those of {first}")
        if sum(map(len, found.values())) > MAX_USER_VALUES:
            raise ValueError(
                f"{path}: the user features take more than {MAX_USER_VALUES} values; "
                "they are categories in the Open Bandit Dataset"
            )
    return UserCategories({name: tuple(sorted(found[name])) for name in found}, affinities)


def _describes_users(name: str) -> bool:
    return name.startswith((USER_PREFIX, AFFINITY_PREFIX))


def read_items(path: Path) -> ArticleTable:
    """The items: numbers as they are, categories by a place for each value, the constant last."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: not a CSV file of items ({error})") from None
    names = [name for name in (rows[0] if rows else {}) if name and name.startswith(ITEM_PREFIX)]
    if not rows or "item_id" not in rows[0]:
        raise ValueError(
            f"{path}: expected the columns item_id and {ITEM_PREFIX}…, and a row an item"
        )
    ids: dict[str, int] = {}
    for line, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise ValueError(f"{path}:{line}: the row has another number of fields than the header")
        if not row["item_id"] or row["item_id"] in ids:
            raise ValueError(f"{path}:{line}: item_id {row['item_id']!r} is blank or listed twice")
        ids[row["item_id"]] = line
    columns = [_encoded([row[name] for row in rows]) for name in names]
    features = np.hstack([*columns, np.ones((len(rows), 1))])
    if not np.isfinite(features).all():
        line = int((~np.isfinite(features).all(axis=1)).argmax()) + 2
        raise ValueError(f"{path}:{line}: a feature of the item is not a finite number")
    return ArticleTable(tuple(ids), features)


def _encoded(values: list[str]) -> npt.NDArray[np.float64]:
    """(n, 1) numbers, or (n, number of values) zeros and ones."""
    try:
        return np.array([[float(value)] for value in values])
    except ValueError:
        places = {value: i for i, value in enumerate(sorted(set(values)))}
        return np.eye(len(places))[[places[value] for value in values]]
