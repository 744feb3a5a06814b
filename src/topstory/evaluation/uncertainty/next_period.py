"""What another day or week may bring, from how much the log's own days differ.

An interval over clicks and learning paths is about the days of the log. Other days have other
articles and other news: the same policy's relative CTR differs from day to day by more than clicks
explain. So the spread between days gives a prediction interval, Student's: a day's log CTR is
expected within t·s·√(1 + 1/D) of the mean of D days, that of a week's mean within t·s·√(1/7 + 1/D).
It assumes that another day is drawn as these were; a season or a redesign is not in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topstory.evaluation.blocks import HOUR, Blocks
from topstory.evaluation.intervals import Interval, quantile
from topstory.evaluation.result import Bucket
from topstory.kernels.compilation import Floats
from topstory.kernels.scans.replay import PAYOFF, TRIALS

MIN_DAYS = 5  # with fewer, an interval is too wide to be of use
DAYS_OF_A_WEEK = 7


@dataclass(frozen=True)
class NextPeriod:
    """95 % prediction intervals of the relative CTR of a period that is not in the log."""

    days: int  # whole days of the log, which they come from
    spread: float  # the standard deviation between days, of the relative CTR
    day: Interval  # of another day
    week: Interval  # of the mean of another week


def next_period(runs: Sequence[Bucket]) -> NextPeriod | None:
    """From the runs of one policy on one log; None if it has fewer than five whole days.

    >>> from topstory.evaluation.blocks import Blocks
    >>> trials, hours = np.full(240, 100.0), Blocks(240, HOUR, 0)
    >>> base = np.column_stack([trials, np.full(240, 4.0), trials, trials])
    >>> better = np.repeat([5, 6, 5, 7, 6, 6, 5, 7, 6, 7], 24)  # clicks an hour on each of ten days
    >>> sums = np.column_stack([trials, better, trials, trials])
    >>> found = next_period([Bucket(sums, base, hours, True)])
    >>> found.days, round(found.day.low, 2), round(found.day.high, 2)
    (10, 1.07, 2.06)
    """
    first = runs[0]
    per_day = _blocks_of_a_day(first.blocks)
    if per_day is None:
        return None
    ours, base = (
        _by_day(np.sum(sums, axis=0), per_day)
        for sums in ([run.sums for run in runs], [run.log_sums for run in runs])
    )
    whole = (ours[:, PAYOFF] > 0) & (base[:, PAYOFF] > 0)
    days = int(whole.sum())
    if days < MIN_DAYS:
        return None
    ours, base = ours[whole], base[whole]
    relative = (ours[:, PAYOFF] / ours[:, TRIALS]) / (base[:, PAYOFF] / base[:, TRIALS])
    logs = np.log(relative)
    mean, spread = float(logs.mean()), float(logs.std(ddof=1))
    reach = quantile(days - 1, 0.95) * spread

    def around(share: float) -> Interval:
        half = reach * (share + 1 / days) ** 0.5
        return Interval(float(np.exp(mean - half)), float(np.exp(mean + half)))

    return NextPeriod(days, float(relative.std(ddof=1)), around(1.0), around(1 / DAYS_OF_A_WEEK))


def _blocks_of_a_day(blocks: Blocks) -> int | None:
    """How many blocks make a day; None where days are not known."""
    day = 24 * HOUR
    return day // blocks.width if blocks.origin is not None and day % blocks.width == 0 else None


def _by_day(sums: Floats, per_day: int) -> Floats:
    """(days, 4) from the log's start; what is left at its end is no whole day."""
    days = len(sums) // per_day
    return np.asarray(sums[: days * per_day].reshape(days, per_day, sums.shape[1]).sum(axis=1))
