"""Which features serve a log best: fitted on its first part, judged on the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from topstory.evaluation.off_policy.estimators.registry import estimator_called
from topstory.evaluation.off_policy.estimators.weighted_events import WeightedEvents
from topstory.evaluation.off_policy.judging import Judge
from topstory.evaluation.off_policy.targets import target_of
from topstory.evaluation.off_policy.value import PolicyValue, Quantity
from topstory.evaluation.off_policy.weights import weighted
from topstory.events import EventLog
from topstory.events.columns.visitors import Visitors
from topstory.policies.log_learner import learn_log
from topstory.policies.registry import policy as policy_called

if TYPE_CHECKING:
    from topstory.features import FeatureBuilder

NO_FEATURES = "no features"  # every context is the constant alone
ESTIMATOR = "snips"
Progress = Callable[[str, float, float], object]


@dataclass(frozen=True)
class FeatureChoice:
    """What each method's features are worth on events that it had not seen, and the best one."""

    builder: FeatureBuilder = field(repr=False)  # the best, fitted on the whole log
    method: str
    values: dict[str, PolicyValue]  # by method, the best first; lifts are over no features
    lead: Quantity | None  # of the best over the second; None: there is no other
    refused: dict[str, str]  # methods that could not be fitted, and why
    policy: str
    fitted_events: int
    judged_events: int
    covers: str  # which randomness the intervals cover


def choose_features(
    log: EventLog,
    methods: Iterable[str] | None = None,
    *,
    policy: str = "linucb-disjoint",
    fit_share: float = 0.5,
    template: FeatureBuilder | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> FeatureChoice:
    """Choose how to make features of a raw log.

    Each method is fitted on the first part of the log; so is a policy with its features, on all
    events of that part. Its greedy choices are then valued on the rest, off-policy (`snips`), on
    the same events: so differences between methods have intervals. The best is fitted again,
    on the whole log. The log must be uniform, or have propensities.

    Args:
        log: has raw profiles of users, and of articles if there are any.
        methods: to be tried; None: all.
        policy: the name of a policy with contexts.
        fit_share: the first part of the log.
        template: has the parameters of the methods, such as `FeatureBuilder(support=0.05)`.
        seed: of the policy.
        progress: called with (what is being done, methods done, methods in all).

    >>> import topstory as ts
    >>> random = np.random.default_rng(0)
    >>> fan, visitor = random.random(300) < 0.5, random.integers(300, size=6_000)
    >>> shown = random.integers(2, size=6_000)
    >>> log = ts.EventLog.from_arrays(
    ...     None, [["match", "opera"]], np.zeros(6_000, int), np.array(["match", "opera"])[shown],
    ...     random.random(6_000) < np.where(fan[visitor] == (shown == 0), 0.4, 0.1),
    ...     visitor=visitor, profiles={"is_fan": fan, "age": random.normal(40, 9, 300)},
    ... )
    >>> found = choose_features(log, ["direct", "pca"])
    >>> found.values["direct"].lift.best_interval.low > 0.2  # over the same policy without features
    True
    >>> found.method, found.fitted_events, found.refused
    ('direct', 3000, {})
    """
    # A study of prepared logs needs no scikit-learn.
    from sklearn.base import clone

    from topstory.features import FeatureBuilder
    from topstory.features.methods.registry import METHODS

    names = list(METHODS) if methods is None else list(methods)
    for name in names:
        if name not in METHODS:
            raise ValueError(f"no method is called {name!r}: {', '.join(METHODS)}")
    if not 0 < fit_share < 1:
        raise ValueError(f"fit_share must lie between 0 and 1, got {fit_share!r}")
    cut = round(fit_share * len(log))
    if not 0 < cut < len(log):
        raise ValueError(f"a log of {len(log)} events cannot be divided into two parts")
    first, rest = log[:cut], log[cut:]
    judged = {NO_FEATURES: _judged(policy, _bare(first), _bare(rest), seed)}
    refused: dict[str, str] = {}
    base = FeatureBuilder() if template is None else template
    for number, name in enumerate(names):
        if progress is not None:
            progress(name, number, len(names))
        builder = clone(base).set_params(method=name)
        try:
            builder.fit(first)
            judged[name] = _judged(policy, builder.apply(first), builder.apply(rest), seed)
        except ValueError as error:
            refused[name] = str(error)
    tried = [name for name in names if name in judged]
    if not tried:
        listed = "; ".join(f"{name}: {why}" for name, why in refused.items())
        raise ValueError(f"no method could be fitted: {listed}")
    estimator = estimator_called(ESTIMATOR)
    judge = Judge(rest, judged, {name: estimator.fitted(each) for name, each in judged.items()})
    found = {name: judge.value(name, NO_FEATURES) for name in tried}
    order = sorted(found, key=lambda name: -found[name].value.value)
    best = order[0]
    if progress is not None:
        progress(f"{best}, on the whole log", len(names), len(names))
    return FeatureChoice(
        builder=clone(base).set_params(method=best).fit(log),
        method=best,
        values={name: found[name] for name in order},
        lead=judge.value(best, order[1]).lift if len(order) > 1 else None,
        refused=refused,
        policy=policy,
        fitted_events=len(first),
        judged_events=len(rest),
        covers=judge.covers(),
    )


def _judged(policy: str, first: EventLog, rest: EventLog, seed: int) -> WeightedEvents:
    trained = policy_called(policy, seed=seed)
    learn_log(trained, first)
    return weighted(rest, target_of(trained, rest, greedy=True), None)


def _bare(log: EventLog) -> EventLog:
    """The log with the constant alone as context, and without article features."""
    table = replace(log.article_table, features=None)
    visitors = log.visitors
    ones = np.ones((len(log), 1), np.float32)
    if visitors is not None:
        alone = np.ones((len(visitors.contexts), 1), np.float32)
        visitors = Visitors(visitors.number, alone, None)
    return replace(
        log, users=ones, visitors=visitors, article_table=table, exact=None, feature_model=None
    )
