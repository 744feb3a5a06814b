"""The estimators by name."""

from __future__ import annotations

from topstory.evaluation.off_policy.estimators.dm import Dm
from topstory.evaluation.off_policy.estimators.dr import Dr
from topstory.evaluation.off_policy.estimators.dr_shrunk import DrShrunk
from topstory.evaluation.off_policy.estimators.ips import Ips
from topstory.evaluation.off_policy.estimators.snips import Snips
from topstory.evaluation.off_policy.estimators.switch import Switch
from topstory.evaluation.off_policy.estimators.weighted_events import Estimator

ESTIMATORS: dict[str, Estimator] = {
    each.name: each for each in (Snips(), Ips(), Dr(), DrShrunk(), Switch(), Dm())
}


def estimator_called(name: str) -> Estimator:
    """The estimator of that name.

    >>> estimator_called("snips").models_payoffs
    False
    """
    if name not in ESTIMATORS:
        raise ValueError(f"no estimator is called {name!r}; there are {', '.join(ESTIMATORS)}")
    return ESTIMATORS[name]
