"""Whether a log is fit for replay, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from topstory.events.columns.array_record import blocks
from topstory.events.quality.uniformity import Uniformity

if TYPE_CHECKING:
    from topstory.events.log import EventLog

SIGNIFICANCE_LEVEL = 0.001  # a fair log fails the test once in a thousand


class Verdict(msgspec.Struct, frozen=True):
    """Whether a log is fit, why, and what else to know before trusting a replay."""

    fit: bool
    sentences: tuple[str, ...]
    survivors: float | None = None  # share that rejection sampling keeps; None: not needed


def judge(log: EventLog, found: Uniformity) -> Verdict:
    """The verdict on a log, given its uniformity test.

    >>> from topstory.events import EventLog
    >>> shown = ["a"] * 500 + ["b"] * 500
    >>> log = EventLog.from_arrays(
    ...     np.ones((1000, 1)), [["a", "b"]], [0] * 1000, shown, np.arange(1000) % 2
    ... )
    >>> print(judge(log, log.uniformity()).sentences[0])
    Fit for replay: articles were shown uniformly at random (p = 1).
    """
    if not len(log):
        return Verdict(False, ("Not fit for replay: the log has no events.",))
    fit, survivors = True, None
    if log.recorded_propensity is not None:
        survivors = _survivors(log)
        reason = (
            "Fit for replay by rejection sampling: propensities are recorded and not uniform; "
            f"about {survivors:.1%} of the events survive."
        )
    elif not found.degrees_of_freedom:
        reason = (
            "Too few events to test whether articles were shown uniformly: "
            "replay takes it on trust."
        )
    elif found.p_value >= SIGNIFICANCE_LEVEL:
        reason = (
            f"Fit for replay: articles were shown uniformly at random (p = {found.p_value:.2g})."
        )
    else:
        fit = False
        reason = (
            "Not fit for replay: articles were not shown uniformly at random "
            f"(p = {found.p_value:.2g}) and no propensities are recorded; "
            "replaying it gives biased numbers. Record the probability of each choice, "
            "or log a share of the traffic with uniformly random choices."
        )
    return Verdict(fit, (reason, *_remarks(log, found)), survivors)


def _survivors(log: EventLog) -> float:
    """Rejection sampling keeps event t with probability c / (K_t p_t), where c = min K_t p_t."""
    lowest, total = np.inf, 0.0
    for start, stop in blocks(len(log)):
        sizes = log.pool_sizes[log.pool[start:stop]]
        ratio = sizes * log.propensity[start:stop].astype(np.float64)
        lowest = min(lowest, float(ratio.min()))
        total += float((1.0 / ratio).sum())
    return lowest * total / len(log)


def _remarks(log: EventLog, found: Uniformity) -> list[str]:
    remarks = []
    if log.recorded_propensity is None and found.standouts:
        worst = found.standouts[0]
        remarks.append(
            f"{_count(len(found.standouts), 'article stands', 'articles stand')} out; "
            f"most of all {worst.article!r}, shown {worst.shown:,} times where "
            f"{worst.expected:,.0f} were expected."
        )
    if found.never_shown:
        worst_case = found.never_shown[0]
        remarks.append(
            f"{_count(len(found.never_shown), 'article was', 'articles were')} never shown from "
            f"pools that list them: {worst_case.article!r} in {worst_case.events:,} events, say. "
            "In a change-over interval a pool may list what cannot be shown yet: "
            "take such articles out of those pools."
        )
    alone = len(log) - found.events
    if alone == len(log):
        remarks.append("Every pool holds a single article: there is nothing to choose.")
    elif alone:
        remarks.append(
            f"{_count(alone, 'event', 'events')} had a pool of a single article, "
            "which every policy gets right."
        )
    lowest, highest = float(log.payoff.min()), float(log.payoff.max())
    if lowest == highest:
        remarks.append(f"Every payoff is {lowest:g}: no policy can differ from another.")
    if log.times is None:
        remarks.append(
            "The log has no timestamps: intervals are computed over blocks of events, "
            "not of an hour."
        )
    return remarks


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
