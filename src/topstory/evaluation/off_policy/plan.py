"""How much exploration it takes to see a lift, for how long, and what that costs.

A share u of visitors is shown an article at random. Of those, one in K is shown what a new policy
would show, so after n visits its value is known from u·n/K of them, and what is shown today from
(1 − u)·n. A lift L is seen with 80 % probability, at 5 % error, once

    (1.96 + 0.84) · √(f · (spread/value)² · (K/(u·n) + 1/((1 − u)·n)))  ≤  ln(1 + L)

where f says how much less the log's events tell than independent ones: measured, at least 1.
Evaluation that also weights the other visitors, whose propensities a service records, needs less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topstory.evaluation.uncertainty.clusters import clustered_sums
from topstory.events import EventLog
from topstory.kernels.compilation import Floats

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
REACH = 1.959964 + 0.841621  # 5 % error on both sides, 80 % power
DAY = 86_400 * 1_000_000


@dataclass(frozen=True)
class Exploration:
    """One way to see the lift."""

    share: float  # of visitors who are shown an article at random
    visits: int  # in all, until the lift would be seen
    days: float | None  # at the log's pace; None: the log has no times
    cost: float  # payoff lost, compared with what is shown today
    cost_share: float  # the same, as a share of what those visits earn today


@dataclass(frozen=True)
class Plan:
    """How a lift could be seen."""

    lift: float
    value: float  # what the log earns per visit
    random_value: float | None  # what random articles earn; None: this log does not say
    pool_size: float  # the mean K
    design_effect: float  # f
    visits_per_day: float | None
    options: tuple[Exploration, ...]


def plan(log: EventLog, lift: float, shares: Sequence[float] = SHARES) -> Plan:
    """How long it takes, at several shares of exploration, to see that a policy earns more.

    Where the log does not say what random articles earn, the cost is an upper limit: as if nothing
    were earned from them.

    Args:
        log: today's traffic; it needs no propensities.
        lift: to be seen: 0.05 is 5 % more.
        shares: of visitors who would be shown an article at random.

    >>> log = EventLog.from_arrays(
    ...     np.ones((1000, 1)), [["a", "b"]], [0] * 1000, ["a"] * 1000, [0, 0, 0, 1] * 250,
    ...     timestamps=np.arange(1000) * 864)
    >>> found = plan(log, lift=0.1, shares=[0.1, 0.5])
    >>> [(option.share, option.visits) for option in found.options]
    [(0.1, 54722), (0.5, 15553)]
    """
    if not 0 < lift < 10:
        raise ValueError(f"lift must be above 0, such as 0.05 for 5 % more, got {lift!r}")
    for share in shares:
        if not 0 < share < 1:
            raise ValueError(f"a share of visitors must be between 0 and 1, got {share!r}")
    if not len(log):
        raise ValueError("the log has no events, so nothing can be planned from it")
    payoff = log.payoff.astype(np.float64)
    value, variance = float(payoff.mean()), float(payoff.var())
    if not (value > 0 and variance > 0):
        raise ValueError(f"the log's payoffs are all {payoff[0]:g}: there is no lift to plan for")
    sizes = log.pool_sizes[log.pool].astype(np.float64)
    pool_size = float(sizes.mean())
    effect = _design_effect(log, value, variance)
    random_value = _random_value(log, payoff, sizes)
    pace = _visits_per_day(log)
    lost = value if random_value is None else max(0.0, value - random_value)
    needed = effect * variance / value**2 * (REACH / math.log1p(lift)) ** 2
    options = []
    for share in shares:
        visits = math.ceil(needed * (pool_size / share + 1 / (1 - share)))
        cost = visits * share * lost
        days = None if pace is None else visits / pace
        options.append(Exploration(share, visits, days, cost, cost / (visits * value)))
    return Plan(lift, value, random_value, pool_size, effect, pace, tuple(options))


def _design_effect(log: EventLog, value: float, variance: float) -> float:
    """The clustered variance of the log's mean, over that of independent events; at least 1."""

    def columns(start: int, stop: int) -> Floats:
        return np.vstack([log.payoff[start:stop], np.ones(stop - start)]).astype(np.float64)

    sums = clustered_sums(log, 2, columns)
    n = len(log)
    error = sums.error(np.array([1.0, -value]) / n, np.array([0.0, 1.0]))
    found = error.these_days.value * n / variance
    return max(1.0, found) if math.isfinite(found) else 1.0


def _random_value(log: EventLog, payoff: Floats, sizes: Floats) -> float | None:
    if log.recorded_propensity is None:
        return None
    weight = 1 / (sizes * log.recorded_propensity.astype(np.float64))
    return float((weight * payoff).sum() / weight.sum())


def _visits_per_day(log: EventLog) -> float | None:
    if log.times is None:
        return None
    ticks = log.times.ticks
    span = (int(ticks.max()) - int(ticks.min())) * log.times.unit
    return len(log) * DAY / span if span > 0 else None
