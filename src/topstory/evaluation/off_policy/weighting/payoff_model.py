"""r̂: what a model of our own expects each article to pay, for estimators that use one.

Cross-fitted: a prediction never comes from a model that learned the event, nor, where visitors are
known, any event of its visitor. Otherwise luck would be predicted, and count twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from topstory.evaluation.off_policy.weighting.targets import plain_room
from topstory.evaluation.replays.prepared_log import chunks
from topstory.events import EventLog
from topstory.events.columns.decisions import label_numbers
from topstory.explorers import Greedy
from topstory.kernels.compilation import Counters, Floats, Slots
from topstory.kernels.scans.replay import Pools
from topstory.kernels.scans.targets import predict
from topstory.models import DisjointLinear
from topstory.models.contexts import scoring_rows
from topstory.policies import Policy
from topstory.policies.log_learner import learn_log

FOLDS = 3
RIDGE = 1.0


class PayoffModel:
    """A ridge regression for each article, once for each fold, learned from the other folds.

    Args:
        log: whose payoffs are predicted.
        learned: the model of each fold, if they were learned from more than this log.
        folds: (n,) the fold of each event, then.
    """

    def __init__(
        self,
        log: EventLog,
        learned: Sequence[Policy] | None = None,
        folds: NDArray[np.uint8] | None = None,
    ) -> None:
        self._log = log
        self._users = log.users if log.exact is None else log.exact.users
        self._folds = folds_of(log) if folds is None else folds
        self._learned = [new_model() for _ in range(FOLDS)] if learned is None else learned
        self._slots: list[Slots] = []
        for policy in self._learned:
            self._slots.append(policy.model.add_all(log.articles))
            policy.model.see(log.dimension)
        if learned is not None:
            return
        for start, stop in chunks(len(log)):
            part = log[start:stop]
            for fold, policy in enumerate(self._learned):
                learn_log(policy, part[self._folds[start:stop] != fold])

    def predict(
        self, start: int, stop: int, begins: Counters, chances: Floats
    ) -> tuple[Floats, Floats]:
        """Of the events start … stop − 1: Σ_a π_a r̂_a, and r̂ of the article shown."""
        log = self._log
        direct, shown = np.empty(stop - start), np.empty(stop - start)
        for fold, (policy, slots) in enumerate(zip(self._learned, self._slots, strict=True)):
            predict(
                start,
                scoring_rows(policy.model, log, self._users, slots[log.pool_members]),
                log.pool,
                log.position,
                Pools(log.pool_offsets, slots[log.pool_members], policy.model.roster.keys),
                begins,
                chances,
                self._folds[start:stop] == fold,
                policy.model.kernel_state,
                plain_room(log.dimension),
                direct,
                shown,
            )
        return direct, shown


def new_model() -> Policy:
    """The model of a fold, before it learns."""
    return Policy(DisjointLinear(RIDGE), Greedy())


def folds_of(log: EventLog, before: int = 0) -> NDArray[np.uint8]:
    """(n,) each event's fold: by its visitor, where that is known; `before` them came so many.

    By the visitor's id, where a log has ids: numbers of them differ between parts of a log.
    """
    number = np.arange(before, before + len(log))
    visitor = log.visitor_number
    if visitor is not None:
        fold = visitor
        if log.visitors is None and log.decisions is not None:
            labels = label_numbers(log.decisions, "visitor")[1]
            # The last one is for -1: nobody that is known.
            fold = np.array([*(crc32(label.encode()) for label in labels), 0])[visitor]
        number = np.where(visitor >= 0, fold, number)
    return (number % FOLDS).astype(np.uint8)
