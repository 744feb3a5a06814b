"""No model at all."""

from typing import ClassVar

from topstory.models.averages import Averages


class Nothing(Averages):
    """Expects the same of every article and never learns: what the paper's `random` has (§5.3 I).

    >>> Nothing().learns
    False
    """

    name: ClassVar[str] = "nothing"
    learns: ClassVar[bool] = False
