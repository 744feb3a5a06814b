"""LinUCB's disjoint model (Li et al. 2010, Algorithm 1)."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from topstory.kernels.compilation import Floats, Slots
from topstory.kernels.models.disjoint import MAX_CONDITION, Disjoint
from topstory.kernels.models.factored import FactoredDisjoint
from topstory.models.linear import AUTO, PAPER_RIDGE, LinearModel
from topstory.models.priors.evidence import inverted
from topstory.models.priors.pooled import pool_articles
from topstory.models.priors.prior import Prior
from topstory.models.priors.sums import ArticleSums
from topstory.models.priors.weighing import noise, own_weight

SEARCH_TURNS = 50


class DisjointLinear(LinearModel):
    """E[r] = xᵀθ_a, Eq. (2): a ridge regression of its own for each article, Eq. (3).

    The width is √(xᵀA_a⁻¹x), Eq. (4), with A_a = ridge·I + Σxxᵀ over the article's trials.

    Args:
        ridge: the weight of the prior θ_a = 0, in trials; 1 in the paper. With clicks at 3 % that
            is very weak, and tuning may find a larger one better. `"auto"`: the mean and spread of
            the articles' θ so far, from 20 articles on.
        prior: where θ_a starts instead, learned from an earlier log (`ts.fit_prior`). With a ridge
            its mean alone is used.

    >>> DisjointLinear(ridge=0)
    Traceback (most recent call last):
    ...
    ValueError: ridge must be from 1e-12 to 1e+12 (the paper's is 1), got 0
    """

    name: ClassVar[str] = "disjoint"
    per_article: tuple[str, ...] = ("A", "b", "S", "v", "updates")
    scored: tuple[str, ...] = ("S", "v")
    inverses: tuple[tuple[str, str], ...] = (("A", "S"),)

    def __init__(self, ridge: float | str | None = None, prior: Prior | None = None) -> None:
        super().__init__(ridge, prior)
        if prior is not None and self.given_ridge is not None:
            even = self.given_ridge * np.eye(prior.dimension)
            self.prior = replace(prior, precision=even)

    def parameters(self) -> dict[str, Any]:
        """The ridge, unless a prior takes its place."""
        if self.finds_ridge:
            return {"ridge": AUTO}
        if self.given_ridge is None and self.prior is not None:
            return {}
        return {"ridge": self.given_ridge or PAPER_RIDGE}

    def own_start(self) -> tuple[Floats, Floats]:
        """A and b of an article without trials."""
        assert self.dimension is not None
        if self.prior is None:
            return (self.given_ridge or PAPER_RIDGE) * np.eye(self.dimension), np.zeros(
                self.dimension
            )
        return self.prior.own(self.weight)

    def _name_factors(self) -> None:
        self.per_article, self.scored, self.shared = ("L", "b", "z"), ("L", "z"), ()

    def _fresh(self, capacity: int, dimension: int) -> Disjoint | FactoredDisjoint:
        A, b = self.own_start()
        plain = self.prior is None  # then the bits are those of a multiple of I
        start = A[0, 0]
        if self.factored:
            L: Floats = np.eye(dimension) * np.sqrt(start)
            if not plain:
                L = np.asarray(np.linalg.cholesky(A), np.float64)
            return FactoredDisjoint(
                L=_tiled(L, capacity),
                b=_tiled(b, capacity),
                z=_tiled(np.asarray(np.linalg.solve(L, b), np.float64), capacity),
                room=np.zeros((4, dimension)),
            )
        S = np.eye(dimension) * (1.0 / start) if plain else inverted(A)
        return Disjoint(
            A=_tiled(A, capacity),
            b=_tiled(b, capacity),
            S=_tiled(S, capacity),
            v=_tiled(S @ b, capacity),
            updates=np.zeros(capacity, np.int64),
            ridge=float(start if plain else np.linalg.eigvalsh(A)[0]),
            tally=self._new_tally(),
            room=np.zeros((2, dimension)),
            square_room=np.zeros((dimension, dimension)),
        )

    def _fill(self, slots: Slots, sums: ArticleSums) -> None:
        A, b = self.own_start()
        state = self.state
        state.A[slots] = sums.S + A
        state.b[slots] = sums.b + b

    def _invert(self, slots: Slots) -> None:
        state = self.state
        state.S[slots] = inverted(state.A[slots])
        state.v[slots] = np.einsum("aij,aj->ai", state.S[slots], state.b[slots])

    def _exact(self) -> bool:
        most = np.einsum("aii->a", self.state.A).max(initial=0.0)
        return bool(most <= MAX_CONDITION * self.state.ridge)

    def _reweigh(self, sums: ArticleSums) -> None:
        if not self.finds_ridge:
            assert self.prior is not None
            self.weight = own_weight(self.prior, sums, noise(self.prior, sums))
        elif self.ready_to_search(sums):
            shown = np.einsum("aii->a", sums.S) > 0
            seen = replace(sums, S=sums.S[shown], b=sums.b[shown])
            mean, precision, variance = pool_articles(seen, SEARCH_TURNS)
            self.prior = Prior.of_articles(mean, precision, variance, int(sums.trials))
        self.take(sums)


def _tiled(start: Floats, count: int) -> Floats:
    """Copies of an array, one for each article."""
    return np.tile(start, (count, *(1,) * start.ndim))
