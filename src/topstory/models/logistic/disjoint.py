"""A logistic regression for each article."""

from typing import Any, ClassVar

from topstory.kernels.compilation import Floats
from topstory.models.disjoint import DisjointLinear
from topstory.models.linear import PAPER_RIDGE
from topstory.models.logistic.model import RATE, LogisticModel, click_rate, plain_ridge


class LogisticDisjoint(LogisticModel, DisjointLinear):
    """Disjoint log-odds: P(click) = 1/(1 + exp(−xᵀθ_a)), a logistic regression for each article.

    Each trial is one Newton step, in two halves: payoffs may come late. An upper confidence bound
    and Thompson sampling add widths to log-odds, so no bound is below 0 or above 1.

    Args:
        ridge: the weight of the prior, on the scale of log-odds: the inverse of a variance.
        rate: the click rate of a new article, at which the constant's coefficient starts.

    >>> LogisticDisjoint(rate=0.04).parameters()
    {'ridge': 1.0, 'rate': 0.04}
    """

    name: ClassVar[str] = "logistic-disjoint"

    def __init__(self, ridge: float | None = None, rate: float = RATE) -> None:
        DisjointLinear.__init__(self, plain_ridge(ridge))
        self.rate = click_rate(rate)

    def parameters(self) -> dict[str, Any]:
        """The ridge, and the rate."""
        return {"ridge": self.given_ridge or PAPER_RIDGE, "rate": self.rate}

    def own_start(self) -> tuple[Floats, Floats]:
        """A and b of an article without trials."""
        A, b = super().own_start()
        b[-1] = A[0, 0] * self.start
        return A, b
