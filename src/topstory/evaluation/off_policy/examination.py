"""A closer look at an evaluation: what it rests on, and what would change its conclusion."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topstory.evaluation.off_policy.estimators.registry import ESTIMATORS, estimator_called
from topstory.evaluation.off_policy.estimators.weighted_events import WeightedEvents
from topstory.evaluation.off_policy.judging import LOGGED, LogJudge
from topstory.evaluation.off_policy.sensitivity import LARGEST, robust_to
from topstory.evaluation.off_policy.value import (
    ArticleSupport,
    Examination,
    PolicyValue,
    Quantity,
    WeightBin,
    lift_number,
)
from topstory.evaluation.off_policy.weighting.weights import propensities
from topstory.evaluation.replays.prepared_log import chunks
from topstory.events import EventLog

EDGES = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
MAX_ARTICLES = 12
LARGE = 0.01  # the share of events with the largest weights, to be left out
FEW_DAYS = 2


def examined(
    judge: LogJudge, log: EventLog, baseline: str, names: list[str] | None = None
) -> dict[str, Examination]:
    """Look closely at the policies of a judge whose events have payoffs predicted."""
    found = {}
    for name in names or list(judge.events):
        if name == baseline:
            continue
        events, worth = judge.events[name], judge.value(name, baseline)
        others = LogJudge(
            log,
            dict.fromkeys(ESTIMATORS, events),
            {each: estimator_called(each).fitted(events) for each in ESTIMATORS},
        )
        estimates = {each: others.value(each, LOGGED).value for each in ESTIMATORS}
        base = None if baseline == LOGGED else judge.events[baseline]
        found[name] = Examination(
            name,
            _weights(events),
            _articles(log, events),
            estimates,
            tuple(_turns(log, events, base, worth, estimates)),
        )
    return found


def _weights(events: WeightedEvents) -> tuple[WeightBin, ...]:
    weight, total = events.weight, float(events.weight.sum()) or 1.0
    n = max(1, len(weight))
    found = [WeightBin(0.0, 0.0, float((weight == 0).sum()) / n, 0.0)]
    for low, high in zip(EDGES, (*EDGES[1:], np.inf), strict=True):
        mine = (weight > low) & (weight <= high)
        if mine.any():
            share = float(weight[mine].sum()) / total
            found.append(WeightBin(low, high, float(mine.mean()), share))
    return tuple(found)


def _articles(log: EventLog, events: WeightedEvents) -> tuple[ArticleSupport, ...]:
    """Those that the policy would show most, the most first."""
    count = len(log.article_ids)
    shown, wanted, inverse, squares = (np.zeros(count) for _ in range(4))
    for start, stop in chunks(len(log)):
        article = log.shown_index[start:stop]
        weight = 1 / propensities(log, start, stop)
        shown += np.bincount(article, minlength=count)
        wanted += np.bincount(article, events.weight[start:stop], minlength=count)
        inverse += np.bincount(article, weight, minlength=count)
        squares += np.bincount(article, weight**2 - weight, minlength=count)
    served = np.bincount(log.pool, minlength=len(log.pool_sizes))
    offered = np.bincount(
        log.pool_members, np.repeat(served, log.pool_sizes), minlength=count
    ).astype(np.float64)
    total = float(events.weight.sum()) or 1.0
    return tuple(
        ArticleSupport(
            log.article_ids[a],
            int(offered[a]),
            int(shown[a]),
            float(wanted[a] / total),
            float(inverse[a] / offered[a]),
            float(max(0.0, squares[a]) ** 0.5 / offered[a]),
        )
        for a in np.argsort(-wanted, kind="stable")[:MAX_ARTICLES].tolist()
        if offered[a]
    )


def _turns(
    log: EventLog,
    events: WeightedEvents,
    base: WeightedEvents | None,
    worth: PolicyValue,
    estimates: Mapping[str, Quantity],
) -> list[str]:
    """Sentences."""
    low, high = worth.lift.best_interval
    sure = low > 0 or high < 0
    turns = []
    if not sure and worth.smallest_lift == worth.smallest_lift:
        turns.append(
            f"A lift would have to be {lift_number(worth.smallest_lift)} % for this log to show "
            "it: a longer log, or one that shows more of what this policy would show, could decide."
        )
    factor = robust_to(log, events, base)
    if factor is not None:
        least = "more than " if factor >= LARGEST else ""
        turns.append(
            f"Propensities whose true odds differ by a factor of {least}{factor:.2f} from those "
            "used, in the worst way."
        )
    value = float(events.weight @ events.payoff) / (float(events.weight.sum()) or np.nan)
    keep = events.weight <= np.quantile(events.weight, 1 - LARGE)
    rest = float(events.weight[keep].sum())
    if rest > 0:
        without = float(events.weight[keep] @ events.payoff[keep]) / rest
        turns.append(
            f"Without the {LARGE:.0%} of events with the largest weights the value is "
            f"{without:.4g}, not {value:.4g}."
        )
    robust = [estimates[name].value for name in ("snips", "ips", "dr")]
    turns.append(
        f"By snips, ips and dr the value is {min(robust):.4g} to {max(robust):.4g}; "
        + (
            "that is within the interval."
            if worth.value.best_interval.low <= min(robust)
            and max(robust) <= worth.value.best_interval.high
            else "that is wider than the interval: do not trust it."
        )
    )
    turns += _days(log, events)
    return turns


def _days(log: EventLog, events: WeightedEvents) -> list[str]:
    if log.times is None:
        return []
    days = log.times.days(0, len(log))
    each, which = np.unique(days, return_inverse=True)
    weight = np.bincount(which, events.weight)
    if len(each) < FEW_DAYS or not (weight > 0).all():
        return []
    logged = np.bincount(which, events.payoff) / np.bincount(which)
    own = np.bincount(which, events.weight * events.payoff) / weight
    better = int((own > logged).sum())
    return [f"It earned more than was logged on {better} of {len(each)} days."]
