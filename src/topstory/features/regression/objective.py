"""The objective of the bilinear regression, as a sum over blocks of events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from topstory.engines import Engine, ResultRef
from topstory.features.regression.event_blocks import EventBlock, Sparse, UserRows, Values, rows_of
from topstory.kernels.compilation import Counters, Floats

Model = tuple[Floats, float]  # (A, D) Wφ_a of each article, and the intercept
Read = Callable[[Any], EventBlock]


class Objective:
    """Log loss of the clicks + ridge/2·‖W‖², and its gradient.

    Its argument x is W (D, M), row by row, and the intercept, which is not penalised.

    Args:
        engine: computes the sums.
        users: (V, D) φ_u; the engine keeps them, once on each machine.
        articles: (A, M) φ_a.
        ridge: the penalty of W.
        parts: the blocks, or what `read` makes blocks from.
        read: makes a block; the workers call it, so events never pass through this process.
        keep: whether the workers keep their blocks; if not, they make them each time.
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
        self._count, self._width = users.shape
        # Any: the engine replaces it by the kept rows.
        self._users: Any = engine.keep(_itself, [rows_of(users)], None)[0]
        self._articles = articles  # (A, M)
        self._ridge = ridge
        self._read = read or _block
        self._parts: list[ResultRef[EventBlock]] | Sequence[Any] = parts
        if keep:
            self._parts, self._read = engine.keep(_made, parts, (self._read,)), _block
        summaries: list[_BlockSummary] = list(self._each(_summary, len(articles)))
        self.learned = sum(part.learned for part in summaries)  # how many events
        self.mean = sum(part.clicks for part in summaries) / max(1, self.learned)
        shown: Counters = np.sum([part.shown for part in summaries], axis=0)
        self.shown = shown  # (A,) how many events have shown each article
        self.clicks: Values = np.concatenate([part.held_out for part in summaries])
        self.loss = float("nan")  # mean log loss of the events learned from, at the last evaluation

    @property
    def shape(self) -> tuple[int, int]:
        """(D, M) of W."""
        return self._width, self._articles.shape[1]

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

    def user_moments(self, users: int) -> Floats:
        """(D, D) the mean of φ_u φ_uᵀ over the events learned from of so many users, about."""
        every = max(1, self._count // users)
        total, moments = 0.0, np.zeros((self._width, self._width))
        for events, part in self._each(_moments, (self._width, every)):
            total += events
            moments += part
        return moments / max(1.0, total)

    def article_moments(self) -> Floats:
        """(M, M) the mean of φ_a φ_aᵀ over the events."""
        share = self.shown / max(1, self.shown.sum())
        moments: Floats = (self._articles.T * share) @ self._articles
        return moments

    def _each(self, question: Callable[[EventBlock, UserRows, Any], Any], given: Any) -> Any:
        shared = (self._users, self._read, question, given)
        return self._engine.map(_answer, self._parts, shared)

    def _model(self, x: Floats) -> tuple[Floats, Model]:
        W = x[:-1].reshape(-1, self._articles.shape[1])
        return W, (np.ascontiguousarray(self._articles @ W.T), float(x[-1]))


def _itself(value: UserRows, _: None) -> UserRows:
    return value


def _block(block: EventBlock) -> EventBlock:
    return block


def _made(part: Any, shared: tuple[Read]) -> EventBlock:
    return shared[0](part)


def _answer(
    part: Any, shared: tuple[UserRows, Read, Callable[[EventBlock, UserRows, Any], Any], Any]
) -> Any:
    users, read, question, given = shared
    return question(read(part), users, given)


class _BlockSummary(NamedTuple):
    """Facts about a block."""

    learned: int  # events
    clicks: float  # in them
    shown: Counters  # (A,) how often each article was
    held_out: Values  # clicks


def _summary(block: EventBlock, _: UserRows, articles: int) -> _BlockSummary:
    clicks = float(block.learned.clicks.sum(dtype=np.float64))
    return _BlockSummary(len(block.learned), clicks, block.shown(articles), block.held_out.clicks)


def _loss(block: EventBlock, users: UserRows, model: Model) -> tuple[float, float, Floats]:
    return block.loss(users, *model)


def _scores(block: EventBlock, users: UserRows, model: Model) -> Floats:
    return block.scores(users, *model)


def _moments(block: EventBlock, users: UserRows, given: tuple[int, int]) -> tuple[float, Floats]:
    return block.moments(users, *given)


def mean_log_loss(scores: Floats, clicks: npt.NDArray[Any]) -> float:
    """Of scores s and clicks y: the mean of log(1 + eˢ) − y·s.

    >>> round(mean_log_loss(np.zeros(2), np.array([0, 1])), 4)
    0.6931
    """
    return float(np.mean(np.logaddexp(0.0, scores) - clicks * scores))
