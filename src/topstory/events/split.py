"""Cutting a log in two: an earlier and a later part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from topstory.events.columns.pools import PoolTable
from topstory.events.columns.times import TimeLike, parse_time

if TYPE_CHECKING:
    from topstory.events.log import EventLog


def split(log: EventLog, at: float | TimeLike) -> tuple[EventLog, EventLog]:
    """`EventLog.split`."""
    events = len(log)
    if isinstance(at, int | float) and 0 < at < 1:
        cut = round(at * events)
        first, second = log[:cut], log[cut:]
        where = f"{at:g} of the events"
    else:
        if isinstance(at, int | float) and at <= 1:
            raise ValueError(
                f"at must be a share between 0 and 1, such as 0.8, or a time, got {at!r}"
            )
        if log.times is None:
            raise ValueError("this log has no timestamps: split it by a share, such as 0.8")
        edge = parse_time(at)
        earlier = log.times.within(None, edge)
        first, second = log[np.flatnonzero(earlier)], log[np.flatnonzero(~earlier)]
        where = str(at)
        if isinstance(at, int | float):
            where += ", read as seconds since 1970; a share is between 0 and 1"
    if not len(first) or not len(second):
        side = "after" if not len(first) else "before"
        span = "" if log.times is None else f", which is from {log.times.span()}"
        raise ValueError(
            f"all {events:,} events of the log{span}, are {side} {where}: nothing is on the other "
            "side of it"
        )
    return on_its_own(first), on_its_own(second)


def on_its_own(part: EventLog) -> EventLog:
    """A part of a log with its own users, pools and articles only; rows of a log share all of them.

    So what is made of a part, such as a feature model, knows nothing of the others.
    """
    pools, pool = np.unique(part.pool, return_inverse=True)
    table = part.pool_table
    sizes = table.sizes[pools]
    starts = np.cumsum(sizes) - sizes
    within = np.arange(sizes.sum()) - np.repeat(starts, sizes)
    members = table.members[np.repeat(table.offsets[pools], sizes) + within]
    articles, member = np.unique(members, return_inverse=True)
    return replace(
        part,
        pool=pool.astype(np.int32),
        pool_table=PoolTable(np.append(starts, sizes.sum()), member.astype(np.int32)),
        article_table=part.article_table.take(articles),
        visitors=None if part.visitors is None else part.visitors.that_came(),
    )
