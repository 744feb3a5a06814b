"""What a policy is to learn, in order: many halves of trials by one call of the kernel."""

from __future__ import annotations

import numpy as np

from topstory.kernels.contexts import Dense
from topstory.kernels.model import learn_halves
from topstory.models import Model

_SHOWN = float("nan")  # in the place of a payoff


class Lessons:
    """Halves of trials; contexts are bytes as in the journal."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._room: Dense | None = None
        self._slots: list[int] = []
        self._users: list[bytes] = []
        self._payoffs: list[float] = []

    def __len__(self) -> int:
        return len(self._slots)

    def shown(self, slot: int, user: bytes) -> None:
        """The article in this slot was shown."""
        self.paid(slot, user, _SHOWN)

    def paid(self, slot: int, user: bytes, payoff: float) -> None:
        """It paid."""
        self._slots.append(slot)
        self._users.append(user)
        self._payoffs.append(payoff)

    def teach(self, model: Model) -> None:
        """All of them, to the bit as one by one; none is left."""
        if self._room is None:
            self._room = model.room(self._dimension)
        users = np.frombuffer(b"".join(self._users), "<f8").reshape(-1, self._dimension)
        learn_halves(
            model.state,
            np.array(self._slots, np.int32),
            users,
            model.segments(users, 0, len(users)),
            self._room,
            np.array(self._payoffs),
        )
        self._slots, self._users, self._payoffs = [], [], []
