"""What the bilinear regression minimises, as a sum over blocks of events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.engines import Engine, Kept
from topstory.features.blocks import Block, Rows, Sparse, Values, rows_of
from topstory.kernels.compilation import Counters, Floats

Model = tuple[Floats, float]  # (A, D) Wφ_a of each article, and the intercept
Read = Callable[[Any], Block]


class Objective:
    """Log loss of the clicks + ridge/2·‖W‖², and its gradient.

    Its argument x is W (D, M), row by row, and the intercept, which is not penalised.

    Args:
        engine: where the sums are made.
        users: (V, D) φ_u; the engine keeps them, once on each machine.
        articles: (A, M) φ_a.
        ridge: the penalty of W.
        parts: the blocks, or what `read` makes a block of.
        read: makes a block; the workers call it, so events never come here.
        keep: whether the workers keep their blocks; False: they make them anew each time.
    """

    def __init__(
        self,
        engine: Engine,
        users: Sparse,
        articles: Floats,
        ridge: float,
        parts: Sequence[Any],
        read: Read | None = None,
        keep: bool = True,
    ) -> None:
        self._engine = engine
        self._width = users.shape[1]
        # Any: the engine puts the kept rows in its place.
        self._users: Any = engine.keep(_itself, [rows_of(users)], None)[0]
        self._articles = articles  # (A, M)
        self._ridge = ridge
        self._read = read or _block
        self._parts: list[Kept[Block]] | Sequence[Any] = parts
        if keep:
            self._parts, self._read = engine.keep(_made, parts, (self._read,)), _block
        told = list(self._each(_told, len(articles)))
        shown: Counters = np.sum([counts for counts, _ in told], axis=0)
        self.shown = shown  # (A,) how many events learned from have shown each article
        self.clicks: Values = np.concatenate([clicks for _, clicks in told])  # held out
        self.loss = float("nan")  # mean log loss of the events learned from, when last asked

    @property
    def shape(self) -> tuple[int, int]:
        """(D, M) of W."""
        return self._width, self._articles.shape[1]

    @property
    def learned(self) -> int:
        """How many events are learned from."""
        return int(self.shown.sum())

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """The objective and its gradient."""
        W, model = self._model(x)
        loss = slope = 0.0
        gradient = np.zeros(model[0].shape)  # (A, D)
        for part in self._each(_loss, model):
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
        return np.concatenate(list(self._each(_scores, model)))

    def user_moments(self, events: int) -> Floats:
        """(D, D) the mean of φ_u φ_uᵀ over so many of the events learned from, about."""
        every = -(-self.learned // events)
        total, moments = 0, np.zeros((self._width, self._width))
        for count, part in self._each(_moments, (self._width, max(1, every))):
            total += count
            moments += part
        return moments / max(1, total)

    def article_moments(self) -> Floats:
        """(M, M) the mean of φ_a φ_aᵀ over the events learned from."""
        moments: Floats = (self._articles.T * self.shown) @ self._articles / max(1, self.learned)
        return moments

    def _each(self, question: Callable[[Block, Rows, Any], Any], given: Any) -> Any:
        asked = (self._users, self._read, question, given)
        return self._engine.map(_answer, self._parts, asked)

    def _model(self, x: Floats) -> tuple[Floats, Model]:
        W = x[:-1].reshape(-1, self._articles.shape[1])
        return W, (np.ascontiguousarray(self._articles @ W.T), float(x[-1]))


def _itself(value: Rows, _: None) -> Rows:
    return value


def _block(block: Block) -> Block:
    return block


def _made(part: Any, shared: tuple[Read]) -> Block:
    return shared[0](part)


def _answer(part: Any, asked: tuple[Rows, Read, Callable[[Block, Rows, Any], Any], Any]) -> Any:
    users, read, question, given = asked
    return question(read(part), users, given)


def _told(block: Block, _: Rows, articles: int) -> tuple[Counters, Values]:
    return block.shown(articles), block.held_out.clicks


def _loss(block: Block, users: Rows, model: Model) -> tuple[float, float, Floats]:
    return block.loss(users, *model)


def _scores(block: Block, users: Rows, model: Model) -> Floats:
    return block.scores(users, *model)


def _moments(block: Block, users: Rows, given: tuple[int, int]) -> tuple[int, Floats]:
    return block.moments(users, *given)


def mean_log_loss(scores: Floats, clicks: npt.NDArray[Any]) -> float:
    """Of scores s and clicks y: the mean of log(1 + eˢ) − y·s.

    >>> round(mean_log_loss(np.zeros(2), np.array([0, 1])), 4)
    0.6931
    """
    return float(np.mean(np.logaddexp(0.0, scores) - clicks * scores))
