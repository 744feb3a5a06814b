"""A number or a date by the range that it lies in."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from itertools import pairwise
from typing import Any, Literal

import msgspec
import numpy as np
from sklearn.preprocessing import KBinsDiscretizer

from topstory.features.fields.field import MISSING, Cell, Cells, FieldReport, Unknown
from topstory.features.fields.measures import measure, measures
from topstory.kernels.compilation import Floats

BINS = 5
MAX_SAMPLE = 200_000  # values to learn the ranges from


class BinnedField(msgspec.Struct, frozen=True, tag="bins", tag_field="encoding"):
    """One-hot over ranges with about as many profiles each: the paper's ten ages, for any number.

    >>> field = BinnedField("age", "number", edges=(25.0, 40.0), missing=True)
    >>> field.columns
    ('below 25', '25 to 40', 'from 40', '(missing)')
    >>> field.one(25, {}), field.one(None, {})
    (((1, 1.0),), ((3, 1.0),))
    """

    name: str
    kind: Literal["number", "date"]
    edges: tuple[float, ...]  # between the bins, ascending
    missing: bool

    @classmethod
    def fit(cls, name: str, kind: Literal["number", "date"], values: Floats) -> BinnedField:
        """Learn the ranges by scikit-learn's KBinsDiscretizer; nan is missing."""
        there = values[~np.isnan(values)]
        some = there[:: -(-len(there) // MAX_SAMPLE)].reshape(-1, 1)
        binner = KBinsDiscretizer(
            BINS,
            encode="ordinal",
            strategy="quantile",
            quantile_method="averaged_inverted_cdf",
            subsample=None,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few distinct values make fewer bins
            binner.fit(some)
        inner = binner.bin_edges_[0][1:-1]
        distinct = np.unique(some)
        if len(distinct) <= BINS:  # a range for each value
            inner = distinct[1:]
        return cls(name, kind, tuple(inner.tolist()), len(there) < len(values))

    @property
    def columns(self) -> tuple[str, ...]:
        """The ranges."""
        named = [self._named(edge) for edge in self.edges]
        if not named:
            ranges = ["any"]
        else:
            between = [f"{low} to {high}" for low, high in pairwise(named)]
            ranges = [f"below {named[0]}", *between, f"from {named[-1]}"]
        return (*ranges, *(MISSING,) * self.missing)

    def one(self, value: Any, unknown: Unknown) -> tuple[Cell, ...]:
        """The cell of the range."""
        number = measure(self.name, self.kind, value)
        if number is None:
            return ((len(self.edges) + 1, 1.0),) if self.missing else ()
        return ((bisect_right(self.edges, number), 1.0),)

    def many(self, column: Any, unknown: Unknown) -> Cells:
        """The same of each row."""
        values = measures(self.kind, column)
        absent = np.isnan(values)
        found = np.searchsorted(np.array(self.edges), values, side="right").astype(np.int32)
        found[absent] = len(self.edges) + 1 if self.missing else -1
        rows = np.flatnonzero(found >= 0)
        return rows, found[rows], np.ones(len(rows))

    def report(self) -> FieldReport:
        """How many ranges there are."""
        note = "missing is a range of its own" if self.missing else ""
        size = len(self.edges) + 1
        return FieldReport(self.name, False, 0.0, size, 0, self.kind, f"{size} ranges", note)

    def _named(self, edge: float) -> str:
        return str(np.datetime64(round(edge), "D")) if self.kind == "date" else f"{edge:g}"
