"""One logged visit."""

from __future__ import annotations

from datetime import datetime

import msgspec
import numpy as np
import numpy.typing as npt


class Event(msgspec.Struct, frozen=True, eq=False):
    """Who came, what could have been shown, what was, and what it paid.

    >>> Event(user=np.array([0.2, 1.0]), pool=("a", "b"), shown="b", payoff=1.0, propensity=0.5)
    Event(user=array([0.2, 1. ]), pool=('a', 'b'), shown='b', payoff=1.0, propensity=0.5, \
timestamp=None)
    """

    user: npt.NDArray[np.float64]  # (d,)
    pool: tuple[str, ...]
    shown: str
    payoff: float
    propensity: float
    timestamp: datetime | None = None  # aware, UTC; None: the log has no times
