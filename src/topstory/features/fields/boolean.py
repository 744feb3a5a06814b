"""A boolean."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np

from topstory.features.fields.field import MISSING, Cell, Cells, FieldReport, Unknown
from topstory.features.fields.measures import measure, measures


class BooleanField(msgspec.Struct, frozen=True, tag="boolean", tag_field="encoding"):
    """1 if true. Missing has a column of its own, if some were.

    >>> field = BooleanField("is_subscriber", missing=True)
    >>> field.one(True, {}), field.one(False, {}), field.one(None, {})
    (((0, 1.0),), (), ((1, 1.0),))
    """

    name: str
    missing: bool
    kind: Literal["boolean"] = "boolean"

    @property
    def columns(self) -> tuple[str, ...]:
        """Whether it is true, and whether it is missing."""
        return ("true", *(MISSING,) * self.missing)

    def one(self, value: Any, unknown: Unknown) -> tuple[Cell, ...]:
        """One cell, or none."""
        number = measure(self.name, "boolean", value)
        if number is None:
            return ((1, 1.0),) if self.missing else ()
        return ((0, 1.0),) if number else ()

    def many(self, column: Any, unknown: Unknown) -> Cells:
        """The same of each row."""
        values = measures("boolean", column)
        absent = np.isnan(values)
        rows = np.flatnonzero((values == 1.0) | (absent & self.missing))
        return rows, absent[rows].astype(np.int32), np.ones(len(rows))

    def report(self) -> FieldReport:
        """One number."""
        note = "missing has a column of its own" if self.missing else ""
        return FieldReport(self.name, False, 0.0, 1, 0, self.kind, "1 if true", note)
