"""A number or a date, standardised."""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec
import numpy as np
from sklearn.preprocessing import StandardScaler

from topstory.features.fields.field import MISSING, Cell, Cells, FieldReport, Unknown
from topstory.features.fields.measures import measure, measures
from topstory.kernels.compilation import Floats

DEVIATIONS = 2.0  # so many standard deviations are 1, as a category that is on is
SKEWED = 2.0  # a distribution with a longer tail than this is taken by its logarithm


class ScaledField(msgspec.Struct, frozen=True, tag="scaled", tag_field="encoding"):
    """(value − mean)/(2 standard deviations), from −1 to 1 at most.

    A number that is never negative and has a long tail (skewness above 2: money, counts) is taken
    by log(1 + value). A missing value is the mean, and 1 in a column of its own if some were.

    >>> field = ScaledField("age", "number", mean=40.0, scale=30.0, logarithm=False, missing=True)
    >>> field.one(55, {}), field.one(250, {}), field.one(None, {})
    (((0, 0.5),), ((0, 1.0),), ((0, 0.0), (1, 1.0)))
    """

    name: str
    kind: Literal["number", "date"]
    mean: float
    scale: float
    logarithm: bool
    missing: bool

    @classmethod
    def fit(cls, name: str, kind: Literal["number", "date"], values: Floats) -> ScaledField:
        """Learn mean and deviation by scikit-learn's StandardScaler; nan is missing."""
        there = values[~np.isnan(values)]
        logarithm = kind == "number" and bool(there.min() >= 0) and _skewness(there) > SKEWED
        if logarithm:
            there = _log1p(there)
        scaler = StandardScaler().fit(there.reshape(-1, 1))
        scale = DEVIATIONS * float(scaler.scale_[0])
        return cls(name, kind, float(scaler.mean_[0]), scale, logarithm, len(there) < len(values))

    @property
    def columns(self) -> tuple[str, ...]:
        """The number, and whether it is missing."""
        return ("", *(MISSING,) * self.missing)

    def one(self, value: Any, unknown: Unknown) -> tuple[Cell, ...]:
        """The number's cell."""
        number = measure(self.name, self.kind, value)
        if number is None:
            return ((0, 0.0), (1, 1.0)) if self.missing else ((0, 0.0),)
        if self.logarithm:
            number = math.log1p(max(number, 0.0))
        return ((0, min(1.0, max(-1.0, (number - self.mean) / self.scale))),)

    def many(self, column: Any, unknown: Unknown) -> Cells:
        """The same of each row."""
        values = measures(self.kind, column)
        absent = np.isnan(values)
        if self.logarithm:
            values = _log1p(np.maximum(values, 0.0))
        scaled = np.clip((values - self.mean) / self.scale, -1.0, 1.0)
        scaled[absent] = 0.0
        rows, columns = np.arange(len(scaled)), np.zeros(len(scaled), np.int32)
        if not self.missing:
            return rows, columns, scaled
        extra = np.flatnonzero(absent)
        order = np.argsort(np.concatenate([rows, extra]), kind="stable")
        return (
            np.concatenate([rows, extra])[order],
            np.concatenate([columns, np.ones(len(extra), np.int32)])[order],
            np.concatenate([scaled, np.ones(len(extra))])[order],
        )

    def report(self) -> FieldReport:
        """How it is scaled."""
        how = "logarithm, standardised" if self.logarithm else "standardised"
        note = "a missing value is the mean, and has a column of its own" if self.missing else ""
        return FieldReport(self.name, False, 0.0, 1, 0, self.kind, how, note)


def _skewness(values: Floats) -> float:
    centred = values - values.mean()
    deviation = float(np.sqrt((centred**2).mean()))
    return float((centred**3).mean()) / deviation**3 if deviation > 0 else 0.0


def _log1p(values: Floats) -> Floats:
    # Not numpy's: its vectorised logarithm may differ from the scalar one in the last bit.
    return np.fromiter(map(math.log1p, values.tolist()), np.float64, len(values))
