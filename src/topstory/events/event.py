"""One logged visit."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from topstory.events.columns.times import as_datetime

if TYPE_CHECKING:
    from topstory.events.log import EventLog


class Event(msgspec.Struct, frozen=True, eq=False):
    """One visit: the user, the pool, the article shown, and its payoff.

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


def event_of(log: EventLog, i: int) -> Event:
    """Event i of a log."""
    number = int(log.pool[i])
    begin, end = int(log.pool_offsets[number]), int(log.pool_offsets[number + 1])
    ids = tuple(log.article_ids[a] for a in log.pool_members[begin:end])
    propensity, times = log.recorded_propensity, log.times
    return Event(
        user=log.context(i),
        pool=ids,
        shown=ids[log.position[i]],
        payoff=float((log.payoff if log.exact is None else log.exact.payoff)[i]),
        propensity=1.0 / len(ids) if propensity is None else float(propensity[i]),
        timestamp=None if times is None else as_datetime(int(times.microseconds(i, i + 1)[0])),
    )
