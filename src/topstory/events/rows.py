"""Some rows of a log, as a log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from topstory.events.columns.contexts import take_contexts
from topstory.events.columns.propensity import is_uniform

if TYPE_CHECKING:
    from pyarrow import Table

    from topstory.events.log import EventLog

Rows = slice | npt.NDArray[np.intp]


def take_rows(log: EventLog, rows: Rows) -> EventLog:
    """The events of these rows; of a slice, views of the log's columns."""
    propensity = log.recorded_propensity
    pool = log.pool[rows]
    return replace(
        log,
        users=take_contexts(log.users, rows),
        pool=pool,
        position=log.position[rows],
        payoff=log.payoff[rows],
        recorded_propensity=None if propensity is None else propensity[rows],
        times=None if log.times is None else log.times[rows],
        visitors=None if log.visitors is None else log.visitors[rows],
        recorded_count=_recorded_among(log, rows, pool),
        exact=None if log.exact is None else log.exact[rows],
        decisions=_decisions_of(log, rows),
        varying=None if log.varying is None else log.varying[rows],
    )


def _decisions_of(log: EventLog, rows: Rows) -> Table | None:
    if log.decisions is None:
        return None
    from topstory.events.columns.decisions import take_decisions

    return take_decisions(log.decisions, rows)


def _recorded_among(log: EventLog, rows: Rows, pool: npt.NDArray[np.int32]) -> int | None:
    """At least this many: which events lack a propensity is not kept, but theirs is uniform."""
    if log.recorded_count is None or log.recorded_count == len(log):
        return None if log.recorded_count is None else len(pool)
    lacking = len(log) - log.recorded_count
    if log.recorded_propensity is not None:
        alike = is_uniform(log.recorded_propensity[rows], pool, log.pool_table)
        lacking = min(lacking, int(alike.sum()))
    return max(0, len(pool) - lacking)
