"""The events of a log as a policy's own: each with its weight w = π(shown)/p."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from topstory.evaluation.off_policy.estimators.weighted_events import WeightedEvents
from topstory.evaluation.off_policy.weighting.payoff_model import PayoffModel
from topstory.evaluation.off_policy.weighting.targets import Target
from topstory.evaluation.replays.prepared_log import chunks
from topstory.events import EventLog
from topstory.kernels.compilation import Floats


def weighted(
    log: EventLog,
    target: Target,
    payoffs: PayoffModel | None,
    progress: Callable[[int], object] | None = None,
) -> WeightedEvents:
    """The events with their weights and, if given, what a model of payoffs expects of them."""
    n = len(log)
    payoff = log.payoff if log.exact is None else log.exact.payoff
    weight = np.empty(n)
    direct, predicted = (np.empty(n if payoffs is not None else 0) for _ in range(2))
    for start, stop in chunks(n):
        if payoffs is None:
            chance = target.shown(start, stop)
        else:
            begins, chances = target.all(start, stop)
            part = payoffs.predict(start, stop, begins, chances)
            direct[start:stop], predicted[start:stop] = part
            chance = chances[begins + log.position[start:stop]]
        weight[start:stop] = chance / propensities(log, start, stop)
        if progress is not None:
            progress(stop - start)
    return WeightedEvents(weight, payoff.astype(np.float64), direct, predicted)


def propensities(log: EventLog, start: int, stop: int) -> Floats:
    """(stop − start,) p of the shown article: as recorded, else exactly 1 / the pool's size."""
    if log.recorded_propensity is None:
        return 1.0 / log.pool_sizes[log.pool[start:stop]].astype(np.float64)
    return log.recorded_propensity[start:stop].astype(np.float64)
