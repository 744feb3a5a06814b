"""Records of read-only arrays, and the blocks in which long arrays are worked through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]  # as in kernels.compilation, which imports numba

# Checks and lookups go block by block, so that they need only a few megabytes of scratch space,
# however long the log is.
BLOCK_ROWS = 1 << 20


class ArrayRecord:
    """Base class of frozen dataclasses that hold arrays: their arrays are read-only.

    The record holds read-only views, so the caller's own arrays stay writeable. Unpickling goes
    through the constructor, because numpy does not pickle the flag.
    """

    def __post_init__(self) -> None:
        # Ignored: only subclasses are dataclasses, which fields() can't know.
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray) and value.flags.writeable:
                view = value.view()
                view.flags.writeable = False
                object.__setattr__(self, field.name, view)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        # Ignored: as above.
        values = tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return type(self), values


def blocks(length: int, size: int = BLOCK_ROWS) -> Iterator[tuple[int, int]]:
    """Row ranges that split `length` rows into blocks.

    >>> list(blocks(5, size=2))
    [(0, 2), (2, 4), (4, 5)]
    """
    for start in range(0, length, size):
        yield start, min(start + size, length)
