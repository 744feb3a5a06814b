"""Models that average payoffs in cells, one for each article and user segment."""

from typing import Any

import numpy as np

from topstory.kernels.contexts import Dense
from topstory.kernels.models.averages import Averages
from topstory.models.model import Model


class AverageModel(Model):
    """The mean payoff of a cell's trials, and 1/√n as its width: infinite before the first."""

    per_article: tuple[str, ...] = ("shows", "total", "mean", "spread")
    scored: tuple[str, ...] = ("mean", "spread")

    def parameters(self) -> dict[str, Any]:
        """None."""
        return {}

    def room(self, dimension: int) -> Dense:
        """Not unrolled: features hardly matter here, and one compilation then serves every d."""
        return Dense(np.zeros(dimension), (), np.zeros(0))

    def _segment_count(self, dimension: int) -> int:
        return 1

    def _fresh(self, capacity: int, dimension: int) -> Averages:
        shape = (capacity, self._segment_count(dimension))
        return Averages(
            shows=np.zeros(shape),
            total=np.zeros(shape),
            mean=np.zeros(shape),
            spread=np.full(shape, np.inf),
            offset=np.zeros((0, 0)),
            bonus=np.zeros(0),
            learns=self.learns,
            residual=False,
        )
