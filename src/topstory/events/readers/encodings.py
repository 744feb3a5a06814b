"""How named features become vectors: hashed to a fixed length, or taken as they stand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from topstory.events.readers.hashing import Hashing
from topstory.events.readers.named_features import Named


class Unfit(ValueError):
    """Features that cannot be a vector; the words say why."""


class Encoding(Protocol):
    """Makes the vectors of users and articles."""

    def user(self, features: Iterable[Named]) -> Any:
        """A user, in a form that `users` takes; raises Unfit."""

    def users(self, rows: list[Any]) -> npt.NDArray[np.float32]:
        """(n, d) the vectors of many."""

    def article(self, features: Iterable[Named]) -> npt.NDArray[np.float64] | None:
        """(m,) an article's vector; None if articles have no features; raises Unfit."""


class HashEncoding:
    """Users and articles hashed to the same number of dimensions.

    >>> HashEncoding(3).article([("topic=news", 1.0)])
    array([ 0., -1.,  1.])
    """

    def __init__(self, dimensions: int) -> None:
        self._hashing = Hashing(dimensions)

    def user(self, features: Iterable[Named]) -> Any:
        """Where its features go."""
        return self._hashing.places(features)

    def users(self, rows: list[Any]) -> npt.NDArray[np.float32]:
        """(n, d)."""
        return self._hashing.vectors(rows)

    def article(self, features: Iterable[Named]) -> npt.NDArray[np.float64]:
        """(d,)."""
        row = self._hashing.vectors([self._hashing.places(features)])[0]
        if not np.isfinite(row).all():
            raise Unfit("an action's feature is not a finite number")
        return np.asarray(row, np.float64)


class ArrayEncoding:
    """The numbers in arrays, in order and as they stand; all other features are left out.

    >>> ArrayEncoding().article([("id=a", 1.0), ("article[0]", 0.3), ("article[1]", 1.0)])
    array([0.3, 1. ])
    """

    def __init__(self) -> None:
        self._width: int | None = None
        self._article_width: int | None = None

    def user(self, features: Iterable[Named]) -> list[float]:
        """Its numbers."""
        row = _numbers(features)
        self._width = self._width or len(row)
        if not row:
            raise Unfit("the shared features hold no array of numbers")
        if len(row) != self._width:
            raise Unfit("the user has another number of features than the first one")
        return row

    def users(self, rows: list[Any]) -> npt.NDArray[np.float32]:
        """(n, d)."""
        with np.errstate(over="ignore"):
            return np.array(rows, np.float64).reshape(len(rows), -1).astype(np.float32)

    def article(self, features: Iterable[Named]) -> npt.NDArray[np.float64] | None:
        """(m,), or None if there are no arrays in any article."""
        row = _numbers(features)
        if self._article_width is None:
            self._article_width = len(row)
        if len(row) != self._article_width:
            raise Unfit("the action has another number of features than the first one")
        if not np.isfinite(row).all():
            raise Unfit("an action's feature is not a finite number")
        return np.array(row, np.float64) if row else None


def _numbers(features: Iterable[Named]) -> list[float]:
    return [value for name, value in features if name.endswith("]")]
