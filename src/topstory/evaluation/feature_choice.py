"""Which features serve a log best: fitted on its first part, judged on the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from topstory.evaluation.off_policy.estimators.registry import estimator_called
from topstory.evaluation.off_policy.estimators.weighted_events import WeightedEvents
from topstory.evaluation.off_policy.evaluate import warn_if_not_uniform
from topstory.evaluation.off_policy.judging import LogJudge
from topstory.evaluation.off_policy.value import PolicyValue, Quantity
from topstory.evaluation.off_policy.weighting.targets import target_of
from topstory.evaluation.off_policy.weighting.weights import weighted
from topstory.events import EventLog
from topstory.events.columns.visitors import Visitors
from topstory.events.split import on_its_own
from topstory.policies.registry import REGISTRY
from topstory.policies.registry import policy as policy_called
from topstory.policies.sum_learner import learn_every

if TYPE_CHECKING:
    from topstory.features import FeatureBuilder

NO_FEATURES = "no features"  # every context is the constant alone
ESTIMATOR = "snips"
POLICIES = ("linucb-disjoint", "linucb-hybrid")
REPLAY, OFF_POLICY = "replay", "off-policy"
Progress = Callable[[str, float, float], object]


@dataclass(frozen=True)
class FeatureChoice:
    """What each method's features are worth on events that it had not seen, and the best one."""

    builder: FeatureBuilder = field(repr=False)  # the best, fitted on the whole log
    method: str
    values: dict[str, PolicyValue]  # by method, the best first; lifts are over no features
    lead: Quantity | None  # of the best over the second; None: there is no other
    refused: dict[str, str]  # methods that could not be fitted, and why
    policies: dict[str, str]  # by method: the one that made most of its features
    judged_by: str  # replay, or off-policy where articles were not shown uniformly
    fitted_events: int
    judged_events: int
    covers: str  # which randomness the intervals cover

    @property
    def policy(self) -> str:
        """The policy that made most of the best features."""
        return self.policies[self.method]


def choose_features(
    log: EventLog,
    methods: Iterable[str] | None = None,
    *,
    policy: str | Iterable[str] = POLICIES,
    fit_share: float = 0.5,
    template: FeatureBuilder | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> FeatureChoice:
    """Choose how to make features of a raw log.

    Each method is fitted on the first part of the log; so is each policy with its features, on all
    events of that part. Its greedy choices are then valued on the rest (`snips`), on the same
    events: so differences between methods have intervals. With a uniform log that is a replay: the
    events count where the policy shows what was shown. With propensities it is off-policy: they
    count by how likely that was. A method counts by the policy that makes most of it. The best is
    fitted again, on the whole log.

    Args:
        log: has raw profiles of users, and of articles if there are any.
        methods: to be tried; None: all.
        policy: the name of a policy with contexts, or several.
        fit_share: the first part of the log.
        template: has the parameters of the methods, such as `FeatureBuilder(support=0.05)`.
        seed: of the policy.
        progress: called with (what is being done, methods done, methods in all).

    Warns:
        NotUniformWarning: the log has no propensities, and its articles were not shown uniformly.

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
    fitted = on_its_own(first)  # who comes later, and what, is not known yet
    warn_if_not_uniform(rest)
    wanted = [policy] if isinstance(policy, str) else list(policy)
    for each in wanted:
        if each not in REGISTRY:
            raise ValueError(f"no policy is called {each!r}: {', '.join(REGISTRY)}")
    bare = _judged(wanted[0], _bare(first), _bare(rest), seed)
    judged = {(NO_FEATURES, wanted[0]): bare}
    refused: dict[str, str] = {}
    base = FeatureBuilder() if template is None else template
    for number, name in enumerate(names):
        if progress is not None:
            progress(name, number, len(names))
        builder = clone(base).set_params(method=name)
        try:
            builder.fit(fitted)
            parts = builder.apply(first), builder.apply(rest)
        except ValueError as error:
            refused[name] = str(error)
            continue
        for each in wanted:
            if REGISTRY[each].model.article_features and parts[0].features is None:
                continue  # there is nothing that articles could share
            judged[name, each] = _judged(each, *parts, seed)
        if not any(tried == name for tried, _ in judged):
            refused[name] = f"articles have no features, which {wanted[0]} needs"
    if len(judged) == 1:
        listed = "; ".join(f"{name}: {why}" for name, why in refused.items())
        raise ValueError(f"no method could be fitted: {listed}")
    estimator = estimator_called(ESTIMATOR)
    labels = {pair: " × ".join(pair) for pair in judged}
    events = {labels[pair]: each for pair, each in judged.items()}
    judge = LogJudge(rest, events, {name: estimator.fitted(each) for name, each in events.items()})
    alone = labels[NO_FEATURES, wanted[0]]
    found = {pair: judge.value(labels[pair], alone) for pair in judged if pair[0] != NO_FEATURES}
    order = sorted(found, key=lambda pair: -found[pair].value.value)
    leaders = sorted({pair[0]: pair for pair in reversed(order)}.values(), key=order.index)
    best = leaders[0]
    if progress is not None:
        progress(f"{best[0]}, on the whole log", len(names), len(names))
    second = labels[leaders[1]] if len(leaders) > 1 else None
    return FeatureChoice(
        builder=clone(base).set_params(method=best[0]).fit(log),
        method=best[0],
        values={pair[0]: found[pair] for pair in leaders},
        lead=None if second is None else judge.value(labels[best], second).lift,
        refused=refused,
        policies=dict(leaders),
        judged_by=REPLAY if rest.recorded_propensity is None else OFF_POLICY,
        fitted_events=len(first),
        judged_events=len(rest),
        covers=judge.covers(),
    )


def _judged(policy: str, first: EventLog, rest: EventLog, seed: int) -> WeightedEvents:
    trained = policy_called(policy, seed=seed)
    learn_every(trained, first)
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
