"""Updates that a policy is to learn, in order: many halves of trials by one kernel call."""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import sqrt

import numpy as np
import numpy.typing as npt

from topstory.kernels.event_features import Context, fill
from topstory.kernels.models.model import learn_halves, learn_paid, learn_shown
from topstory.models import Model
from topstory.models.input_range import ScaleError
from topstory.models.model import ONE_SEGMENT

SHOWN = float("nan")  # in the place of a payoff: the article was shown

log = logging.getLogger("topstory.serving")


class UpdateBatch:
    """Halves of trials; contexts are bytes as in the journal."""

    def __init__(self, dimension: int, event_features: int = 0) -> None:
        self._dimension, self._own = dimension, dimension - event_features - 1
        self._room: Context | None = None
        self.slots: list[int] = []
        self._users: list[bytes] = []
        self._payoffs: list[float] = []
        # By place: the features that articles had then, if they were edited since.
        self._then: dict[int, tuple[float, ...]] = {}

    def add(
        self,
        slot: int,
        user: bytes,
        payoff: float,
        weight: float = 1,
        then: tuple[float, ...] | None = None,
    ) -> None:
        """The article in this slot paid this much, or was `SHOWN`.

        With weight w, A grows by w·x·xᵀ and b by w·r·x: as for √w·x and √w·r. `then`: the features
        that the article had, if it was edited since.
        """
        if weight != 1:
            root = sqrt(weight)
            scaled = np.frombuffer(user, "<f8").copy()
            scaled[: self._own] *= root  # what lies between belongs to the article
            scaled[-1] *= root
            user, payoff = scaled.tobytes(), payoff * root
        if then is not None:
            self._then[len(self.slots)] = then
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
        stops = [*sorted(self._then), len(slots)]
        done = 0
        while done < len(slots):
            stop = next(each for each in stops if each >= done)
            part = slice(done, stop)
            rest = (slots[part], users[part], segments[part], self._room, payoffs[part])
            try:
                if done == stop:
                    learned, stop = self._learn_then(model, done, users[done]), stop + 1
                else:
                    learned = learn_halves(model.kernel_state, *rest)
                done += learned
                if done < stop:
                    renewing()
                    model.renew()  # the next one needs another prior, or form of the state
            except ScaleError as error:
                log.error("half a trial teaches nothing: %s", error)
                done += 1
        self.slots, self._users, self._payoffs, self._then = [], [], [], {}

    def _learn_then(self, model: Model, place: int, user: npt.NDArray[np.float64]) -> int:
        """Half a trial with other features; 0 if the state does not take it, else 1."""
        slot, payoff, room = self.slots[place], self._payoffs[place], self._room
        article = model.roster.ids[slot]
        assert article is not None
        assert room is not None
        fill(room, user)
        x = model.as_shown(room, article, self._then[place])
        if np.isnan(payoff):
            return int(learn_shown(model.kernel_state, slot, x, 0))
        learn_paid(model.kernel_state, slot, x, 0, payoff)
        return 1
