"""Named features into vectors of a fixed length: signed feature hashing."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from topstory.events.formats.vw.named_features import Named

REMEMBERED = 1 << 18  # names whose place is kept at hand: some 60 MB


class Hashing:
    """Maps names to d − 1 places with a sign, the constant 1 last (Weinberger et al. 2009).

    A feature's place and sign come from the 64-bit BLAKE2b hash of its name, the same on every
    machine and in every import. Features that share a place are added up; the signs make their
    inner products unbiased.

    >>> hashing = Hashing(4)
    >>> hashing.vectors([hashing.places([("age", 0.5), ("city=Rome", 1.0)]), ([], [])])
    array([[ 1. ,  0. , -0.5,  1. ],
           [ 0. ,  0. ,  0. ,  1. ]], dtype=float32)
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._places: dict[str, tuple[int, float]] = {}

    def places(self, features: Iterable[Named]) -> tuple[list[int], list[float]]:
        """Where the features go, and the values that are added there."""
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
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused later
            sums = np.bincount(row * d + place, weights=value, minlength=len(rows) * d)
            dense = sums.reshape(len(rows), d).astype(np.float32)
        dense[:, -1] = 1.0
        return dense

    def _find(self, name: str) -> tuple[int, float]:
        if len(self._places) >= REMEMBERED:
            self._places.clear()
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        number = int.from_bytes(digest, "little")
        sign = 1.0 if number >> 63 else -1.0
        found = self._places[name] = number % (1 << 63) % (self.dimensions - 1), sign
        return found
