"""What all encoded fields have in common."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from topstory.events.columns.profiles import Kind

Unknown: TypeAlias = MutableMapping[str, int]  # by field: values that the model does not know
Cell: TypeAlias = tuple[int, float]  # a column of the field, and the number in it
# The same of many rows: rows in ascending order, columns and numbers.
Cells: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float64]]

MISSING, OTHER = "(missing)", "(other)"


class FieldReport(msgspec.Struct, frozen=True):
    """How a field of the raw profiles is used."""

    field: str
    many: bool  # whether it holds any number of categories
    threshold: float  # the least support
    kept: int  # categories, or numbers that it becomes
    dropped: int
    kind: str = ""  # "category", "categories", "number", "boolean", "date" or "text"
    encoding: str = ""  # how its values become numbers, in words
    note: str = ""  # what to know of it: why it is not used, what was done with missing values


class Field(Protocol):
    """A field, fitted. Its numbers are a block whose length is at most 1.

    A profile's cells are to the bit those of its row of a table.
    """

    @property
    def name(self) -> str:
        """Of the field."""
        ...

    @property
    def kind(self) -> Kind:
        """Of its values."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the numbers that it becomes."""
        ...

    def one(self, value: Any, unknown: Unknown) -> Sequence[Cell]:
        """The cells of a value, columns ascending; None is missing. ValueError for another kind."""
        ...

    def many(self, column: Any, unknown: Unknown) -> Cells:
        """The cells of a column of a log's own form."""
        ...

    def report(self) -> FieldReport:
        """How it is used."""
        ...


def wrong(name: str, wanted: str, value: Any) -> ValueError:
    """The error for a value of another kind.

    >>> wrong("age", "a number", "old")
    ValueError("profile: 'age' must be a number, got 'old'")
    """
    shown = repr(value)
    return ValueError(
        f"profile: {name!r} must be {wanted}, got {shown if len(shown) <= 80 else shown[:80] + '…'}"
    )


def no_cells() -> Cells:
    """Of no rows."""
    return np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0)
