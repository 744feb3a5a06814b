"""Draw at random."""

from dataclasses import dataclass
from typing import ClassVar

from topstory.explorers.explorer import Explorer


@dataclass(frozen=True)
class Uniform(Explorer):
    """Every article with the same probability: the paper's `random`.

    >>> Uniform().share
    1.0
    """

    name: ClassVar[str] = "uniform"

    @property
    def share(self) -> float:
        """1."""
        return 1.0
