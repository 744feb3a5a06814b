"""What the two linear models have in common: a ridge regression for each article."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.kernels.compilation import Floats
from topstory.kernels.contexts import Dense
from topstory.kernels.models.factored import convert
from topstory.models.input_range import MAX_RIDGE, MIN_RIDGE, NotFiniteError
from topstory.models.model import Model


class LinearModel(Model):
    """Keeps inverses while they are exact, and factors from then on: the same model either way.

    The ordinary form is the faster one. `factorise` is called before a trial that it cannot take,
    and nothing leads back.
    """

    factored = False

    def __init__(self, ridge: float) -> None:
        super().__init__()
        self.ridge = prior_weight("ridge", ridge)

    @abstractmethod
    def _name_factors(self) -> None:
        """Name the fields of the factored form."""

    def _use_factors(self) -> None:
        self.factored, self.inverses = True, ()
        self._name_factors()

    def _convert(self, old: Any) -> None:
        """Fill the factored state from the ordinary one."""
        slots = len(self.roster.ids)
        self.state.b[:slots] = old.b[:slots]
        convert(old.A[:slots], old.b[:slots], self.ridge, self.state.L, self.state.z)

    def factorise(self) -> bool:
        """Change to the factored form; False if it is used already."""
        if self.factored:
            return False
        old, kept = self.state, self.arrays()
        for field, array in kept.items():
            if not np.isfinite(array).all():
                row = int(np.argwhere(~np.isfinite(array))[0, 0])
                article = self.roster.ids[row] if field in self.per_article else None
                raise NotFiniteError(f"the {self.name} model ({field})", article)
        assert self.dimension is not None
        self._use_factors()
        self._begin(self.dimension)
        for slot, article in enumerate(self.roster.ids):
            if article is not None:
                self._place(slot, article)
        self._convert(old)
        return True

    def room(self, dimension: int) -> Dense:
        """Not unrolled in the factored form: one compilation then serves every d."""
        if self.factored:
            return Dense(np.zeros(dimension), (), np.zeros(dimension))
        return super().room(dimension)

    def restore(
        self, ids: list[str | None], dimension: int | None, arrays: Mapping[str, npt.NDArray[Any]]
    ) -> None:
        """Restore a stored state, in the form that it was stored in."""
        if "L" in arrays:
            self._use_factors()
        super().restore(ids, dimension, arrays)

    def score_from(self, dimension: int, arrays: Mapping[str, Floats]) -> None:
        """Score from arrays of either form."""
        if "L" in arrays:
            self._use_factors()
        super().score_from(dimension, arrays)


def prior_weight(name: str, value: float) -> float:
    """The weight of a prior, in trials: above 0, and not so near that no inverse is found."""
    if not MIN_RIDGE <= value <= MAX_RIDGE:
        raise ValueError(
            f"{name} must be from {MIN_RIDGE:g} to {MAX_RIDGE:g} (the paper's is 1), got {value!r}"
        )
    return float(value)


def scaled_identities(count: int, size: int, scale: float) -> Floats:
    """(count, size, size) copies of scale·I."""
    return np.tile(np.eye(size) * scale, (count, 1, 1))
