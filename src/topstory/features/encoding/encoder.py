"""Raw profiles to raw feature vectors φ: support, binary encoding, unit length, the constant."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from topstory.events.columns.profiles import as_profiles
from topstory.features.encoding.categories import Categories, Sparse, row_starts
from topstory.features.encoding.support import Support
from topstory.features.encoding.unit_length import UnitLength
from topstory.features.fields.field import FieldReport

CHUNK_PROFILES = 1 << 16  # profiles encoded at a time
Threshold = float | Mapping[str, float]
SparseRow = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]


# Ignored: scikit-learn is not typed.
class Encoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The paper's raw feature vectors (§5.2.2), from tables of profiles: (rows, D), sparse.

    Args:
        support: keep a category that at least this share of the rows has; one number for all
            fields, or field -> number (0.1 where a field is not named; 0 keeps all).
        apart: normalise fields with any number of categories apart from those with one, as the
            paper does with users' behaviours; False: all together, as with articles.

    >>> profiles = {"gender": ["f", "m", None, "f"], "likes": [["golf", "tea"], ["tea"], [], []]}
    >>> encoder = Encoder(support=0.5).fit(profiles)
    >>> encoder.get_feature_names_out().tolist()
    ['gender=f', 'likes=tea', 'constant']
    >>> encoder.transform(profiles).toarray()[1]
    array([0., 1., 1.], dtype=float32)
    """

    def __init__(self, support: Threshold = 0.1, apart: bool = True) -> None:
        self.support = support
        self.apart = apart

    def fit(self, X: Any, y: Any = None) -> Encoder:
        """Learn the categories, and which of them have support."""
        table = as_profiles("profiles", X)
        categories = Categories().fit(table)
        thresholds = self._thresholds(categories)
        fields = categories.field_of()
        support = Support(np.array([thresholds[field] for field in fields]))
        if not len(fields):  # all profiles are empty
            return self.learn(categories, np.zeros(0), np.zeros(0, bool))
        for part in chunks(table):
            support.partial_fit(categories.transform(part))
        return self.learn(categories, support.support_, support.kept_)

    def learn(
        self,
        categories: Categories,
        support: npt.NDArray[np.float64],
        kept: npt.NDArray[np.bool_],
    ) -> Encoder:
        """Set what was learned elsewhere: the categories, their support, which are kept."""
        self.categories_, self.support_, self.kept_ = categories, support, kept
        fields = categories.field_of()[kept]
        labels = [categories.fields_[field] and self.apart for field in fields]
        empty = sparse.csr_array((1, len(fields)), dtype=np.float32)
        self.unit_ = UnitLength(np.array(labels, int)).fit(empty) if len(fields) else None
        column = np.cumsum(kept) - 1
        self._places = {
            field: (
                many,
                {
                    word: int(column[at]) if kept[at] else -1
                    for word, at in categories.codes(field).items()
                },
            )
            for field, many in categories.fields_.items()
        }
        self.n_features_out_ = len(fields) + 1
        return self

    def transform(self, X: Any) -> Sparse:
        """(rows, D) φ, float32."""
        return self.encode(X)[0]

    def encode(self, X: Any) -> tuple[Sparse, Counter[str]]:
        """The same, and how many unknown categories of each field were ignored."""
        check_is_fitted(self)
        table = self.categories_.checked(X)
        parts, unknown = [], Counter[str]()
        for part in chunks(table):
            binary, ignored = self.categories_.encode(part)
            unknown += ignored
            parts.append(self._unit(binary[:, self.kept_]))
        if not parts:
            return self._unit(self.categories_.transform(table)[:, self.kept_]), unknown
        return parts[0] if len(parts) == 1 else stacked(parts), unknown

    def checked(self, X: Any) -> pa.Table:
        """The table in a log's own form; ValueError if its fields are not the fitted ones."""
        return self.categories_.checked(X)

    def _unit(self, kept: Sparse) -> Sparse:
        if self.unit_ is None:  # no category has support: the constant alone
            return sparse.csr_array(np.ones((kept.shape[0], 1), np.float32))
        found: Sparse = self.unit_.transform(kept)
        return found

    def row(self, profile: Any) -> tuple[SparseRow, dict[str, int]]:
        """One profile's φ in CSR form: the bits that `transform` gives for its row of a table.

        A field may be left out: unknown. Categories that are not known are counted by field.
        """
        together: list[int] = []
        apart: list[int] = []
        unknown: dict[str, int] = {}
        try:
            items = profile.items()
        except AttributeError:
            raise ValueError(
                f"a profile must be a dict of fields, got {type(profile).__name__}"
            ) from None
        for field, value in items:
            known = self._places.get(field)
            if known is None:
                fields = ", ".join(self._places)
                raise ValueError(f"profile: unknown field {field!r}; a profile has {fields}")
            if value is None:
                continue
            many, places = known
            found = apart if many and self.apart else together
            for word in _words(field, many, value):
                place = places.get(word)
                if place is None:
                    if not isinstance(word, str):
                        raise ValueError(f"profile: {field!r} holds {word!r}, not a string")
                    unknown[field] = unknown.get(field, 0) + 1
                elif place >= 0:
                    found.append(place)
        length = 1.0 / math.sqrt(len(together) or 1)
        values = dict.fromkeys(together, length)
        length = 1.0 / math.sqrt(len(apart) or 1)
        values |= dict.fromkeys(apart, length)
        # In one order: neither a set's nor the fields' may decide the last bits of a sum.
        on = sorted(values)
        indices = np.array([*on, self.n_features_out_ - 1], np.int32)
        data = np.array([*map(values.__getitem__, on), 1.0], np.float32)
        return (np.array([0, len(indices)], np.int64), indices, data), unknown

    def report(self) -> tuple[FieldReport, ...]:
        """What was kept of each field, and what was dropped."""
        fields, thresholds = self.categories_.field_of(), self._thresholds(self.categories_)
        return tuple(
            FieldReport(
                field,
                many,
                thresholds[field],
                int(self.kept_[fields == field].sum()),
                int((~self.kept_[fields == field]).sum()),
                "categories" if many else "category",
                "one-hot, unit length",
            )
            for field, many in self.categories_.fields_.items()
        )

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Field=category of each that is kept, and the constant."""
        check_is_fitted(self)
        names = self.categories_.get_feature_names_out()[self.kept_]
        return np.array([*names, "constant"], dtype=object)

    def check_kept(self, who: str) -> None:
        """Raise ValueError if no category is kept: all rows would look alike."""
        if self.kept_.any():
            return
        if not len(self.kept_):
            raise ValueError(f"the profiles of the {who} are all empty: they cannot be told apart")
        most = int(self.support_.argmax())
        name = self.categories_.get_feature_names_out()[most]
        raise ValueError(
            f"support {self.support!r}: no category of the {who} has it; the most frequent, "
            f"{name}, has {self.support_[most]:.3g}: choose less"
        )

    def _thresholds(self, categories: Categories) -> dict[str, float]:
        if not isinstance(self.support, Mapping):
            _check_share("support", self.support)
            return dict.fromkeys(categories.fields_, float(self.support))
        unexpected = sorted(set(self.support) - set(categories.fields_))
        if unexpected:
            raise ValueError(
                f"support: unknown field {unexpected[0]!r}; a profile has "
                f"{', '.join(categories.fields_)}"
            )
        for field, share in self.support.items():
            _check_share(f"support of {field!r}", share)
        return {field: float(self.support.get(field, 0.1)) for field in categories.fields_}


def chunks(table: pa.Table) -> Iterator[pa.Table]:
    """The table, some rows at a time."""
    for start in range(0, table.num_rows, CHUNK_PROFILES):
        yield table.slice(start, CHUNK_PROFILES)


def stacked(parts: Sequence[Sparse]) -> Sparse:
    """The matrices stacked vertically."""
    sizes = np.concatenate([np.diff(part.indptr) for part in parts])
    whole: Sparse = sparse.csr_array(
        (
            np.concatenate([part.data for part in parts]),
            np.concatenate([part.indices for part in parts]),
            row_starts(sizes),
        ),
        shape=(sum(part.shape[0] for part in parts), parts[0].shape[1]),
    )
    return whole


def _check_share(what: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise ValueError(f"{what} must lie between 0 (keep all) and 1, got {share:g}")


def _words(field: str, many: bool, value: Any) -> Any:
    if not many:
        if isinstance(value, str):
            return (value,)
        raise ValueError(f"profile: {field!r} must be one string, got {value!r}")
    if isinstance(value, list | tuple | set | frozenset):
        try:
            return value if len(value) < 2 else set(value)  # listed twice is still one
        except TypeError:
            pass
    raise ValueError(f"profile: {field!r} must be a list of strings, got {value!r}")
