"""The base of every explorer."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from topstory.kernels.choice import probabilities
from topstory.kernels.compilation import Floats
from topstory.kernels.explorers.bounds import Bounds

WORK = 24  # numbers for each article that a kernel's `work` has room for


@dataclass(frozen=True)
class Explorer:
    """Turns estimates and widths into a probability for every article of the pool.

    The kernels know it by its `rule`. By default that is the best estimate + α·width, or a uniform
    draw: `bonus` is α, and `share` is the probability of the draw.
    """

    name: ClassVar[str]

    @property
    def bonus(self) -> float:
        """How many widths are added to an estimate."""
        return 0.0

    @property
    def share(self) -> float:
        """The probability of a uniform draw instead of the best score."""
        return 0.0

    @property
    def rule(self) -> Any:
        """What the kernels choose by: a tuple of numbers, whose type says how."""
        return Bounds(float(self.bonus), float(self.share), 0.0)

    def scores(self, estimates: Floats, widths: Floats) -> Floats:
        """What the articles are compared by, before anything is drawn."""
        # Not estimates + 0·widths: an unseen article's width may be infinite.
        return estimates + self.bonus * widths if self.bonus > 0 else np.array(estimates)

    def probabilities(
        self, estimates: npt.ArrayLike, widths: npt.ArrayLike, trials: int = 0
    ) -> Floats:
        """(articles,) how likely each one is chosen; `trials` were learned from so far."""
        means, spreads = (np.array(each, np.float64) for each in (estimates, widths))
        if means.ndim != 1 or not len(means) or means.shape != spreads.shape:
            raise ValueError(
                "estimates and widths must be two vectors of the same length, got shapes "
                f"{means.shape} and {spreads.shape}"
            )
        if not (np.isfinite(means).all() and (spreads >= 0).all()):
            raise ValueError("estimates must be finite numbers, and widths at least 0")
        found = np.empty(len(means))
        probabilities(self.rule, means, spreads, trials, found, np.empty(WORK * len(means)))
        return found

    @classmethod
    def of(cls, **parameters: Any) -> Self:
        """The explorer with the parameters that a registered policy was given."""
        return cls(**parameters)

    def parameters(self) -> dict[str, Any]:
        """The arguments that would create this explorer again."""
        return asdict(self)
