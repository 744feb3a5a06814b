"""Contexts and payoffs to the last bit, in a log that has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import ArrayRecord, Floats


@dataclass(frozen=True, eq=False)
class ExactValues(ArrayRecord):
    """What a log keeps as float32, as the float64 that it was.

    >>> exact = ExactValues(np.array([[0.1, 1.0], [0.2, 1.0]]), np.array([0.3, 0.0]))
    >>> exact[1:].users
    array([[0.2, 1. ]])
    """

    users: Floats  # (n, d)
    payoff: Floats  # (n,)

    def __getitem__(self, rows: slice | npt.NDArray[np.intp]) -> ExactValues:
        return ExactValues(self.users[rows], self.payoff[rows])

    @property
    def nbytes(self) -> int:
        """Bytes of both columns."""
        return self.users.nbytes + self.payoff.nbytes


def join_exact(parts: Sequence[ExactValues]) -> ExactValues:
    """One after the other."""
    return ExactValues(
        np.concatenate([part.users for part in parts]),
        np.concatenate([part.payoff for part in parts]),
    )
