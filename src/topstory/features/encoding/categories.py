"""Binary encoding of raw profiles: one column per category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from topstory.events.columns.profiles import as_profiles, profile_kinds

Sparse = sparse.csr_array[Any, tuple[int, int]]


# Ignored: scikit-learn is not typed.
class Categories(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Binary encoding of categories, one or any number in a field (paper, §5.2.2).

    "female" is [1, 0], "male" [0, 1]; unknown, and what was not there when it was fitted, is
    [0, 0]. Profiles are tables of Arrow, pandas or polars, a dict of columns, or a list of dicts.

    >>> profiles = {"gender": ["f", "m", None], "likes": [["opera"], ["golf", "opera"], []]}
    >>> encoder = Categories().fit(profiles)
    >>> encoder.transform(profiles).toarray()
    array([[1., 0., 0., 1.],
           [0., 1., 1., 1.],
           [0., 0., 0., 0.]], dtype=float32)
    >>> encoder.get_feature_names_out().tolist()
    ['gender=f', 'gender=m', 'likes=golf', 'likes=opera']
    """

    def fit(self, X: Any, y: Any = None) -> Categories:
        """Learn the fields, and the categories of each."""
        table = _categorical(as_profiles("profiles", X))
        if not table.num_columns or not table.num_rows:
            raise ValueError(
                f"profiles must have at least one row and one column, got {table.shape}"
            )
        kinds = {
            name: pa.types.is_list(table.schema.field(name).type) for name in table.schema.names
        }
        found = {name: sorted(_used(table.column(name))) for name in kinds}
        return self.learn(kinds, found)

    def learn(self, kinds: Mapping[str, bool], categories: Mapping[str, list[str]]) -> Categories:
        """Set what was learned elsewhere: whether each field holds many, and its categories."""
        self.fields_ = dict(kinds)  # field -> whether it holds any number of categories
        self.categories_ = {name: list(found) for name, found in categories.items()}
        sizes = [len(found) for found in self.categories_.values()]
        self.starts_ = dict(zip(self.categories_, np.cumsum([0, *sizes]).tolist(), strict=False))
        self.n_features_out_ = sum(sizes)
        self._codes = {
            name: {word: self.starts_[name] + i for i, word in enumerate(found)}
            for name, found in self.categories_.items()
        }
        return self

    def transform(self, X: Any) -> Sparse:
        """(rows, categories) zeros and ones."""
        return self.encode(X)[0]

    def encode(self, X: Any) -> tuple[Sparse, Counter[str]]:
        """The same, and how many unknown categories of each field were ignored."""
        check_is_fitted(self)
        table = self.checked(X)
        rows = table.num_rows
        unknown: Counter[str] = Counter()
        parts = []
        for name in self.fields_:
            counts, codes = self._column(name, table.column(name), unknown)
            parts.append((counts, codes))
        sizes = np.sum([counts for counts, _ in parts], axis=0)
        indptr = row_starts(sizes)
        indices = np.empty(indptr[-1], np.int32)
        begins = indptr[:-1].astype(np.int64)
        for counts, codes in parts:
            ends = np.cumsum(counts, dtype=np.int64)
            # Where each code goes: its row's next free place, plus its place within the field.
            places = np.repeat(begins - (ends - counts), counts)
            places += np.arange(len(codes))
            indices[places] = codes
            begins += counts
        matrix = sparse.csr_array(
            (np.ones(len(indices), np.float32), indices, indptr), shape=(rows, self.n_features_out_)
        )
        matrix.sum_duplicates()  # a category that is listed twice is still one
        matrix.data[:] = 1.0
        return matrix, unknown

    def checked(self, X: Any) -> pa.Table:
        """The table in a log's own form; ValueError if its fields are not the fitted ones."""
        if isinstance(X, list | tuple) and all(isinstance(row, Mapping) for row in X):
            X = [self._whole(row) for row in X]
        table = _categorical(as_profiles("profiles", X))
        if set(table.column_names) != set(self.fields_):
            unexpected = sorted(set(table.column_names) - set(self.fields_))
            missing = sorted(set(self.fields_) - set(table.column_names))
            what = f"unknown field {unexpected[0]!r}" if unexpected else f"no field {missing[0]!r}"
            raise ValueError(f"profiles: {what}; a profile has {', '.join(self.fields_)}")
        for name, many in self.fields_.items():
            if pa.types.is_list(table.schema.field(name).type) != many:
                wanted = "a list of strings" if many else "one string"
                raise ValueError(f"profiles: field {name!r} must hold {wanted} in each row")
        return table

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Field=category."""
        check_is_fitted(self)
        names = [f"{name}={word}" for name, words in self.categories_.items() for word in words]
        return np.array(names, dtype=object)

    def codes(self, field: str) -> Mapping[str, int]:
        """Category -> column, of one field."""
        return self._codes[field]

    def field_of(self) -> npt.NDArray[np.object_]:
        """(categories,) the field of each."""
        names = [name for name, words in self.categories_.items() for _ in words]
        return np.array(names, dtype=object)

    def _whole(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The profile with every field; missing ones are unknown."""
        nothing: dict[str, Any] = {
            name: [] if many else None for name, many in self.fields_.items()
        }
        return nothing | {name: value for name, value in row.items() if value is not None}

    def _column(
        self, name: str, column: Any, unknown: Counter[str]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """How many known categories each row has, and their codes, row after row."""
        array = column.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks)
        many = self.fields_[name]
        values = array.flatten() if many else array
        known = self._codes[name]
        code = np.array([known.get(word, -1) for word in values.dictionary.to_pylist()], np.int32)
        found = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        present = found >= 0
        codes = np.full(len(found), -1, np.int32)
        codes[present] = code[found[present]]
        kept = codes >= 0
        ignored = int(present.sum() - kept.sum())
        if ignored:
            unknown[name] += ignored
        if not many:
            return kept.astype(np.int64), codes[kept]
        sizes = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        if not kept.all():
            before = np.concatenate(([0], np.cumsum(kept)))
            ends = np.cumsum(sizes)
            sizes = before[ends] - before[ends - sizes]
        return sizes, codes[kept]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def row_starts(sizes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Where each row of a CSR matrix begins, and the last one ends.

    In 32 bits where they will do, since scipy makes column indices as wide as these.

    >>> row_starts(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    starts = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    return starts.astype(np.int32) if starts[-1] <= np.iinfo(np.int32).max else starts


def _categorical(table: pa.Table) -> pa.Table:
    """The table; ValueError if a field is not one of categories."""
    for name, kind in profile_kinds(table).items():
        if kind not in ("category", "categories"):
            raise ValueError(
                f"profiles: field {name!r} holds {kind}; clusters are made of categories: leave "
                "the field out, or give strings, or lists of strings"
            )
    return table


def _used(column: Any) -> set[str]:
    array = column.combine_chunks()
    values = array.flatten() if pa.types.is_list(array.type) else array
    codes = values.indices.drop_null().to_numpy(zero_copy_only=False)
    words = values.dictionary.to_pylist()
    return {words[i] for i in np.flatnonzero(np.bincount(codes, minlength=len(words)))}
