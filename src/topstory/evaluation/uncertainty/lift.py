"""How much more one policy earned than another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topstory.evaluation.intervals import Interval
from topstory.evaluation.result import Result
from topstory.evaluation.uncertainty.repeats import mean_lift
from topstory.kernels.scans.replay import PAYOFF, TRIALS


@dataclass(frozen=True)
class Lift:
    """How much more one policy earned than another: 0.1 is 10 % more."""

    value: float
    interval: Interval
    too_short: bool = False  # the difference changes too slowly for the log's length: no interval


def lift(
    result: Result | Sequence[Result],
    over: Result | Sequence[Result],
    bucket: str = "deployment",
    level: float = 0.95,
) -> Lift:
    """The lift of one policy's CTR over another's on the same log, compared block by block.

    Of one replay each, the interval is about this log and these two learning paths. Give several,
    with the same seeds in the same order, and it covers other paths too; `ts.compare` does that.

    Args:
        result: the policy in question: one replay, or one for each seed.
        over: what it is compared with, such as ε-greedy in the paper's Table 1.
        bucket: `deployment` or `learning`.
        level: of the interval.

    >>> import topstory as ts
    >>> log = ts.EventLog.from_arrays(
    ...     np.ones((400, 1)), [["a", "b"]], [0] * 400, ["a", "b"] * 200, [0, 1] * 200
    ... )
    >>> better, worse = ts.replay(ts.policy("omniscient"), log), ts.replay(ts.policy("random"), log)
    >>> better.deployment.ctr, lift(better, over=worse).value > 0.5
    (1.0, True)
    """
    if bucket not in ("deployment", "learning"):
        raise ValueError(f"bucket must be 'deployment' or 'learning', got {bucket!r}")
    ours, theirs = ([each] if isinstance(each, Result) else list(each) for each in (result, over))
    if len(ours) != len(theirs) or not all(map(_same_log, ours, theirs)):
        raise ValueError(
            "a lift compares two replays of the same log (and, if its propensities "
            "are not uniform, the same seed); these are of different ones"
        )
    if bucket == "deployment" and not all(hasattr(each.policy, "greedy") for each in ours + theirs):
        raise ValueError(
            "a policy of your own has a deployment bucket only with a method greedy(user, pool); "
            "compare the learning buckets with bucket='learning'"
        )
    value, interval = mean_lift(
        [getattr(each, bucket) for each in ours],
        [getattr(each, bucket) for each in theirs],
        level=level,
    )
    too_short = value == value and interval.low != interval.low
    if value != value:  # without a payoff there is no interval, but there may be a lift: of -100 %
        value = _rate(ours, bucket) / base - 1 if (base := _rate(theirs, bucket)) > 0 else value
    return Lift(value, interval, too_short)


def _same_log(ours: Result, theirs: Result) -> bool:
    a, b = ours.learning, theirs.learning
    return a.blocks == b.blocks and np.array_equal(a.log_sums, b.log_sums)


def _rate(results: Sequence[Result], bucket: str) -> float:
    trials, payoff = (
        sum(float(getattr(each, bucket).sums[:, column].sum()) for each in results)
        for column in (TRIALS, PAYOFF)
    )
    return payoff / trials if trials else float("nan")
