"""Logistic regressions of articles that share coefficients."""

from typing import Any, ClassVar

from topstory.kernels.compilation import Floats
from topstory.models.hybrid.model import HybridLinear
from topstory.models.logistic.model import RATE, LogisticModel, click_rate, plain_ridge


class LogisticHybrid(LogisticModel, HybridLinear):
    """Hybrid log-odds: P(click) = 1/(1 + exp(−zᵀβ − xᵀθ_a)), with β shared by all articles.

    Args:
        ridge: the weight of the prior of each θ_a, on the scale of log-odds.
        shared_ridge: the same for β.
        rate: the click rate before any trial, at which β's constant starts.
        event_features: as `HybridLinear` has it.

    >>> LogisticHybrid(ridge=3).parameters()
    {'ridge': 3.0, 'shared_ridge': 1.0, 'rate': 0.05}
    """

    name: ClassVar[str] = "logistic-hybrid"

    def __init__(
        self,
        ridge: float | None = None,
        shared_ridge: float | None = None,
        rate: float = RATE,
        event_features: int = 0,
    ) -> None:
        HybridLinear.__init__(self, plain_ridge(ridge), shared_ridge, event_features=event_features)
        self.rate = click_rate(rate)

    def parameters(self) -> dict[str, Any]:
        """Both ridges, and the rate."""
        return {**super().parameters(), "rate": self.rate}

    def shared_start(self) -> tuple[Floats, Floats]:
        """A0 and b0 before any trial."""
        A0, b0 = super().shared_start()
        place = -1 - self.event_features  # of the constants of user and article
        b0[place] = A0[place, place] * self.start
        return A0, b0
