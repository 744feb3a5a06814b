"""The bilinear regression by mini-batches: for logs that do not fit in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.metrics import roc_auc_score

from topstory.engines import SerialEngine
from topstory.features.regression.early_stopping import Step
from topstory.features.regression.event_blocks import Sparse, Values, cut_events
from topstory.features.regression.objective import Objective, mean_log_loss
from topstory.kernels.compilation import Floats

BATCH = 20_000  # events of a step
RATE, FIRST, SECOND, TINY = 0.1, 0.9, 0.999, 1e-8  # Adam: step size, two decay rates, epsilon


class MiniBatches:
    """W and the intercept, moved a little by each batch of events (Adam; Kingma and Ba 2015).

    A batch is scored before it is learned from, so its log loss is that of events not yet seen.
    Its part of the penalty is ridge/2·‖W‖² times its share of all `events`.

    Args:
        users: (V, D) φ_u, sparse.
        articles: (A, M) φ_a.
        events: about how many there will be, over all passes.
        ridge: the penalty of W.
        rate: how far a step goes; it falls as 1/√(steps).
    """

    def __init__(
        self, users: Sparse, articles: Floats, events: int, ridge: float, rate: float = RATE
    ) -> None:
        self._users, self._articles = sparse.csr_array(users), articles
        self._ridge, self._events, self._rate = ridge, max(1, events), rate
        self._x: Floats = np.zeros(users.shape[1] * articles.shape[1] + 1)
        self._slope, self._square = np.zeros_like(self._x), np.zeros_like(self._x)
        self.history: list[Step] = []

    @property
    def coef(self) -> Floats:
        """(D, M) W."""
        return self._x[:-1].reshape(-1, self._articles.shape[1])

    @property
    def intercept(self) -> float:
        """The intercept of all scores."""
        return float(self._x[-1])

    def learn(
        self,
        visitor: npt.NDArray[Any],
        shown: npt.NDArray[Any],
        clicks: npt.NDArray[Any],
        progress: Callable[[Step], None] | None = None,
    ) -> None:
        """Learn from events, batch by batch in their order."""
        for start in range(0, len(visitor), BATCH):
            part = slice(start, start + BATCH)
            self._step(visitor[part], shown[part], clicks[part].astype(np.float32))
            if progress is not None:
                progress(self.history[-1])

    def _step(self, visitor: npt.NDArray[Any], shown: npt.NDArray[Any], clicks: Values) -> None:
        # Only the batch's own users: a block is cut from few rows, not from the population.
        who, rows = np.unique(visitor, return_inverse=True)
        if not self.history:
            mean = float(np.clip(clicks.mean(dtype=np.float64), 1e-6, 1 - 1e-6))
            self._x[-1] = np.log(mean / (1 - mean))
        everything = np.ones(len(clicks), bool)
        share = self._ridge * len(clicks) / self._events
        users, articles = self._users[who], self._articles
        cut = (users, len(articles), rows.reshape(-1), shown, clicks)
        here = SerialEngine()
        learned = Objective(here, users, articles, share, [*cut_events(*cut, ~everything, 1)])
        watched = Objective(here, users, articles, 0.0, [*cut_events(*cut, everything, 1)])
        self.history.append(_seen(len(self.history), watched, self._x))
        _, gradient = learned(self._x)
        gradient /= len(clicks)
        step = len(self.history)
        self._slope += (1 - FIRST) * (gradient - self._slope)
        self._square += (1 - SECOND) * (gradient**2 - self._square)
        root = np.sqrt(self._square / (1 - SECOND**step)) + TINY
        self._x -= self._rate / np.sqrt(step) * self._slope / (1 - FIRST**step) / root


def _seen(number: int, watched: Objective, x: Floats) -> Step:
    scores, clicks = watched.held_out_scores(x), watched.clicks
    both = bool((clicks > 0).any() and (clicks <= 0).any())
    auc = float(roc_auc_score(clicks > 0, scores)) if both else None
    return Step(number, None, mean_log_loss(scores, clicks), auc)
