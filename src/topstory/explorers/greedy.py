"""Exploit only."""

from dataclasses import dataclass
from typing import ClassVar

from topstory.explorers.explorer import Explorer


@dataclass(frozen=True)
class Greedy(Explorer):
    """Always the best estimate: how the deployment bucket is served (§5.4).

    >>> import numpy as np
    >>> Greedy().scores(np.array([0.1, 0.2]), np.array([9.0, 0.0]))
    array([0.1, 0.2])
    """

    name: ClassVar[str] = "greedy"
