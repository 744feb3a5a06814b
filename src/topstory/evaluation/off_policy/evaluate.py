"""What fixed policies would earn, from a log that some other policy wrote."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from time import perf_counter

from topstory.evaluation.off_policy.candidates import Given, Progress, by_name, candidates
from topstory.evaluation.off_policy.estimators.registry import estimator_called
from topstory.evaluation.off_policy.estimators.weighted_events import Estimator, WeightedEvents
from topstory.evaluation.off_policy.examination import examined
from topstory.evaluation.off_policy.judging import LOGGED, LogJudge
from topstory.evaluation.off_policy.question import check_choice
from topstory.evaluation.off_policy.value import Evaluation, Examination
from topstory.evaluation.off_policy.weighting.payoff_model import PayoffModel
from topstory.evaluation.off_policy.weighting.targets import FixedPolicy, target_of
from topstory.evaluation.off_policy.weighting.weights import weighted
from topstory.evaluation.replays.prepared_log import (
    NotUniformWarning,
    check_range,
    shown_by_pattern,
    warn_if_estimated,
)
from topstory.events import EventLog
from topstory.events.log import check_log
from topstory.events.quality.checks import SIGNIFICANCE_LEVEL
from topstory.events.quality.rejection import Rejection, rejection
from topstory.policies import Policy
from topstory.policies.entries import Setting
from topstory.policies.policy import check_seed

DEPLOYMENT, LEARNING = "deployment", "learning"
MUCH = 0.1  # of a mean weight that should be 1


def evaluate(
    policies: Given | Iterable[str] | Mapping[str, Given],
    log: EventLog,
    *,
    estimator: str = "snips",
    baseline: str = LOGGED,
    bucket: str = DEPLOYMENT,
    train_share: float = 0.5,
    seed: int = 0,
    examine: bool = False,
    progress: Progress | None = None,
    **parameters: Setting | None,
) -> Evaluation:
    """Estimate what policies that no longer learn would earn, from a log that another one wrote.

    Each event counts w = π(shown)/p times: how much more likely this policy is to show what was
    shown than the log's was. So every event of the log is used, and it need not be uniform: only
    its propensities p must be right, and reach whatever the policy shows.

    Args:
        policies: a trained `Policy`; the name of one, which is then trained on the first part of
            the log; an object with `probabilities(user, pool)`; or several of these by name.
        log: what happened. Policies given must not have learned from it.
        estimator: `snips`, `ips`, `dr`, `dr-shrunk`, `switch` or `dm`.
        baseline: what lifts are measured against: `logged`, or the name of one of the policies.
        bucket: `deployment`: a `Policy` shows its best estimate; `learning`: as its explorer does.
        train_share: the first part of the log, that policies given by name learn from. All are
            judged on the rest.
        seed: of the policies that are trained.
        examine: look closer: weights, articles, all estimators, and what would change the
            conclusion (`Evaluation.examined`). It takes a few times as long.
        progress: called with (what is being done, events done, events in all), now and then.
        parameters: of the policies given by name, such as `alpha`; each takes those that it knows.

    Warns:
        NotUniformWarning: the log has no propensities, and its articles were not shown uniformly;
            or they do not fit its pools.
        EstimatedPropensityWarning: its propensities were estimated, not recorded.

    >>> import numpy as np, topstory as ts
    >>> random = np.random.default_rng(0)
    >>> sun = random.random(4000) < 0.2  # what the log shows: mostly rain
    >>> log = ts.EventLog.from_arrays(
    ...     np.ones((4000, 1)), [["rain", "sun"]], np.zeros(4000, int),
    ...     np.where(sun, "sun", "rain"), random.random(4000) < np.where(sun, 0.4, 0.1),
    ...     propensity=np.where(sun, 0.2, 0.8))
    >>> class Sunny:
    ...     def probabilities(self, user, pool):
    ...         return [float(article == "sun") for article in pool]
    >>> found = ts.evaluate({"sunny": Sunny(), "egreedy": "egreedy"}, log)
    >>> found["sunny"].value.interval.low < 0.4 < found["sunny"].value.interval.high
    True
    >>> found["sunny"].lift.interval.low > 1, found.trained_events  # more than twice as much
    (True, 2000)
    """
    check_log(log)
    chosen = estimator_called(estimator)
    check_seed(seed)
    if bucket not in (DEPLOYMENT, LEARNING):
        raise ValueError(f"bucket must be '{DEPLOYMENT}' or '{LEARNING}', got {bucket!r}")
    given = by_name(policies)
    if baseline != LOGGED and baseline not in given:
        raise ValueError(f"baseline must be '{LOGGED}' or one of {', '.join(given)}: {baseline!r}")
    if not len(log):
        raise ValueError("the log has no events, so no policy can be judged on it")
    numbers = {name: value for name, value in parameters.items() if value is not None}
    ready = candidates(given, log, train_share, seed, numbers, progress)
    check_range(ready.rest)
    warn_if_not_uniform(ready.rest)
    greedy = bucket == DEPLOYMENT
    # One event compiles the kernels, or loads them: the time measured is the judging.
    judged(ready.policies, ready.rest[:1], chosen, greedy)
    began = perf_counter()
    judge = judged(ready.policies, ready.rest, chosen, greedy, progress)
    taken = perf_counter() - began
    closer = looked_closer(ready.policies, ready.rest, greedy, baseline) if examine else {}
    return Evaluation(
        values={name: judge.value(name, baseline) for name in given},
        logged=judge.logged(),
        estimator=estimator,
        baseline=baseline,
        bucket=bucket,
        events=len(ready.rest),
        trained_events=ready.trained_events,
        binary=judge.binary,
        covers=judge.covers(),
        propensities=judge.propensities(),
        seconds=taken,
        examined=closer,
    )


def looked_closer(
    policies: Mapping[str, Policy | FixedPolicy],
    log: EventLog,
    greedy: bool,
    baseline: str,
    names: list[str] | None = None,
) -> Mapping[str, Examination]:
    """A closer look at some policies, or at all; with payoffs predicted, for all estimators."""
    return examined(judged(policies, log, estimator_called("dr"), greedy), log, baseline, names)


def judged(
    policies: Mapping[str, Policy | FixedPolicy],
    log: EventLog,
    estimator: Estimator,
    greedy: bool,
    progress: Progress | None = None,
) -> LogJudge:
    """The sums of all policies over the log, from which their values follow."""
    work, done = len(log) * len(policies), 0
    payoffs = PayoffModel(log) if estimator.models_payoffs else None
    events: dict[str, WeightedEvents] = {}

    def follow(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress("judging", done, work)

    for name, policy in policies.items():
        events[name] = weighted(log, target_of(policy, log, greedy), payoffs, follow)
    fitted = {name: estimator.fitted(each) for name, each in events.items()}
    return LogJudge(log, events, fitted)


def warn_if_not_uniform(log: EventLog) -> None:
    """Warn if propensities are wrong, or missing from a log that was not uniform.

    Then every value is biased. Where nothing was left to chance, NotAnswerable.
    """
    warn_if_estimated(log.propensity_estimate)
    if log.recorded_propensity is not None:
        rejected = rejection(log)
        if rejected is not None and log.propensity_estimate is None and _wrong(rejected):
            low, high = rejected.interval
            warnings.warn(
                "the recorded propensities p do not fit the pools of K articles: the mean of "
                f"1/(K p) is {rejected.mean_weight:.3g} [{low:.3g}, {high:.3g}], where right ones "
                "give 1 if every article can be shown; a value of a policy that shows what the log "
                "cannot is biased, and so is every value if they are wrong; `topstory inspect` "
                "says more",
                NotUniformWarning,
                stacklevel=3,
            )
        return
    check_choice(log)
    found = log.uniformity()
    why = f" (p = {found.p_value:.2g})" if found.p_value < SIGNIFICANCE_LEVEL else ""
    if why or (why := shown_by_pattern(log, found)):
        warnings.warn(
            "the log has no propensities, and its articles were not shown uniformly at random"
            f"{why}, so every value is biased; estimate them first (`topstory propensities`), or "
            "record the propensities with which articles are shown",
            NotUniformWarning,
            stacklevel=3,
        )


def _wrong(found: Rejection) -> bool:
    """Surely, and by much: where some p are tiny, the mean of a right log's weights is unsteady."""
    return not found.honest and abs(found.mean_weight - 1) > MUCH
