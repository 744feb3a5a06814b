"""How named features become vectors: hashed to a fixed length, or taken as they stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from topstory.events.formats.faults import NoEvent
from topstory.events.formats.pipeline.first_event import Shape
from topstory.events.formats.pipeline.validation import FLOAT32, USER
from topstory.events.formats.vw.actions import Action
from topstory.events.formats.vw.hashing import Hashing
from topstory.events.formats.vw.named_features import Named

UNFIT = "an action's feature is not a finite number"


class Encoding(Protocol):
    """Makes the vectors of users and articles; raises NoEvent where there can be none."""

    def user(self, features: Iterable[Named]) -> Any:
        """A user, in a form that `users` takes."""

    def users(self, rows: list[Any]) -> npt.NDArray[np.float32]:
        """(n, d) the vectors of many."""

    def article(self, features: Iterable[Named]) -> npt.NDArray[np.float64] | None:
        """(m,) an article's vector; None if it has no features."""

    def check(self, pool: Sequence[Action]) -> None:
        """Whether the articles' vectors go together, and with those before."""


class HashEncoding:
    """Users and articles hashed to the same number of dimensions.

    >>> HashEncoding(3).article([("topic=news", 1.0)])
    array([ 0., -1.,  1.])
    """

    def __init__(self, dimensions: int) -> None:
        self._hashing = Hashing(dimensions)

    def user(self, features: Iterable[Named]) -> Any:
        """Where its features go."""
        places, values = self._hashing.places(features)
        # The sum is quick, and tells of nan too; what overflows only when added up is sifted out.
        if not sum(map(abs, values)) <= FLOAT32 and not all(abs(v) <= FLOAT32 for v in values):
            raise NoEvent(USER)
        return places, values

    def users(self, rows: list[Any]) -> npt.NDArray[np.float32]:
        """(n, d)."""
        return self._hashing.vectors(rows)

    def article(self, features: Iterable[Named]) -> npt.NDArray[np.float64]:
        """(d,)."""
        row = self._hashing.vectors([self._hashing.places(features)])[0]
        if not np.isfinite(row).all():
            raise NoEvent(UNFIT)
        return np.asarray(row, np.float64)

    def check(self, pool: Sequence[Action]) -> None:
        """All are of the same length."""


class ArrayEncoding:
    """The numbers in arrays, in order and as they stand; all other features are left out.

    >>> encoding = ArrayEncoding(Shape())
    >>> encoding.article([("id=a", 1.0), ("article[0]", 0.3), ("article[1]", 1.0)])
    array([0.3, 1. ])
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def user(self, features: Iterable[Named]) -> list[float]:
        """Its numbers."""
        row = _numbers(features)
        if not row:
            raise NoEvent("the shared features hold no array of numbers")
        if not all(abs(value) <= FLOAT32 for value in row):
            raise NoEvent(USER)
        if len(row) != self._shape.first("user", len(row)):
            raise NoEvent("the user has another number of features than the first one")
        return row

    def users(self, rows: list[Any]) -> npt.NDArray[np.float32]:
        """(n, d)."""
        width = len(rows[0]) if rows else 1
        return np.array(rows, np.float64).reshape(len(rows), width).astype(np.float32)

    def article(self, features: Iterable[Named]) -> npt.NDArray[np.float64] | None:
        """(m,), or None if it holds no array."""
        row = _numbers(features)
        if not np.isfinite(row).all():
            raise NoEvent(UNFIT)
        return np.array(row, np.float64) if row else None

    def check(self, pool: Sequence[Action]) -> None:
        """All have as many features as the first."""
        for action in pool:
            width = 0 if action.features is None else len(action.features)
            if width != self._shape.first("action", width):
                raise NoEvent("the action has another number of features than the first one")


def _numbers(features: Iterable[Named]) -> list[float]:
    return [value for name, value in features if name[-1:] == "]" and "=" not in name]
