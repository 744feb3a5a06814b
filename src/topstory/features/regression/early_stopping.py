"""The progress of a fit, and when to stop it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
from sklearn.metrics import roc_auc_score

from topstory.features.regression.objective import Objective, mean_log_loss
from topstory.kernels.compilation import Floats

# The events that a model's log loss and AUC are measured on.
HELD_OUT, LAST_BATCH, LEARNED = "held out", "last batch", "learned"


class Step(msgspec.Struct, frozen=True):
    """The quality of the fit after an iteration."""

    iteration: int
    loss: float | None  # mean log loss of the events learned from
    held_out_loss: float | None  # mean log loss of those held out
    auc: float | None  # of those held out: the chance that a click scores above a non-click


class EarlyStopping:
    """Called after each iteration; stops the fit when the held-out loss no longer improves."""

    def __init__(
        self, objective: Objective, patience: int, progress: Callable[[Step], None] | None
    ) -> None:
        self._objective, self._patience, self._progress = objective, patience, progress
        self.history: list[Step] = []
        self.best: Floats = np.empty(0)  # W and the intercept
        self._best = 0

    def see(self, x: Floats) -> None:
        """Record an iteration's W and intercept; raises StopIteration to end the fit."""
        first = not self.history
        loss = None if first else self._objective.loss
        held_out = auc = None
        clicks = self._objective.clicks
        if len(clicks):
            scores = self._objective.held_out_scores(x)
            held_out = mean_log_loss(scores, clicks)
            both = bool((clicks > 0).any() and (clicks <= 0).any())
            auc = float(roc_auc_score(clicks > 0, scores)) if both else None
        step = Step(len(self.history), loss, held_out, auc)
        self.history.append(step)
        if self._progress is not None:
            self._progress(step)
        known = self.history[self._best].held_out_loss
        if known is None or held_out is None or first or held_out < known:
            self._best, self.best = len(self.history) - 1, x.copy()
        elif len(self.history) - 1 - self._best >= self._patience:
            raise StopIteration

    @property
    def log_loss(self) -> float | None:
        """Of the best iteration, on the held-out events if there are any."""
        step = self.history[self._best]
        return step.loss if step.held_out_loss is None else step.held_out_loss

    @property
    def scored_on(self) -> str:
        """The events that the log loss is measured on."""
        return LEARNED if self.history[self._best].held_out_loss is None else HELD_OUT

    @property
    def auc(self) -> float | None:
        """Of the best iteration."""
        return self.history[self._best].auc
