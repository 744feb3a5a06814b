"""Each article's average payoff over a whole log, known from the start."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from topstory.kernels.compilation import Floats, Slots
from topstory.models.averages import AverageModel


class Hindsight(AverageModel):
    """What the paper's `omniscient` knows (§5.3 I): every article's CTR in the log it is run on.

    `ts.replay` gives it the log's sums; it does not learn from trials.

    >>> Hindsight().name
    'hindsight'
    """

    name: ClassVar[str] = "hindsight"
    learns: ClassVar[bool] = False

    def use_log_sums(self, slots: Slots, shows: Floats, payoff: Floats) -> None:
        """Average each article's payoffs; an article that was never shown is the last choice."""
        self.state.shows[slots, 0] = shows
        self.state.total[slots, 0] = payoff
        self.state.mean[slots, 0] = np.where(shows > 0, payoff / np.maximum(shows, 1.0), -np.inf)
        self.state.spread[slots, 0] = 0.0

    def prepare(self, user: Floats, pool: Sequence[str]) -> None:
        """Raise ValueError if there is no log yet."""
        if not self.state.shows.any():
            raise ValueError("omniscient knows only the log it is replayed on: call ts.replay")
