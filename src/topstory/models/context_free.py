"""Each article's average payoff, the same for every user."""

from typing import ClassVar

from topstory.models.averages import AverageModel


class ContextFree(AverageModel):
    """The model of the paper's ε-greedy and ucb (§5.3 I): the mean payoff, width 1/√n.

    >>> model = ContextFree()
    >>> model.name
    'context-free'
    """

    name: ClassVar[str] = "context-free"
