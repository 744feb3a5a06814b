"""Named features as vectors: hashed to a fixed length, or arrays taken as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from topstory.events.formats.faults import NotAnEvent
from topstory.events.formats.pipeline.descriptions import ArticleDescription
from topstory.events.formats.pipeline.first_event import FirstEvent
from topstory.events.formats.pipeline.validation import BAD_USER, MAX_FLOAT32
from topstory.events.formats.vw.named_features import Named

MAX_KNOWN_NAMES = 1 << 18  # names whose place is remembered: some 60 MB
BAD_ACTION_FEATURE = "an action's feature is not a finite number"


class Encoding(Protocol):
    """Makes the vectors of users and articles; raises NotAnEvent if the features are invalid."""

    def user(self, features: Iterable[Named]) -> Any:
        """A user, in a form that `users` takes."""

    def users(self, rows: list[Any]) -> npt.NDArray[np.float32]:
        """(n, d) the vectors of many."""

    def article(self, features: Iterable[Named]) -> npt.NDArray[np.float64] | None:
        """(m,) an article's vector; None if it has no features."""

    def check(self, pool: Sequence[ArticleDescription]) -> None:
        """Raise NotAnEvent if the articles' vectors differ in length, or from earlier ones."""


class FeatureHasher:
    """Maps names to d − 1 places with a sign, the constant 1 last (Weinberger et al. 2009).

    A feature's place and sign come from the 64-bit BLAKE2b hash of its name, the same on every
    machine and in every import. Features that share a place are added up; the signs make their
    inner products unbiased.

    >>> hashing = FeatureHasher(4)
    >>> hashing.vectors([hashing.places([("age", 0.5), ("city=Rome", 1.0)]), ([], [])])
    array([[ 1. ,  0. , -0.5,  1. ],
           [ 0. ,  0. ,  0. ,  1. ]], dtype=float32)
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._places: dict[str, tuple[int, float]] = {}

    def places(self, features: Iterable[Named]) -> tuple[list[int], list[float]]:
        """The features' places, and the values to add there."""
        places: list[int] = []
        values: list[float] = []
        known = self._places
        for name, value in features:
            found = known.get(name)
            if found is None:
                found = self._find(name)
            places.append(found[0])
            values.append(value * found[1])
        return places, values

    def vectors(self, rows: list[tuple[list[int], list[float]]]) -> npt.NDArray[np.float32]:
        """One vector for each row of places and values."""
        d = self.dimensions
        counts = [len(places) for places, _ in rows]
        row = np.repeat(np.arange(len(rows)), counts)
        total = int(sum(counts))
        place = np.fromiter((p for places, _ in rows for p in places), np.int64, total)
        value = np.fromiter((v for _, values in rows for v in values), np.float64, total)
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is rejected later
            sums = np.bincount(row * d + place, weights=value, minlength=len(rows) * d)
            dense = sums.reshape(len(rows), d).astype(np.float32)
        dense[:, -1] = 1.0
        return dense

    def _find(self, name: str) -> tuple[int, float]:
        if len(self._places) >= MAX_KNOWN_NAMES:
            self._places.clear()
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        number = int.from_bytes(digest, "little")
        sign = 1.0 if number >> 63 else -1.0
        found = self._places[name] = number % (1 << 63) % (self.dimensions - 1), sign
        return found


class HashEncoding:
    """Users and articles hashed to the same number of dimensions.

    >>> HashEncoding(3).article([("topic=news", 1.0)])
    array([ 0., -1.,  1.])
    """

    def __init__(self, dimensions: int) -> None:
        self._hashing = FeatureHasher(dimensions)

    def user(self, features: Iterable[Named]) -> Any:
        """The places and values of its features."""
        places, values = self._hashing.places(features)
        # The sum is quick and catches nan too; overflow of the sums is caught by validation.
        if not sum(map(abs, values)) <= MAX_FLOAT32 and not all(
            abs(v) <= MAX_FLOAT32 for v in values
        ):
            raise NotAnEvent(BAD_USER)
        return places, values

    def users(self, rows: list[Any]) -> npt.NDArray[np.float32]:
        """(n, d)."""
        return self._hashing.vectors(rows)

    def article(self, features: Iterable[Named]) -> npt.NDArray[np.float64]:
        """(d,)."""
        row = self._hashing.vectors([self._hashing.places(features)])[0]
        if not np.isfinite(row).all():
            raise NotAnEvent(BAD_ACTION_FEATURE)
        return np.asarray(row, np.float64)

    def check(self, pool: Sequence[ArticleDescription]) -> None:
        """All are of the same length."""


class ArrayEncoding:
    """The numbers in arrays, in order; all other features are ignored.

    >>> encoding = ArrayEncoding(FirstEvent())
    >>> encoding.article([("id=a", 1.0), ("article[0]", 0.3), ("article[1]", 1.0)])
    array([0.3, 1. ])
    """

    def __init__(self, first_event: FirstEvent) -> None:
        self._first_event = first_event

    def user(self, features: Iterable[Named]) -> list[float]:
        """Its numbers."""
        row = _numbers(features)
        if not row:
            raise NotAnEvent("the shared features hold no array of numbers")
        if not all(abs(value) <= MAX_FLOAT32 for value in row):
            raise NotAnEvent(BAD_USER)
        if len(row) != self._first_event.setdefault("user", len(row)):
            raise NotAnEvent("the user has another number of features than the first one")
        return row

    def users(self, rows: list[Any]) -> npt.NDArray[np.float32]:
        """(n, d)."""
        width = len(rows[0]) if rows else 1
        return np.array(rows, np.float64).reshape(len(rows), width).astype(np.float32)

    def article(self, features: Iterable[Named]) -> npt.NDArray[np.float64] | None:
        """(m,), or None if it holds no array."""
        row = _numbers(features)
        if not np.isfinite(row).all():
            raise NotAnEvent(BAD_ACTION_FEATURE)
        return np.array(row, np.float64) if row else None

    def check(self, pool: Sequence[ArticleDescription]) -> None:
        """All have as many features as the first."""
        for action in pool:
            width = 0 if action.features is None else len(action.features)
            if width != self._first_event.setdefault("action", width):
                raise NotAnEvent("the action has another number of features than the first one")


def _numbers(features: Iterable[Named]) -> list[float]:
    return [value for name, value in features if name[-1:] == "]" and "=" not in name]
