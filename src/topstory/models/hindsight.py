"""Each article's average payoff over a whole log, known from the start."""

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, ClassVar, Self

import numpy as np

from topstory.kernels.compilation import Floats, Slots
from topstory.models.averages import AverageModel
from topstory.models.contexts import Contexts

FOLDS = 10
WHOLE = 0  # the segment of the whole log; those of its folds follow


class Hindsight(AverageModel):
    """What the paper's `omniscient` knows (§5.3 I): every article's CTR in the log it is run on.

    An article's CTR in a log contains the very clicks that its choice is then paid with, so the
    luckiest article looks best: on 20,000 events omniscient seemed to earn 1.9 times as much as
    random articles, where its choices truly earn 1.6. So event t is chosen by the other folds: the
    events whose number leaves another remainder by `folds`.

    `ts.replay` gives it the log's sums; it does not learn from trials. Outside of the replay it
    chooses by the whole log.

    Args:
        folds: how many there are. 1 is the paper's way: the CTRs of the whole log, own click
            included.

    >>> Hindsight().folds, Hindsight(folds=1).parameters()
    (10, {'folds': 1})
    """

    name: ClassVar[str] = "hindsight"
    learns: ClassVar[bool] = False
    segmented: ClassVar[bool] = True

    def __init__(self, folds: float = FOLDS) -> None:
        super().__init__()
        if not (folds >= 1 and folds == int(folds)):
            raise ValueError(f"folds must be a whole number, 1 or more, got {folds!r}")
        self.folds = index(int(folds))

    def parameters(self) -> dict[str, Any]:
        """How many folds."""
        return {"folds": self.folds}

    @classmethod
    def from_stored(cls, parameters: Mapping[str, Any], callables: Mapping[str, Any]) -> Self:
        """Files that do not say how many folds are older than the choice."""
        return super().from_stored({"folds": 1} | dict(parameters), callables)

    def _segment_count(self, dimension: int) -> int:
        return 1 if self.folds == 1 else 1 + self.folds

    def segments(self, users: Contexts, start: int, stop: int) -> Slots:
        """The fold of each of the events start … stop − 1."""
        if self.folds == 1:
            return super().segments(users, start, stop)
        return (1 + np.arange(start, stop) % self.folds).astype(np.int32)

    def use_log_sums(self, slots: Slots, shows: Floats, payoff: Floats) -> None:
        """Average each article's payoffs; an article that was never shown is the last choice."""
        known, paid = (each.sum(axis=1, keepdims=True) for each in (shows, payoff))
        if self.folds > 1:
            known, paid = np.hstack([known, known - shows]), np.hstack([paid, paid - payoff])
        self.state.shows[slots] = known
        self.state.total[slots] = paid
        self.state.mean[slots] = np.where(known > 0, paid / np.maximum(known, 1.0), -np.inf)
        self.state.spread[slots] = 0.0

    def prepare(self, user: Floats, pool: Sequence[str]) -> None:
        """Raise ValueError if there is no log yet."""
        if not self.state.shows[:, WHOLE].any():
            raise ValueError("omniscient knows only the log it is replayed on: call ts.replay")
