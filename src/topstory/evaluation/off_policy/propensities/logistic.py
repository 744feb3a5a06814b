"""A multinomial logistic regression of what was shown: by user, article and time."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from topstory.evaluation.off_policy.propensities.overlap import log_pieces
from topstory.evaluation.off_policy.propensities.show_model import Parts
from topstory.evaluation.off_policy.weighting.targets import plain_room, pool_begins
from topstory.events import EventLog
from topstory.kernels.compilation import Counters, Floats
from topstory.kernels.scans.propensities import Scores, Shows, fit_shows, show_chances
from topstory.models.contexts import dense_rows, kernel_rows

RIDGE = 1.0
RIDGE_ALWAYS = 0.01  # of an article's own level at all times
MAX_STEPS = 200
PRECISION = 0.1  # of the gradient, in standard errors of a coefficient


class LogisticShares:
    """P(a) ∝ exp(θ_aᵀx + δ_a + δ_a,t) over the pool, once for each fold, from the other folds."""

    name: ClassVar[str] = "logistic"
    words: ClassVar[str] = "multinomial logistic regression over article, user and time"
    words_steady: ClassVar[str] = "multinomial logistic regression over article and user"

    def __init__(self, log: EventLog, parts: Parts) -> None:
        self._log, self._parts = log, parts
        self._shows = Shows(
            kernel_rows(log.users),
            log.pool,
            log.position,
            parts.block,
            log.pool_offsets,
            log.pool_members,
        )
        self._articles, self._dimension = len(log.article_ids), log.dimension
        self._work = np.empty(int(np.diff(log.pool_offsets).max(initial=1)))
        self._penalty = np.full(self._articles * (self._dimension + parts.blocks + 1), RIDGE)
        self._scores(self._penalty).by_block[:, -1] = RIDGE_ALWAYS
        self._scale = 1 / np.sqrt(self._penalty + self._curvature())
        self._fitted = [self._fit(parts.fold != fold) for fold in range(parts.folds)]

    def all(self, start: int, stop: int) -> tuple[Counters, Floats]:
        """The chances of all articles."""
        begins, size = pool_begins(self._log, start, stop)
        found, x = np.empty(size), np.empty(self._dimension)
        for fold, scores in enumerate(self._fitted):
            which = self._parts.fold[start:stop] == fold
            room = plain_room(self._dimension)
            show_chances(self._shows, start, begins, which, scores, room, x, found)
        return begins, found

    def _fit(self, which: NDArray[np.bool_]) -> Scores:
        """The coefficients with the least penalised loss over the events marked."""
        from scipy.optimize import minimize  # slow to import, and only this needs it

        room, x = plain_room(self._dimension), np.empty(self._dimension)
        scale, penalty = self._scale, self._penalty

        def loss(scaled: Floats) -> tuple[float, Floats]:
            vector = scaled * scale
            gradient = penalty * vector
            size = fit_shows(
                *(self._shows, which, self._scores(vector), room, x, self._work),
                self._scores(gradient),
            )
            return size + float((penalty * vector) @ vector) / 2, gradient * scale

        found = minimize(
            loss,
            np.zeros(len(penalty)),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": MAX_STEPS, "gtol": PRECISION, "ftol": 0.0},
        )
        return self._scores(np.asarray(found.x) * scale)

    def _curvature(self) -> Floats:
        """The second derivatives where all chances are equal: they make the steps round."""
        found = np.zeros_like(self._penalty)
        scores, log = self._scores(found), self._log
        sizes, width = log.pool_sizes, self._parts.blocks + 1
        by_block = np.zeros(self._articles * width)
        squares = np.zeros(self._dimension)
        for start, stop in log_pieces(log):
            begins, size = pool_begins(log, start, stop)
            pool = log.pool[start:stop]
            counts = sizes[pool]
            places = np.repeat(log.pool_offsets[pool] - begins, counts) + np.arange(size)
            spread = np.repeat((1 - 1 / counts) / counts, counts)
            cell = log.pool_members[places] * np.int64(width)
            cell += np.repeat(self._parts.block[start:stop], counts)
            by_block += np.bincount(cell, spread, minlength=len(by_block))
            squares += (dense_rows(log.users, start, stop).astype(np.float64) ** 2).sum(axis=0)
        scores.by_block[:] = by_block.reshape(self._articles, width)
        scores.by_block[:, -1] = scores.by_block[:, :-1].sum(axis=1)
        scores.by_user[:] = scores.by_block[:, -1:] * (squares / max(1, len(log)))
        return found

    def _scores(self, vector: Floats) -> Scores:
        """Views of one vector."""
        cut = self._articles * self._dimension
        return Scores(
            vector[:cut].reshape(self._articles, self._dimension),
            vector[cut:].reshape(self._articles, self._parts.blocks + 1),
        )
