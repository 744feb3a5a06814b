"""Each article's average payoff, the same for every user."""

from typing import ClassVar

from topstory.models.averages import AverageModel
from topstory.models.priors.prior import Prior


class ContextFree(AverageModel):
    """The model of the paper's ε-greedy and ucb (§5.3 I): the mean payoff, width 1/√n.

    Args:
        prior: where a new article starts, learned from an earlier log (`ts.fit_prior`): at the mean
            of the articles there, as if it had been shown before. By default nothing is known.

    >>> model = ContextFree()
    >>> model.name
    'context-free'
    """

    name: ClassVar[str] = "context-free"

    def __init__(self, prior: Prior | None = None) -> None:
        super().__init__()
        self.prior = prior
