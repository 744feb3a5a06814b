"""A field with one category in each profile."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import msgspec
import numpy as np

from topstory.features.fields.field import MISSING, Cell, Cells, FieldReport, Unknown, wrong
from topstory.features.fields.vocabulary import Vocabulary, word_counts


class CategoryField(msgspec.Struct, frozen=True, dict=True, tag="one-hot", tag_field="encoding"):
    """One-hot: 1 in the category's column. Missing is a category of its own, if some were.

    >>> field = CategoryField("country", Vocabulary(("de", "fr"), 0, 0.0, 0), missing=True)
    >>> field.columns, field.one("fr", {}), field.one(None, {})
    (('de', 'fr', '(missing)'), ((1, 1.0),), ((2, 1.0),))
    """

    name: str
    vocabulary: Vocabulary
    missing: bool  # whether there is a column for missing values
    kind: Literal["category"] = "category"

    @classmethod
    def fit(cls, name: str, column: Any, support: float) -> CategoryField:
        """Learn which categories have support."""
        codes = column.indices.drop_null().to_numpy(zero_copy_only=False)
        counts = word_counts(codes, column.dictionary.to_pylist())
        return cls(name, Vocabulary.of(counts, len(column), support), column.null_count > 0)

    @property
    def columns(self) -> tuple[str, ...]:
        """A column for each category."""
        return (*self.vocabulary.columns, *(MISSING,) * self.missing)

    @cached_property
    def _known(self) -> dict[Any, tuple[Cell, ...]]:
        words = {word: ((place, 1.0),) for place, word in enumerate(self.vocabulary.words)}
        nothing = ((len(self.columns) - 1, 1.0),) if self.missing else ()
        return {**words, None: nothing}

    def one(self, value: Any, unknown: Unknown) -> tuple[Cell, ...]:
        """One cell, or none."""
        if not (value is None or isinstance(value, str)):
            raise wrong(self.name, "one string", value)
        found = self._known.get(value)
        if found is not None:
            return found
        place = self.vocabulary.place(str(value))
        if place < 0:
            unknown[self.name] = unknown.get(self.name, 0) + 1
            return ()
        return ((place, 1.0),)

    def many(self, column: Any, unknown: Unknown) -> Cells:
        """One cell in each row, or none."""
        place = [self.vocabulary.place(word) for word in column.dictionary.to_pylist()]
        last = len(self.columns) - 1 if self.missing else -2
        code = np.array([*place, last], np.int32)
        found = code[column.indices.fill_null(len(place)).to_numpy(zero_copy_only=False)]
        ignored = int((found == -1).sum())
        if ignored:
            unknown[self.name] = unknown.get(self.name, 0) + ignored
        rows = np.flatnonzero(found >= 0)
        return rows, found[rows], np.ones(len(rows))

    def report(self) -> FieldReport:
        """How many categories have columns."""
        return self.vocabulary.report(self.name, self.kind, "one-hot", self.missing)
