"""What fixed policies would earn, from a log that some other policy wrote."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from os import PathLike
from time import perf_counter

from topstory.engines import Engine
from topstory.engines import engine as named_engine
from topstory.evaluation.off_policy.candidates import Given, Progress, by_name, candidates
from topstory.evaluation.off_policy.estimators.registry import estimator_called
from topstory.evaluation.off_policy.estimators.weighted_events import Estimator, WeightedEvents
from topstory.evaluation.off_policy.examination import examined
from topstory.evaluation.off_policy.folders.judge_folder import judge_folder
from topstory.evaluation.off_policy.judging import LOGGED, Judge, LogJudge
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
from topstory.events.folder.parts import LogFolder
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
    log: EventLog | str | PathLike[str],
    *,
    estimator: str = "snips",
    baseline: str = LOGGED,
    bucket: str = DEPLOYMENT,
    train_share: float = 0.5,
    seed: int = 0,
    examine: bool = False,
    engine: str | Engine | None = None,
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
        log: what happened, or the folder or URL of a log, which is then read in parts, two times
            (three for `dr` and `dm`): so it may be larger than memory. Policies given must not have
            learned from it.
        estimator: `snips`, `ips`, `dr`, `dr-shrunk`, `switch` or `dm`.
        baseline: what lifts are measured against: `logged`, or the name of one of the policies.
        bucket: `deployment`: a `Policy` shows its best estimate; `learning`: as its explorer does.
        train_share: the first part of the log, that policies given by name learn from. All are
            judged on the rest.
        seed: of the policies that are trained.
        examine: look closer: weights, articles, all estimators, and what would change the
            conclusion (`Evaluation.examined`). It takes a few times as long, and the log in memory.
        engine: where the parts of a folder are read and summed: `serial`, `local` (by default) or
            `ray`. The numbers do not depend on it, and are those of the log in memory to 1e-9; but
            policies given by name learn by sums, and payoff models do. Whether the log was uniform
            is tested on some million events. `switch` and `dr-shrunk` need the log in memory.
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
    chosen = estimator_called(estimator)
    check_seed(seed)
    if bucket not in (DEPLOYMENT, LEARNING):
        raise ValueError(f"bucket must be '{DEPLOYMENT}' or '{LEARNING}', got {bucket!r}")
    given = by_name(policies)
    if baseline != LOGGED and baseline not in given:
        raise ValueError(f"baseline must be '{LOGGED}' or one of {', '.join(given)}: {baseline!r}")
    numbers = {name: value for name, value in parameters.items() if value is not None}
    greedy, closer = bucket == DEPLOYMENT, dict[str, Examination]()
    judge: Judge
    if isinstance(log, EventLog):
        if engine is not None:
            raise ValueError(
                f"engine {engine!r} reads the parts of a log's folder: give the folder or its URL "
                "instead of a log in memory"
            )
        check_log(log)
        _check_events(len(log))
        ready = candidates(given, log, train_share, seed, numbers, progress)
        check_range(ready.rest)
        warn_if_not_uniform(ready.rest)
        # One event compiles the kernels, or loads them: the time measured is the judging.
        judged(ready.policies, ready.rest[:1], chosen, greedy)
        began = perf_counter()
        judge = judged(ready.policies, ready.rest, chosen, greedy, progress)
        taken, events, trained = perf_counter() - began, len(ready.rest), ready.trained_events
        if examine:
            closer = dict(looked_closer(ready.policies, ready.rest, greedy, baseline))
    else:
        if examine:
            raise ValueError("a closer look needs the log in memory: EventLog.read it first")
        folder = LogFolder.opened(log)
        _check_events(folder.contents.events)
        judge, events, trained, taken = judge_folder(
            *(given, folder, named_engine("local" if engine is None else engine), chosen, greedy),
            *(train_share, seed, numbers, progress, warn_if_not_uniform),
        )
    return Evaluation(
        values={name: judge.value(name, baseline) for name in given},
        logged=judge.logged(),
        estimator=estimator,
        baseline=baseline,
        bucket=bucket,
        events=events,
        trained_events=trained,
        binary=judge.binary,
        covers=judge.covers(),
        propensities=judge.propensities(),
        seconds=taken,
        examined=closer,
    )


def _check_events(events: int) -> None:
    if not events:
        raise ValueError("the log has no events, so no policy can be judged on it")


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
        found = weighted(log, target_of(policy, log, greedy), payoffs, follow)
        same = next(iter(events.values()), found).payoff
        events[name] = found._replace(payoff=same)  # one copy for all policies
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
