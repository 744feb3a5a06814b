"""A linear model for contexts of thousands of numbers."""

from collections.abc import Mapping
from operator import index
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from topstory.kernels.models.low_rank import LowRank, rewrite_all
from topstory.models.linear import prior_weight, scaled_identities
from topstory.models.logistic.model import plain_ridge
from topstory.models.model import Model

MAX_RANK = 256


class LowRankLinear(Model):
    """E[r] = xᵀθ_a as `DisjointLinear`, with A_a kept as a diagonal and `rank` rows.

    It takes rank·d numbers for an article instead of d², and rank·d steps for a score, so that d
    may be in the thousands. A's diagonal is exact; so is all of A while an article has no more
    trials than rows, or contexts that span no more directions. Payoffs may come late and in any
    order.

    Args:
        ridge: the weight of the prior θ_a = 0, in trials; 1 in the paper.
        rank: how many rows: 0 keeps the diagonal alone, as if features were independent.

    >>> LowRankLinear(rank=4).parameters()
    {'ridge': 1.0, 'rank': 4}
    """

    name: ClassVar[str] = "low-rank"
    additive: ClassVar[bool] = False
    per_article: tuple[str, ...] = ("diagonal", "rows", "axes", "small", "b", "v")
    scored: tuple[str, ...] = ("diagonal", "axes", "small", "v")

    def __init__(self, ridge: float | str | None = None, rank: float = 16) -> None:
        super().__init__()
        given = plain_ridge(ridge)
        self.ridge = 1.0 if given is None else prior_weight("ridge", given)
        if rank != int(rank) or not 0 <= rank <= MAX_RANK:
            raise ValueError(f"rank must be a whole number from 0 to {MAX_RANK}, got {rank!r}")
        self.rank = index(int(rank))

    def parameters(self) -> dict[str, Any]:
        """The ridge and the rank."""
        return {"ridge": self.ridge, "rank": self.rank}

    def _fresh(self, capacity: int, dimension: int) -> LowRank:
        rows = self.rank + 1
        return LowRank(
            diagonal=np.full((capacity, dimension), self.ridge),
            rows=np.zeros((capacity, rows, dimension)),
            axes=np.zeros((capacity, rows, dimension)),
            small=scaled_identities(capacity, rows, 1.0),
            b=np.zeros((capacity, dimension)),
            v=np.zeros((capacity, dimension)),
            room=np.zeros((2, dimension)),
            square_room=np.zeros((3, rows, rows)),
            row_room=np.zeros((4, rows)),
        )

    def restore(
        self, ids: list[str | None], dimension: int | None, arrays: Mapping[str, npt.NDArray[Any]]
    ) -> None:
        """Restore a stored state. Older ones keep what follows from it in another way."""
        older = "diagonal" in arrays and "axes" not in arrays
        if older:
            count, rows, d = arrays["rows"].shape
            empty = {"axes": np.zeros((count, rows, d)), "small": np.zeros((count, rows, rows))}
            arrays = {**arrays, **empty}
        super().restore(ids, dimension, arrays)
        if older:
            rewrite_all(self.state, len(ids))

    def fade(self, factor: float) -> None:
        """Let what was learned count for less: `factor` times as much, and the prior for more."""
        if self.state is not None:
            self.state.diagonal[:] = self.ridge + factor * (self.state.diagonal - self.ridge)
            self.state.rows[:] *= np.sqrt(factor)
            self.state.b[:] *= factor
            rewrite_all(self.state, len(self.roster.ids))
