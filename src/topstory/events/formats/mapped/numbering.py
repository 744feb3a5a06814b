"""Numbers for keys, in order of appearance: who came before, in how many bytes it takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from topstory.kernels.parsing.numbering import FREE, move_keys, number_keys

Hashes = npt.NDArray[np.uint64]


class Numbered(NamedTuple):
    """The number of each key, and the rows where those came first that were new."""

    numbers: npt.NDArray[np.int32]  # (n,)
    fresh: npt.NDArray[np.int64]  # ascending


class Numbering:
    """Numbers distinct keys of 128 bits in order of appearance.

    >>> known = Numbering()
    >>> keys = np.array([7, 5, 7], np.uint64)
    >>> known(keys, keys)
    Numbered(numbers=array([0, 1, 0], dtype=int32), fresh=array([0, 1]))
    >>> known(keys + np.uint64(2), keys + np.uint64(2)).numbers, len(known)
    (array([2, 0, 2], dtype=int32), 3)
    """

    def __init__(self) -> None:
        self._count = 0
        self._room(1024)

    def __len__(self) -> int:
        return self._count

    def __call__(self, first: Hashes, second: Hashes) -> Numbered:
        """The number of each key; those that are new are numbered on."""
        if 2 * (self._count + len(first)) > len(self._numbers):
            self._grow(2 * (self._count + len(first)))
        found, fresh = np.empty(len(first), np.int32), np.empty(len(first), np.int64)
        table = self._ones, self._twos, self._numbers
        before = self._count
        self._count = number_keys(first, second, *table, before, found, fresh)
        return Numbered(found, fresh[: self._count - before])

    def _room(self, slots: int) -> None:
        self._ones, self._twos = np.empty(slots, np.uint64), np.empty(slots, np.uint64)
        self._numbers = np.full(slots, FREE, np.int32)

    def _grow(self, least: int) -> None:
        old = self._ones, self._twos, self._numbers
        self._room(1 << least.bit_length())
        move_keys(*old, self._ones, self._twos, self._numbers)
