"""Raw profiles of any kinds to raw feature vectors φ: a block of numbers for each field."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Union

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from topstory.events.columns.profiles import as_profiles, field_names, profile_kinds
from topstory.features.fields.bins import BinnedField
from topstory.features.fields.boolean import BooleanField
from topstory.features.fields.categories import CategoriesField
from topstory.features.fields.category import CategoryField
from topstory.features.fields.field import FieldReport
from topstory.features.fields.measures import as_time, measures
from topstory.features.fields.scaled import ScaledField
from topstory.features.fields.splines import SplineField
from topstory.features.fields.text import COMPONENTS, TextField
from topstory.features.fields.unused import UnusedField

SCALED, BINS, SPLINES = "scaled", "bins", "splines"
NUMBERS: dict[str, type[ScaledField] | type[BinnedField] | type[SplineField]] = {
    SCALED: ScaledField,
    BINS: BinnedField,
    SPLINES: SplineField,
}
Threshold = float | Mapping[str, float]
Sparse = sparse.csr_array[Any, tuple[int, int]]
SparseRow = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]
AnyField = Union[  # noqa: UP007 (msgspec reads it)
    UnusedField,
    CategoryField,
    CategoriesField,
    ScaledField,
    BinnedField,
    SplineField,
    BooleanField,
    TextField,
]


# Ignored: scikit-learn is not typed.
class ProfileEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Profiles of any kinds as rows of numbers, the constant 1 last: (rows, D), sparse.

    Each field is a block whose length is at most 1; divided by the root of the number of fields,
    they are at most 1 together, as memberships are. So policies take their usual parameters.

    Args:
        support: categories that a smaller share of the rows has share a column; one number for
            all fields, or field -> number (0.01 where a field is not named).
        numbers: "scaled" (standardised), "bins" (by five ranges) or "splines" (five smooth
            bumps), for numbers and dates.
        text: components of a text field.
        seed: of the components.

    >>> profiles = {"age": [20, 40, 60, None], "country": ["de", "fr", "de", "de"]}
    >>> encoder = ProfileEncoder().fit(profiles)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age=(missing)', 'country=de', 'country=fr', 'constant']
    >>> encoder.transform(profiles).toarray().round(2)[[0, 3]]
    array([[-0.43,  0.  ,  0.71,  0.  ,  1.  ],
           [ 0.  ,  0.71,  0.71,  0.  ,  1.  ]], dtype=float32)
    """

    def __init__(
        self,
        support: Threshold = 0.01,
        numbers: str = SCALED,
        text: int = COMPONENTS,
        seed: int = 0,
    ) -> None:
        self.support = support
        self.numbers = numbers
        self.text = text
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> ProfileEncoder:
        """Learn how each field becomes numbers."""
        table = as_profiles("profiles", X)
        if not table.num_columns or not table.num_rows:
            raise ValueError(
                f"profiles must have at least one row and one column, got {table.shape}"
            )
        check_numbers(self.numbers)
        thresholds = _thresholds(self.support, table.column_names)
        return self.learn(
            [
                self._fit_field(name, kind, _one(table.column(name)), thresholds[name])
                for name, kind in profile_kinds(table).items()
            ]
        )

    def learn(self, fields: Sequence[AnyField]) -> ProfileEncoder:
        """Set what was learned elsewhere."""
        self.fields_ = tuple(fields)
        used = sum(bool(field.columns) for field in fields)
        self.scale_ = 1.0 / math.sqrt(used or 1)
        sizes = [len(field.columns) for field in fields]
        starts = np.cumsum([0, *sizes]).tolist()
        self.n_features_out_ = starts[-1] + 1
        self._places = tuple(
            (field.name, start, field.one) for field, start in zip(fields, starts, strict=False)
        )
        return self

    def transform(self, X: Any) -> Sparse:
        """(rows, D) φ, float32."""
        return self.encode(X)[0]

    def encode(self, X: Any) -> tuple[Sparse, Counter[str]]:
        """The same, and how many unknown categories of each field were ignored."""
        table = self.checked(X)
        size, unknown = table.num_rows, Counter[str]()
        rows, columns = [], []
        values: list[npt.NDArray[np.float64]] = []
        for field, (name, start, _) in zip(self.fields_, self._places, strict=True):
            row, column, value = field.many(_one(table.column(name)), unknown)
            rows.append(row)
            columns.append(column + np.int32(start))
            values.append(value * self.scale_)
        rows.append(np.arange(size))
        columns.append(np.full(size, self.n_features_out_ - 1, np.int32))
        values.append(np.ones(size))
        cells = np.concatenate(values).astype(np.float32)
        shape = (size, self.n_features_out_)
        where = (np.concatenate(rows), np.concatenate(columns))
        # Blocks come in the order of their columns, so each row is sorted as it is.
        return sparse.csr_array(sparse.coo_array((cells, where), shape=shape)), unknown

    def row(self, profile: Any) -> tuple[SparseRow, dict[str, int]]:
        """One profile's φ in CSR form: the bits that `transform` gives for its row of a table.

        A field may be left out: missing. Categories that are not known are counted by field.
        """
        unknown: dict[str, int] = {}
        indices: list[int] = []
        values: list[float] = []
        scale = self.scale_
        try:
            get = profile.get
            given = len(profile)
        except (AttributeError, TypeError):
            raise ValueError(
                f"a profile must be a dict of fields, got {type(profile).__name__}"
            ) from None
        for name, start, one in self._places:
            value = get(name)
            given -= value is not None
            for column, number in one(value, unknown):
                indices.append(start + column)
                values.append(number * scale)
        if given:
            self._check_names(profile)
        indices.append(self.n_features_out_ - 1)
        values.append(1.0)
        starts = np.array((0, len(indices)), np.int64)
        return (starts, np.array(indices, np.int32), np.array(values, np.float32)), unknown

    def checked(self, X: Any) -> pa.Table:
        """The table in a log's own form; ValueError if its fields are not the fitted ones."""
        check_is_fitted(self)
        kinds = {field.name: field.kind for field in self.fields_}
        if isinstance(X, list | tuple) and all(isinstance(row, Mapping) for row in X):
            for row in X:
                self._check_names(row)
            X = pa.table({name: _listed(name, kinds[name], X) for name in kinds})
        names = field_names(X)
        self._check_names(dict.fromkeys(names))
        missing = sorted(set(kinds) - set(names))
        if missing:
            listed = ", ".join(kinds)
            raise ValueError(f"profiles: no field {missing[0]!r}; a profile has {listed}")
        return as_profiles("profiles", X, kinds=kinds)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Field=category, or the field alone where it is one number, and the constant."""
        check_is_fitted(self)
        names = [
            f"{field.name}={column}" if column else field.name
            for field in self.fields_
            for column in field.columns
        ]
        return np.array([*names, "constant"], dtype=object)

    def report(self) -> tuple[FieldReport, ...]:
        """How each field is used."""
        return tuple(field.report() for field in self.fields_)

    def described(self, name: str, arrays: dict[str, npt.NDArray[Any]]) -> list[Any]:
        """The fields as JSON takes them; their arrays are added to `arrays`."""

        def aside(array: Any) -> str:
            key = f"{name}.array{len(arrays)}"
            arrays[key] = array
            return key

        found: list[Any] = msgspec.to_builtins(list(self.fields_), enc_hook=aside)
        return found

    @classmethod
    def restored(
        cls, described: Any, arrays: Mapping[str, npt.NDArray[Any]], **parameters: Any
    ) -> ProfileEncoder:
        """What `described` told of."""
        fields = msgspec.convert(
            described, list[AnyField], dec_hook=lambda _, key: arrays[key], strict=False
        )
        return cls(**parameters).learn(fields)

    def _fit_field(self, name: str, kind: Any, column: Any, support: float) -> AnyField:
        if column.null_count == len(column):
            return UnusedField(name, kind, "no profile has a value")
        found: AnyField | None
        if kind == "category":
            found = CategoryField.fit(name, column, support)
        elif kind == "categories":
            found = CategoriesField.fit(name, column, support)
        elif kind == "boolean":
            found = BooleanField(name, column.null_count > 0)
        elif kind == "text":
            found = TextField.fit(name, column, self.text, self.seed)
        else:
            values = measures(kind, column)
            if not np.nanmin(values) < np.nanmax(values) and not column.null_count:
                return UnusedField(name, kind, "the same in all profiles")
            found = NUMBERS[self.numbers].fit(name, kind, values)
        if found is None:
            return UnusedField(name, kind, "no two words that several texts share")
        if kind == "category" and len(found.columns) == 1:
            return UnusedField(name, kind, "the same in all profiles")
        return found if found.columns else UnusedField(name, kind, "no profile has a value")

    def _check_names(self, profile: Mapping[str, Any]) -> None:
        known = {name for name, _, _ in self._places}
        for name in profile:
            if name not in known:
                fields = ", ".join(field.name for field in self.fields_)
                raise ValueError(f"profile: unknown field {name!r}; a profile has {fields}")


def check_numbers(numbers: str) -> None:
    """Raise ValueError for what is no way to encode numbers.

    >>> check_numbers("halves")
    Traceback (most recent call last):
    ...
    ValueError: numbers must be one of scaled, bins, splines, got 'halves'
    """
    if numbers not in NUMBERS:
        raise ValueError(f"numbers must be one of {', '.join(NUMBERS)}, got {numbers!r}")


def _one(column: Any) -> Any:
    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def _listed(name: str, kind: str, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    values = [row.get(name) for row in rows]
    if kind != "date":
        return values
    return [None if value is None else as_time(name, value) for value in values]


def _thresholds(support: Threshold, fields: Sequence[str]) -> dict[str, float]:
    named = support if isinstance(support, Mapping) else dict.fromkeys(fields, support)
    unexpected = sorted(set(named) - set(fields))
    if unexpected:
        listed = ", ".join(fields)
        raise ValueError(f"support: unknown field {unexpected[0]!r}; a profile has {listed}")
    for field, share in named.items():
        if not 0 <= share <= 1:
            raise ValueError(
                f"support of {field!r} must lie between 0 (keep all) and 1, got {share:g}"
            )
    return {field: float(named.get(field, 0.01)) for field in fields}
