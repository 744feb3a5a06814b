"""What in a log will hurt: said before somebody trains on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import blocks
from topstory.events.columns.contexts import SparseContexts

if TYPE_CHECKING:
    from topstory.events.log import EventLog

LARGE = 10.0  # a feature beyond this is not on the scale of the prior
HEAVY_VISITORS, HEAVY_EVENTS = 0.01, 0.9  # this share of visitors made this share of events
MIN_VISITORS = 100  # of fewer, one per cent is nobody
MAX_REPEATS = 0.001  # share of events that may be alike by chance: times are in seconds
MAX_COMPARED = 2_000_000  # events among which repeats are looked for


def hazards(log: EventLog) -> tuple[str, ...]:
    """Sentences, each with what to do; none if nothing was found.

    >>> from topstory.events import EventLog
    >>> log = EventLog.from_arrays([[0.0], [70.0]], [["a"]], [0, 0], ["a", "a"], [0, 1])
    >>> for sentence in hazards(log):
    ...     print(sentence.split(":")[0])
    No feature of the contexts is constant
    Context feature 0 goes from 0 to 70
    """
    if not len(log):
        return ()
    return (*_contexts(log), *_payoffs(log), *_visitors(log))


def repeated_events(log: EventLog) -> int | None:
    """Events that equal an earlier one in time, visitor, pool, article and payoff.

    None: the log has no times, or does not say who came. Of a long log, its first 2 M events.
    """
    visitor = log.visitor_number
    if log.times is None or visitor is None:
        return None
    known = np.flatnonzero(visitor[:MAX_COMPARED] >= 0)
    columns: list[npt.NDArray[Any]] = [
        log.times.microseconds(0, min(len(log), MAX_COMPARED))[known],
        visitor[known],
        log.pool[known],
        log.position[known],
        log.payoff[known],
    ]
    order = np.lexsort(columns)
    same = np.ones(max(len(order) - 1, 0), bool)
    for column in columns:
        ordered = column[order]
        same &= ordered[1:] == ordered[:-1]
    return int(same.sum())


def _contexts(log: EventLog) -> Iterator[str]:
    if isinstance(log.users, SparseContexts):
        on = np.bincount(log.users.indices, minlength=log.dimension)
        if not (on == len(log)).any():
            yield _no_constant()
        return
    lowest, highest, binary, ones = _ranges(log)
    constant = (lowest == highest) & (lowest != 0)
    if not constant.any():
        yield _no_constant()
    for i in np.flatnonzero(np.maximum(-lowest, highest) > LARGE)[:3].tolist():
        yield (
            f"Context feature {i} goes from {lowest[i]:g} to {highest[i]:g}: the ridge treats all "
            "features alike, so scale it to about -1 to 1 (`topstory features fit --method direct` "
            "does that to raw profiles)."
        )
    if binary and ones > 1 and log.dimension > 2:
        yield (
            f"Contexts are zeros and ones, up to {ones} ones each beside the constant: `seg` "
            "policies take the first as the user's segment, and know nothing of the others."
        )


def _no_constant() -> str:
    return (
        "No feature of the contexts is constant: without the constant 1 a linear model cannot "
        "learn how good an article is for everybody (import with -o constant=yes, or append it)."
    )


def _ranges(
    log: EventLog,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], bool, int]:
    """Of each feature the ends; whether all are 0 or 1, and the most ones, the last one aside."""
    users = np.asarray(log.users if log.visitors is None else log.visitors.contexts)
    lowest, highest = np.full(log.dimension, np.inf), np.full(log.dimension, -np.inf)
    binary, ones = True, 0
    for start, stop in blocks(len(users)):
        part = users[start:stop]
        lowest = np.minimum(lowest, part.min(axis=0))
        highest = np.maximum(highest, part.max(axis=0))
        binary = binary and bool(((part == 0) | (part == 1)).all())
        if binary:
            ones = max(ones, int(part[:, :-1].sum(axis=1).max(initial=0)))
    return lowest, highest, binary, ones


def _payoffs(log: EventLog) -> Iterator[str]:
    lowest, highest = float(log.payoff.min()), float(log.payoff.max())
    if (mean := float(log.payoff.mean(dtype=np.float64))) <= 0 and highest > lowest:
        yield (
            f"The mean payoff is {mean:g}, not above 0: nothing can be so many times as good, so "
            "there are no relative payoffs, and nothing to tune by. Add a constant to every payoff."
        )
    if not bool(((log.payoff == 0) | (log.payoff == 1)).all()):
        yield (
            f"Payoffs go from {lowest:g} to {highest:g}, not 0 or 1: a rate is a mean payoff here, "
            "and α and temperatures are on its scale (`topstory tune` scales its grid)."
        )


def _visitors(log: EventLog) -> Iterator[str]:
    visitor = log.visitor_number
    if visitor is not None:
        counts = np.sort(np.unique(visitor[visitor >= 0], return_counts=True)[1])[::-1]
        few = int(len(counts) * HEAVY_VISITORS)
        if len(counts) >= MIN_VISITORS and counts[:few].sum() > HEAVY_EVENTS * counts.sum():
            share = counts[:few].sum() / counts.sum()
            yield (
                f"{few:,} of {len(counts):,} visitors made {share:.0%} of the events: robots, or "
                "one id for many people? Results are about them, and intervals too narrow."
            )
    repeats = repeated_events(log) or 0
    if repeats > MAX_REPEATS * min(len(log), MAX_COMPARED):
        yield (
            f"{repeats:,} events repeat another of the same visitor, time, article and payoff: an "
            "export that was joined or sent twice? Name the event's id in the mapping (event = "
            '"…"), and repeats are dropped.'
        )
