"""Updates that a policy is to learn, in order: many halves of trials by one kernel call."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from topstory.kernels.contexts import Dense
from topstory.kernels.models.model import learn_halves
from topstory.models import Model
from topstory.models.model import ONE_SEGMENT

SHOWN = float("nan")  # in the place of a payoff: the article was shown


class UpdateBatch:
    """Halves of trials; contexts are bytes as in the journal."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._room: Dense | None = None
        self.slots: list[int] = []
        self._users: list[bytes] = []
        self._payoffs: list[float] = []

    def add(self, slot: int, user: bytes, payoff: float, weight: float = 1) -> None:
        """The article in this slot paid this much, or was `SHOWN`.

        With weight w, A grows by w·x·xᵀ and b by w·r·x: as for √w·x and √w·r.
        """
        if weight != 1:
            root = sqrt(weight)
            user, payoff = (np.frombuffer(user, "<f8") * root).tobytes(), payoff * root
        self.slots.append(slot)
        self._users.append(user)
        self._payoffs.append(payoff)

    def apply(self, model: Model, renewing: Callable[[], None]) -> None:
        """Teach them to the model, to the bit as one by one, and empty the batch.

        `renewing` is called before that changes articles which are not in the batch.
        """
        if self._room is None:
            self._room = model.room(self._dimension)
        users = np.frombuffer(b"".join(self._users), "<f8").reshape(-1, self._dimension)
        slots, payoffs = np.array(self.slots, np.int32), np.array(self._payoffs)
        segments = model.segments(users, 0, len(users)) if model.segmented else ONE_SEGMENT
        room, done = self._room, 0
        while True:
            rest = (slots[done:], users[done:], segments[done:], room, payoffs[done:])
            done += learn_halves(model.kernel_state, *rest)
            if done == len(slots):
                break
            renewing()
            model.renew()  # the next one needs another prior, or form of the state
        self.slots, self._users, self._payoffs = [], [], []
