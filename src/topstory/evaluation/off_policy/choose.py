"""Which policy to run, from whatever log there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from topstory.evaluation.off_policy.candidates import Progress, weights_for
from topstory.evaluation.off_policy.estimators.registry import estimator_called
from topstory.evaluation.off_policy.evaluate import (
    DEPLOYMENT,
    judged,
    looked_closer,
    warn_if_not_uniform,
)
from topstory.evaluation.off_policy.judging import LOGGED, Judge
from topstory.evaluation.off_policy.question import question_of
from topstory.evaluation.off_policy.value import MAX_LIFT, Evaluation, Quantity, lift_number
from topstory.evaluation.replays.prepared_log import check_range
from topstory.evaluation.replays.warm_start import needs_exploration
from topstory.evaluation.training import train
from topstory.events import EventLog
from topstory.events.log import check_log
from topstory.policies import Policy
from topstory.policies.policy import check_seed
from topstory.policies.registry import REGISTRY
from topstory.policies.registry import policy as policy_called

RIDGES = (1.0, 100.0)  # of the linear models: little and much caution about few events
MIN_EVENTS = 1_000


@dataclass(frozen=True)
class Selection:
    """The best of some policies on a log, and how sure that is."""

    winner: str
    policy: Policy = field(repr=False)  # the winner, trained on the whole log
    sure: bool  # whether it is surely better than what was logged, of all those compared
    verdict: str  # in words
    why: str  # by which method, and why that one
    evaluation: Evaluation = field(repr=False)  # on the part that no policy had seen
    together: Mapping[str, Quantity]  # lifts over what was logged, 95 % for all of them at once
    rivals: tuple[str, ...]  # that may be as good as the winner


def choose(
    log: EventLog,
    *,
    policies: Sequence[str] | None = None,
    train_share: float = 0.6,
    seed: int = 0,
    examine: bool = False,
    progress: Progress | None = None,
) -> Selection:
    """Find the policy to run: train some on the first part of a log, judge them on the rest.

    It looks at the log first. If the log recorded propensities, or showed articles uniformly, it
    can say what another policy would earn, whoever wrote it. If not, nobody can know, and the error
    says what to do.

    Args:
        log: what happened.
        policies: names to compare. By default the best article for everyone; with contexts, also
            the best for each segment and LinUCB's disjoint model; with article features, its
            hybrid model. Linear models are tried with a ridge of 1 and of 100.
        train_share: the first part of the log, that they learn from.
        seed: of the policies.
        examine: look closer at the winner: `found.evaluation.examined`, as `evaluate` does.
        progress: called with (what is being done, events done, events in all), now and then.

    Raises:
        NotAnswerable: a ValueError, if the log cannot say what another policy would earn.

    >>> import numpy as np, topstory as ts
    >>> random = np.random.default_rng(0)
    >>> sun = random.random(4000) < 0.2  # what the log shows: mostly rain
    >>> log = ts.EventLog.from_arrays(
    ...     np.ones((4000, 1)), [["rain", "sun"]], np.zeros(4000, int),
    ...     np.where(sun, "sun", "rain"), random.random(4000) < np.where(sun, 0.4, 0.1),
    ...     propensity=np.where(sun, 0.2, 0.8))
    >>> found = ts.choose(log)
    >>> found.winner, found.sure, found.policy.greedy([1.0], ["rain", "sun"]).article
    ('egreedy', True, 'sun')
    """
    check_log(log)
    check_seed(seed)
    question = question_of(log)
    check_range(log)
    warn_if_not_uniform(log)
    if not 0 < train_share < 1:
        raise ValueError(f"train_share must be between 0 and 1, got {train_share!r}")
    if len(log) < MIN_EVENTS:
        raise ValueError(f"the log has {len(log):,} events; choosing takes {MIN_EVENTS:,} or more")
    if not log.payoff.any():
        raise ValueError("every payoff of the log is 0, so no policy earned more than another")
    cut = round(train_share * len(log))
    first, rest = log[:cut], log[cut:]
    fresh = _candidates(log, policies, seed)
    trained: dict[str, Policy] = {}
    for name, policy in fresh.items():
        if policy.model.learns:
            policy = _trained(policy, first, seed, progress)
        trained[name] = policy
    began = perf_counter()
    judge = judged(trained, rest, estimator_called(question.method), True, progress)
    evaluation = Evaluation(
        values={name: judge.value(name, LOGGED) for name in trained},
        logged=judge.logged(),
        estimator=question.method,
        baseline=LOGGED,
        bucket=DEPLOYMENT,
        events=len(rest),
        trained_events=cut,
        binary=judge.binary,
        covers=judge.covers(),
        propensities=judge.propensities(),
        seconds=perf_counter() - began,
    )
    together = judge.lifts_together(LOGGED)
    known = {name: each for name, each in together.items() if each.value == each.value}
    if not known:
        raise ValueError(
            "no payoff of the judged part speaks about any of the policies: take a longer log"
        )
    winner = max(known, key=lambda name: known[name].value)
    sure = known[winner].best_interval.low > 0
    rivals = _rivals(judge, winner, known)
    if examine:
        closer = looked_closer(trained, rest, True, LOGGED, [winner])
        evaluation = replace(evaluation, examined=closer)
    whole = fresh[winner]
    policy = _trained(whole, log, seed, progress) if whole.model.learns else whole
    return Selection(
        winner=winner,
        policy=policy,
        sure=sure,
        verdict=_verdict(winner, known[winner], sure, rivals, evaluation, len(fresh)),
        why=question.why,
        evaluation=evaluation,
        together=together,
        rivals=rivals,
    )


def _candidates(log: EventLog, policies: Sequence[str] | None, seed: int) -> dict[str, Policy]:
    """New policies by name."""
    if policies is None:
        policies = ["egreedy"]
        if log.dimension > 1:
            policies += ["egreedy-seg", "linucb-disjoint"]
            policies += ["linucb-hybrid"] if log.features is not None else []
    if not policies:
        raise ValueError("give at least one policy to choose from")
    found = {}
    for name in dict.fromkeys(policies):
        if name not in REGISTRY:
            raise ValueError(f"no policy is called {name!r}; there are {', '.join(REGISTRY)}")
        if needs_exploration([name]) or REGISTRY[name].model.needs_log:
            raise ValueError(f"{name} cannot be trained on a part of a log alone")
        if "ridge" in REGISTRY[name].model_parameters:
            for ridge in RIDGES:
                label = name if ridge == 1 else f"{name} (ridge {ridge:g})"
                found[label] = policy_called(name, seed=seed, ridge=ridge)
        else:
            found[name] = policy_called(name, seed=seed)
    return found


def _trained(policy: Policy, log: EventLog, seed: int, progress: Progress | None) -> Policy:
    return train(
        policy,
        log,
        weights=weights_for(policy, log.recorded_propensity is not None),
        held_out=0,
        seed=seed,
        progress=progress,
    ).policy


def _rivals(judge: Judge, winner: str, known: Mapping[str, Quantity]) -> tuple[str, ...]:
    """Those whose lift over the winner may be 0 or more, all compared at once."""
    over = judge.lifts_together(winner)
    return tuple(name for name in known if name != winner and not over[name].best_interval.high < 0)


def _verdict(
    winner: str,
    lift: Quantity,
    sure: bool,
    rivals: Sequence[str],
    evaluation: Evaluation,
    compared: int,
) -> str:
    low, high = lift.best_interval
    if low != low:
        return (
            f"{winner} looks best, {_percent(lift.value)} over what was logged, but this log is "
            "too short to say how sure that is."
        )
    range_ = f"{_percent(lift.value)}, between {_percent(low)} and {_percent(high)}"
    days = " on these days" if lift.too_short else ""
    if sure:
        said = f"Run {winner}: it earns more than what was logged{days}, {range_}."
    else:
        smallest = evaluation[winner].smallest_lift
        least = (
            f" It could show lifts from {_percent(smallest)} on." if smallest <= MAX_LIFT else ""
        )
        said = (
            f"{winner} looks best, but this log is not sure that it is better than what was "
            f"logged{days}: {range_}.{least}"
            if lift.value > 0
            else f"No policy looks better than what was logged{days}. The best is {winner}: "
            f"{range_}.{least}"
        )
    if compared > 1:
        said += f" The interval allows for the {compared} policies that were compared."
    if evaluation[winner].robust_to is not None:
        said += (
            " Propensities were estimated: this stands as long as their true odds are within a "
            f"factor {evaluation[winner].robust_to:.2f}."
        )
    if rivals:
        said += f" {', '.join(rivals)} may be as good."
    return said


def _percent(lift: float) -> str:
    return f"{lift_number(lift)} %"
