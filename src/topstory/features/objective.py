"""What the bilinear regression minimises, as a sum over blocks of users."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.engines import Engine
from topstory.features.blocks import Block, Values
from topstory.kernels.compilation import Floats

Model = tuple[Floats, float]  # (A, D) Wφ_a of each article, and the intercept


class Objective:
    """Log loss of the clicks + ridge/2·‖W‖², and its gradient.

    Its argument x is W (D, M), row by row, and the intercept, which is not penalised.
    """

    def __init__(
        self, engine: Engine, blocks: Iterable[Block], articles: Floats, ridge: float
    ) -> None:
        self._engine = engine
        self._blocks = engine.keep(_itself, blocks, None)
        self._articles = articles  # (A, M)
        self._ridge = ridge
        told = list(engine.map(_told, self._blocks, None))
        self.learned = sum(learned for learned, _ in told)
        self.clicks: Values = np.concatenate([clicks for _, clicks in told])  # held out
        self.loss = float("nan")  # mean log loss of the events learned from, when last asked

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """The objective and its gradient."""
        W, model = self._model(x)
        loss = slope = 0.0
        gradient = np.zeros(model[0].shape)  # (A, D)
        for part in self._engine.map(_loss, self._blocks, model):
            loss += part[0]
            slope += part[1]
            gradient += part[2]
        self.loss = loss / max(1, self.learned)
        total = gradient.T @ self._articles + self._ridge * W  # Φ_uᵀ diag(e) Φ_a
        penalty = self._ridge / 2 * float(np.vdot(W, W))
        return loss + penalty, np.append(total.ravel(), slope)

    def held_out_scores(self, x: Floats) -> Floats:
        """Scores of the events that are held out."""
        _, model = self._model(x)
        return np.concatenate(list(self._engine.map(_scores, self._blocks, model)))

    def _model(self, x: Floats) -> tuple[Floats, Model]:
        W = x[:-1].reshape(-1, self._articles.shape[1])
        return W, (np.ascontiguousarray(self._articles @ W.T), float(x[-1]))


def _itself(block: Block, _: None) -> Block:
    return block


def _told(block: Block, _: None) -> tuple[int, Values]:
    return len(block.learned), block.held_out.clicks


def _loss(block: Block, model: Model) -> tuple[float, float, Floats]:
    return block.loss(*model)


def _scores(block: Block, model: Model) -> Floats:
    return block.scores(*model)


def mean_log_loss(scores: Floats, clicks: npt.NDArray[Any]) -> float:
    """Of scores s and clicks y: the mean of log(1 + eˢ) − y·s.

    >>> round(mean_log_loss(np.zeros(2), np.array([0, 1])), 4)
    0.6931
    """
    return float(np.mean(np.logaddexp(0.0, scores) - clicks * scores))
