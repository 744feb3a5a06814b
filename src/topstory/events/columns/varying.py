"""Numbers of contexts that differ between the articles of a pool, such as an article's age."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import ArrayRecord

Sizes = npt.NDArray[np.int64]  # (n,) how many articles each event's pool has


@dataclass(frozen=True, eq=False)
class VaryingNumbers(ArrayRecord):
    """For each event, and each article of its pool in the pool's order, the same k numbers.

    They are the last of a context before the constant. A context of the log has those of the
    article that was shown.

    >>> numbers = VaryingNumbers(np.array([[0.1], [0.2], [0.3]], np.float32), np.array([0, 2]))
    >>> numbers[1:].packed(np.array([1])).values
    array([[0.3]], dtype=float32)
    """

    values: npt.NDArray[np.float32]  # (pairs, k)
    starts: npt.NDArray[np.int64]  # (n,) the row of each event's first article

    @property
    def width(self) -> int:
        """K."""
        return int(self.values.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of both columns."""
        return self.values.nbytes + self.starts.nbytes

    def __getitem__(self, rows: slice | npt.NDArray[np.intp]) -> VaryingNumbers:
        return VaryingNumbers(self.values, self.starts[rows])

    def packed(self, sizes: Sizes) -> VaryingNumbers:
        """The rows of these events alone, end to end."""
        starts = starts_of(sizes)
        total = int(sizes.sum())
        if len(self.starts) and (self.starts - self.starts[0] == starts).all():
            first = int(self.starts[0])
            return VaryingNumbers(self.values[first : first + total], starts)
        rows = np.repeat(self.starts - starts, sizes) + np.arange(total)
        return VaryingNumbers(self.values[rows], starts)


def starts_of(sizes: Sizes) -> npt.NDArray[np.int64]:
    """(n,) where each event's rows begin if all are end to end."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))[:-1]


def join_varying(parts: Sequence[tuple[VaryingNumbers, Sizes]]) -> VaryingNumbers:
    """One after the other; each with the sizes of its events' pools."""
    packed = [part.packed(sizes) for part, sizes in parts]
    if len({part.width for part in packed}) > 1:
        raise ValueError("the logs' contexts differ in how many of their numbers vary by article")
    sizes = np.concatenate([each for _, each in parts])
    return VaryingNumbers(np.concatenate([part.values for part in packed]), starts_of(sizes))
