"""The base of every explorer."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from topstory.kernels.compilation import Floats


@dataclass(frozen=True)
class Explorer:
    """Chooses, given estimates and widths: the best estimate + α·width, or a uniform draw.

    To the kernels an explorer is two numbers: `bonus` is α, and `share` is the probability of a
    uniform draw from the pool.
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

    def scores(self, estimates: Floats, widths: Floats) -> Floats:
        """What the articles are compared by."""
        # Not estimates + 0·widths: an unseen article's width may be infinite.
        return estimates + self.bonus * widths if self.bonus > 0 else np.array(estimates)

    @classmethod
    def of(cls, **parameters: Any) -> Self:
        """The explorer with the parameters that a registered policy was given."""
        return cls(**parameters)

    def parameters(self) -> dict[str, Any]:
        """The arguments that would create this explorer again."""
        return asdict(self)
