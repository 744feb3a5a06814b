"""LinUCB's disjoint model (Li et al. 2010, Algorithm 1)."""

from typing import Any, ClassVar

import numpy as np

from topstory.kernels.models.disjoint import Disjoint
from topstory.kernels.models.factored import FactoredDisjoint
from topstory.models.linear import LinearModel, scaled_identities


class DisjointLinear(LinearModel):
    """E[r] = xᵀθ_a, Eq. (2): a ridge regression of its own for each article, Eq. (3).

    The width is √(xᵀA_a⁻¹x), Eq. (4), with A_a = ridge·I + Σxxᵀ over the article's trials.

    Args:
        ridge: the weight of the prior θ_a = 0, in trials; 1 in the paper. With clicks at 3 % that
            is very weak, and tuning may find a larger one better.

    >>> DisjointLinear(ridge=0)
    Traceback (most recent call last):
    ...
    ValueError: ridge must be from 1e-12 to 1e+12 (the paper's is 1), got 0
    """

    name: ClassVar[str] = "disjoint"
    per_article: tuple[str, ...] = ("A", "b", "S", "v", "updates")
    scored: tuple[str, ...] = ("S", "v")
    inverses: tuple[tuple[str, str], ...] = (("A", "S"),)

    def __init__(self, ridge: float = 1.0) -> None:
        super().__init__(ridge)

    def parameters(self) -> dict[str, Any]:
        """The ridge."""
        return {"ridge": self.ridge}

    def _name_factors(self) -> None:
        self.per_article, self.scored = ("L", "b", "z"), ("L", "z")

    def _fresh(self, capacity: int, dimension: int) -> Disjoint | FactoredDisjoint:
        if self.factored:
            return FactoredDisjoint(
                L=scaled_identities(capacity, dimension, np.sqrt(self.ridge)),
                b=np.zeros((capacity, dimension)),
                z=np.zeros((capacity, dimension)),
                room=np.zeros((4, dimension)),
            )
        return Disjoint(
            A=scaled_identities(capacity, dimension, self.ridge),
            b=np.zeros((capacity, dimension)),
            S=scaled_identities(capacity, dimension, 1.0 / self.ridge),
            v=np.zeros((capacity, dimension)),
            updates=np.zeros(capacity, np.int64),
            ridge=self.ridge,
            room=np.zeros((2, dimension)),
            square_room=np.zeros((dimension, dimension)),
        )
