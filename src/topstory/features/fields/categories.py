"""A field with any number of categories in each profile."""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec
import numpy as np

from topstory.features.fields.field import MISSING, Cell, Cells, FieldReport, Unknown, wrong
from topstory.features.fields.vocabulary import Vocabulary, word_counts


class CategoriesField(msgspec.Struct, frozen=True, tag="many-hot", tag_field="encoding"):
    """1/√k in each of the k columns that a list's categories have.

    >>> field = CategoriesField("tags", Vocabulary(("ball", "sport"), 1, 0.1, 3), missing=False)
    >>> field.one(["sport", "ball", "sport", "darts", "chess"], {})
    ((0, 0.5773502691896258), (1, 0.5773502691896258), (2, 0.5773502691896258))
    """

    name: str
    vocabulary: Vocabulary
    missing: bool
    kind: Literal["categories"] = "categories"

    @classmethod
    def fit(cls, name: str, column: Any, support: float) -> CategoriesField:
        """Learn which categories have support: the share of rows that list them."""
        rows, codes, words = _listed(column)
        pairs = np.unique(rows * len(words) + codes)  # listed twice is still one
        found = word_counts(pairs % max(1, len(words)), words)
        return cls(name, Vocabulary.of(found, len(column), support), column.null_count > 0)

    @property
    def columns(self) -> tuple[str, ...]:
        """A column for each category."""
        return (*self.vocabulary.columns, *(MISSING,) * self.missing)

    def one(self, value: Any, unknown: Unknown) -> tuple[Cell, ...]:
        """A cell for each column that is on."""
        if value is None:
            return ((len(self.columns) - 1, 1.0),) if self.missing else ()
        if not isinstance(value, list | tuple | set | frozenset):
            raise wrong(self.name, "a list of strings", value)
        places, ignored = set(), set()
        for word in value:
            if not isinstance(word, str):
                raise wrong(self.name, "a list of strings", value)
            place = self.vocabulary.place(word)
            places.add(place)
            if place < 0:
                ignored.add(word)
        if ignored:
            unknown[self.name] = unknown.get(self.name, 0) + len(ignored)
            places.remove(-1)
        length = 1.0 / math.sqrt(len(places) or 1)
        return tuple((place, length) for place in sorted(places))

    def many(self, column: Any, unknown: Unknown) -> Cells:
        """The same of each row."""
        rows, codes, words = _listed(column)
        place = np.array([self.vocabulary.place(word) for word in words], np.int64)
        if (place < 0).any():
            pairs = np.unique(rows * len(words) + codes)
            ignored = int((place[pairs % len(words)] < 0).sum())
            if ignored:
                unknown[self.name] = unknown.get(self.name, 0) + ignored
        width = len(self.columns) + 1
        on = place[codes] if len(codes) else codes
        cells = np.unique(rows[on >= 0] * width + on[on >= 0])  # listed twice is still one
        row = cells // width
        sizes = np.bincount(row, minlength=len(column)).astype(np.float64)
        values = 1.0 / np.sqrt(sizes[row])
        if self.missing:
            nothing = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
            cells = np.concatenate([cells, nothing * width + len(self.columns) - 1])
            order = np.argsort(cells, kind="stable")
            cells, values = cells[order], np.append(values, np.ones(len(nothing)))[order]
        return cells // width, (cells % width).astype(np.int32), values

    def report(self) -> FieldReport:
        """How many categories have columns."""
        return self.vocabulary.report(self.name, self.kind, "1/√k for each of k", self.missing)


def _listed(column: Any) -> tuple[Any, Any, list[str]]:
    """Row and code of everything listed, and the words by their code."""
    values = column.flatten()
    sizes = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    rows = np.repeat(np.arange(len(column), dtype=np.int64), sizes)
    codes = values.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return rows, codes, values.dictionary.to_pylist()
