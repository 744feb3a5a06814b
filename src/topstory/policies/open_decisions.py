"""Decisions whose payoffs may still come, for policies that learn from how a choice was made."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

MAX_REMEMBERED = 100_000  # decisions that are remembered

Made = TypeVar("Made")


class OpenDecisions(Generic[Made]):
    """How each of the last decisions was made, by user and article.

    >>> made = OpenDecisions[float]()
    >>> made.add([1.0], "rain", 0.5)
    >>> made.take([1.0], "rain"), made.take([1.0], "rain")
    (0.5, None)
    """

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[bytes, str], Made] = OrderedDict()

    def add(self, user: npt.ArrayLike, article: str, made: Made) -> None:
        """Remember a decision, and forget the oldest if they are too many."""
        key = _key(user, article)
        self._made.pop(key, None)
        self._made[key] = made
        if len(self._made) > MAX_REMEMBERED:
            self._made.popitem(last=False)

    def take(self, user: npt.ArrayLike, article: str) -> Made | None:
        """How it was made, if that is known; it is forgotten then."""
        return self._made.pop(_key(user, article), None)


def _key(user: npt.ArrayLike, article: str) -> tuple[bytes, str]:
    return np.asarray(user, np.float64).tobytes(), article
