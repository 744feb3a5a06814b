"""Each article's average payoff, plus an offset for the user that is known beforehand."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from topstory.kernels.compilation import Floats
from topstory.kernels.models.averages import Averages
from topstory.models.averages import AverageModel
from topstory.models.model import finite_vector

AVERAGES = ("residual", "payoff")

Offset = Mapping[str, npt.ArrayLike] | Callable[[Floats, str], float]


class Warm(AverageModel):
    """Context-free mean + user-specific offset: ε-greedy (warm) and ucb (warm), §5.3 II.

    Args:
        offset: a table, article -> (d,) weights o_a, for an offset o_aᵀx (what a bilinear model
            xᵀWf_a gives; an article not in it has none); or a function of (user, article), which
            replay calls event by event, in Python.
        average: what the mean is of. `residual`, the payoff minus the offset of the user at hand:
            then an offset that chose the users of a trial does not count twice. `payoff`: as in the
            paper.

    >>> model = Warm({"rain": [0.01, -0.01, 0.0]})
    >>> model.compiles, Warm(lambda user, article: 0.0).compiles
    (True, False)
    """

    name: ClassVar[str] = "warm"
    per_article: tuple[str, ...] = (*AverageModel.per_article, "offset", "bonus")
    scored: tuple[str, ...] = (*AverageModel.scored, "offset", "bonus")

    def __init__(self, offset: Offset, average: str = "residual") -> None:
        super().__init__()
        if average not in AVERAGES:
            raise ValueError(f"average must be 'residual' or 'payoff', got {average!r}")
        self.average = average
        self._function = offset if callable(offset) else None
        self._table: dict[str, Floats] = {}
        if not callable(offset):
            self._table = {article: finite_vector(row, article) for article, row in offset.items()}

    def parameters(self) -> dict[str, Any]:
        """The table, and what is averaged."""
        chosen = {"average": self.average}
        if self._function is not None:
            return chosen
        return {"offset": {article: row.tolist() for article, row in self._table.items()}} | chosen

    @classmethod
    def from_stored(cls, parameters: Mapping[str, Any], callables: Mapping[str, Any]) -> Self:
        """Files that do not say what is averaged are older than the choice."""
        return super().from_stored({"average": "payoff"} | dict(parameters), callables)

    def callables(self) -> tuple[str, ...]:
        """The offset, if it is a function."""
        return () if self._function is None else ("offset",)

    @property
    def compiles(self) -> bool:
        """Only with a table."""
        return self._function is None

    def _fresh(self, capacity: int, dimension: int) -> Averages:
        state = super()._fresh(capacity, dimension)
        return state._replace(
            offset=np.zeros((capacity, dimension)),
            bonus=np.zeros(capacity),
            residual=self.average == "residual",
        )

    def _check(self, dimension: int) -> None:
        for article, weights in self._table.items():
            if len(weights) != dimension:
                raise ValueError(
                    f"the offset of article {article!r} has {len(weights)} weights, "
                    f"but a context has {dimension} features"
                )

    def _place(self, slot: int, article: str) -> None:
        if article in self._table:
            self.state.offset[slot] = self._table[article]

    def prepare_trial(self, user: Floats, article: str) -> None:
        """Ask the function for the offset of the user to whom the article was shown."""
        self.prepare(user, [article])

    def prepare(self, user: Floats, pool: Sequence[str]) -> None:
        """Ask the function for the user's offsets."""
        if self._function is not None:
            for article in pool:
                offset = float(self._function(user, article))
                if not np.isfinite(offset):
                    raise ValueError(f"the offset of article {article!r} is {offset}, not a number")
                self.state.bonus[self.roster.slot(article)] = offset
