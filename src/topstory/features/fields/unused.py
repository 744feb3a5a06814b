"""A field that profiles may have, but that says nothing."""

from __future__ import annotations

from typing import Any

import msgspec

from topstory.events.columns.profiles import Kind
from topstory.features.fields.field import Cell, Cells, FieldReport, Unknown, no_cells


class UnusedField(msgspec.Struct, frozen=True, tag="unused", tag_field="encoding"):
    """Accepted, and ignored.

    >>> UnusedField("site", "category", "the same in all profiles").one("main", {})
    ()
    """

    name: str
    kind: Kind
    why: str

    @property
    def columns(self) -> tuple[str, ...]:
        """None."""
        return ()

    def one(self, value: Any, unknown: Unknown) -> tuple[Cell, ...]:
        """No cells."""
        return ()

    def many(self, column: Any, unknown: Unknown) -> Cells:
        """No cells."""
        return no_cells()

    def report(self) -> FieldReport:
        """Why it is not used."""
        many = self.kind == "categories"
        return FieldReport(self.name, many, 0.0, 0, 0, self.kind, "not used", self.why)
