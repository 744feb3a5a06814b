"""A number or a date as smooth bumps, so that a linear model can follow a curve."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import Any, Literal

import msgspec
import numpy as np

from topstory.features.fields.field import MISSING, Cell, Cells, FieldReport, Unknown
from topstory.features.fields.measures import measure, measures
from topstory.kernels.compilation import Floats

KNOTS, DEGREE = 4, 2  # five numbers, as five ranges are
MAX_SAMPLE = 200_000  # values to learn the knots from


class SplineField(msgspec.Struct, frozen=True, tag="splines", tag_field="encoding", dict=True):
    """B-splines: each value is between a few neighbouring bumps, whose numbers sum to 1.

    Quantiles of the values are the knots; outside them the curve stays as it is at the end. The
    numbers are at most 1 long together, as those of one range out of five are.

    >>> field = SplineField("age", "number", knots=(20.0, 40.0, 60.0), missing=True)
    >>> len(field.columns), [column for column, _ in field.one(20, {})], field.one(None, {})
    (5, [0, 1], ((4, 1.0),))
    """

    name: str
    kind: Literal["number", "date"]
    knots: tuple[float, ...]  # ascending
    missing: bool

    @classmethod
    def fit(cls, name: str, kind: Literal["number", "date"], values: Floats) -> SplineField:
        """The knots of scikit-learn's SplineTransformer, but no two alike; nan is missing."""
        there = values[~np.isnan(values)]
        some = there[:: -(-len(there) // MAX_SAMPLE)]
        places = np.linspace(0, 100, KNOTS)
        knots = np.unique(np.percentile(some, places))
        if len(knots) < 2:  # nearly all are the same
            knots = np.array([there.min(), there.max()])
        return cls(name, kind, tuple(knots.tolist()), len(there) < len(values))

    @cached_property
    def _extended(self) -> list[float]:
        """The knots, and two more on each side, as far apart as the last ones are."""
        knots = list(self.knots)
        before, after = knots[1] - knots[0], knots[-1] - knots[-2]
        low = [knots[0] - before * step for step in range(DEGREE, 0, -1)]
        return [*low, *knots, *(knots[-1] + after * step for step in range(1, DEGREE + 1))]

    @property
    def _size(self) -> int:
        return len(self.knots) + DEGREE - 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The bumps."""
        bumps = tuple(f"bump {number}" for number in range(1, self._size + 1))
        return (*bumps, *(MISSING,) * self.missing)

    def one(self, value: Any, unknown: Unknown) -> tuple[Cell, ...]:
        """The cells of the bumps that the value is in."""
        number = measure(self.name, self.kind, value)
        if number is None:
            return ((self._size, 1.0),) if self.missing else ()
        number = min(max(number, self.knots[0]), self.knots[-1])
        place = min(bisect_right(self.knots, number) - 1, len(self.knots) - 2)
        near = self._extended[place + 1 : place + 5]
        return tuple((place + i, each) for i, each in enumerate(_bumps(number, *near)) if each)

    def many(self, column: Any, unknown: Unknown) -> Cells:
        """The same of each row."""
        values = measures(self.kind, column)
        absent = np.isnan(values)
        table = np.zeros((len(values), len(self.columns)))
        there = np.clip(values[~absent], self.knots[0], self.knots[-1])
        place = np.searchsorted(np.array(self.knots), there, side="right") - 1
        place = np.minimum(place, len(self.knots) - 2)
        knots, rows = np.array(self._extended), np.flatnonzero(~absent)
        near = [knots[place + 1 + i] for i in range(4)]
        for i, each in enumerate(_bumps(there, *near)):
            table[rows, place + i] = each
        if self.missing:
            table[absent, -1] = 1.0
        rows, columns = np.nonzero(table)
        return rows, columns.astype(np.int32), table[rows, columns]

    def report(self) -> FieldReport:
        """How many bumps there are."""
        note = "missing has a column of its own" if self.missing else ""
        return FieldReport(
            self.name, False, 0.0, self._size, 0, self.kind, f"{self._size} splines", note
        )


def _bumps(x: Any, a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any, Any]:
    """The three quadratic B-splines that are not 0 at b <= x <= c, of knots a < b < c < d.

    Of one number or of many: the same operations, hence the same bits.
    """
    falls, rises = (c - x) / (c - b), (x - b) / (c - b)
    first = (c - x) / (c - a) * falls
    last = (x - b) / (d - b) * rises
    return first, (x - a) / (c - a) * falls + (d - x) / (d - b) * rises, last
