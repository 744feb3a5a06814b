"""No model at all."""

from typing import ClassVar

from topstory.models.averages import AverageModel


class NoModel(AverageModel):
    """Expects the same of every article and never learns: the paper's `random` (§5.3 I).

    >>> NoModel().learns
    False
    """

    name: ClassVar[str] = "nothing"  # as stored policies have it
    learns: ClassVar[bool] = False
