"""Theorem 1: T events retained in replay are distributed as T trials live, and cost K·T events.

Each test compares RUNS seeded runs live with as many in replay, on four statistics and the events
used, at a false-alarm rate of 0.1 % for each: 3 % for all of them together. The seeds are fixed.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats
from tests.worlds import World

import topstory as ts

RUNS, TRIALS, K = 320, 40, 4
LEVEL = 0.001

# A log full of ties. Of users of kind 0 nothing is known, not even the constant: a linear model
# gives every article the same score for them, for ever. They click most, so that a tie that the
# shown article wins, which retains all of them, would also show in the CTR. The others are few
# kinds with payoffs 0 and 1, whose scores tie again and again.
PLACE = World(
    users=np.array([[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0]]),
    features=np.array([[1.0, 0.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]),
    chances=np.array([[0.9, 0.6, 0.7, 0.8], [0.5, 0.3, 0.1, 0.1], [0.05, 0.1, 0.1, 0.3]]),
)
IDS = PLACE.ids
POLICIES: list[tuple[str, dict[str, Any]]] = [
    ("egreedy", {"epsilon": 0.2}),
    ("ucb", {"alpha": 0.5}),
    ("linucb-disjoint", {"alpha": 0.5}),
    ("linucb-hybrid", {"alpha": 0.5}),
    ("lints-disjoint", {"alpha": 0.5}),
    ("squarecb-disjoint", {"c": 10.0}),
]


class Run(NamedTuple):
    """One history of T trials, in a few numbers."""

    payoff: float
    late_payoff: float  # of the second half
    first_article: float  # how often article 0 was chosen
    first_kind: float  # how many users were of kind 0


def summary(shown: Any, kinds: Any, payoff: Any) -> Run:
    return Run(payoff.sum(), payoff[TRIALS // 2 :].sum(), (shown == 0).sum(), (kinds == 0).sum())


def make(name: str, parameters: dict[str, Any], seed: int) -> ts.Policy:
    policy = ts.policy(name, seed=seed, **parameters)
    for a, f in zip(IDS, PLACE.features, strict=True):
        policy.add_article(a, f)
    return policy


def live(policy: ts.Policy, random: np.random.Generator) -> Run:
    kinds = random.integers(len(PLACE.users), size=TRIALS)
    shown, payoff = np.empty(TRIALS, int), np.empty(TRIALS)
    for t, kind in enumerate(kinds):
        user = PLACE.users[kind]
        shown[t] = IDS.index(policy.choose(user, IDS).article)
        payoff[t] = random.random() < PLACE.chances[kind, shown[t]]
        policy.learn(user, IDS[shown[t]], payoff[t])
    return summary(shown, kinds, payoff)


def log_of(random: np.random.Generator) -> ts.EventLog:
    return PLACE.log(3 * K * TRIALS, [list(range(K))], random)


def kinds_of(log: ts.EventLog) -> Any:
    users = np.asarray(log.users)
    return np.where(users[:, 3] == 0, 0, np.where(users[:, 0] > 0, 1, 2))


def in_replay(policy: ts.Policy, random: np.random.Generator) -> tuple[Run, int]:
    """The first T retained events, and how many events they took."""
    log = log_of(random)
    retained = np.flatnonzero(ts.replay(policy, log).learning.sums[:, 0])[:TRIALS]
    run = summary(log.shown_index[retained], kinds_of(log)[retained], log.payoff[retained])
    return run, int(retained[-1]) + 1


def in_biased_replay(policy: ts.Policy, random: np.random.Generator) -> tuple[Run, int]:
    """The mistake that the test must catch: of equal scores, the shown article wins."""
    log = log_of(random)
    retained: list[int] = []
    for t, event in enumerate(log):
        pool = list(event.pool)
        scores = policy.scores(event.user, pool)
        if scores[pool.index(event.shown)] == scores.max():
            policy.learn(event.user, event.shown, event.payoff)
            retained.append(t)
            if len(retained) == TRIALS:
                break
    run = summary(log.shown_index[retained], kinds_of(log)[retained], log.payoff[retained])
    return run, retained[-1] + 1


def differences(ours: list[Run], theirs: list[Run]) -> list[float]:
    """A p-value for each statistic: two samples, one distribution?"""
    return [
        float(stats.mannwhitneyu(a, b).pvalue)
        for a, b in zip(zip(*ours, strict=True), zip(*theirs, strict=True), strict=True)
    ]


def events_used(costs: list[int]) -> float:
    """The p-value of: T retained events cost K·T on average."""
    # Waiting times are geometric with chance 1/K: T of them have variance T·K·(K − 1).
    z = (np.mean(costs) - K * TRIALS) / np.sqrt(TRIALS * K * (K - 1) / len(costs))
    return float(2 * stats.norm.sf(abs(z)))


@pytest.mark.parametrize(("name", "parameters"), POLICIES)
def test_replay_and_live_agree(name: str, parameters: dict[str, Any]) -> None:
    lived = [
        live(make(name, parameters, seed), np.random.default_rng([1, seed])) for seed in range(RUNS)
    ]
    replayed = [
        in_replay(make(name, parameters, RUNS + seed), np.random.default_rng([2, seed]))
        for seed in range(RUNS)
    ]
    found = differences(lived, [run for run, _ in replayed])
    assert min(found) > LEVEL, found
    assert events_used([cost for _, cost in replayed]) > LEVEL


@pytest.mark.parametrize("name", ["ucb", "linucb-disjoint"])
def test_a_tie_that_the_shown_article_wins_is_caught(name: str) -> None:
    lived = [
        live(make(name, {"alpha": 0.5}, seed), np.random.default_rng([1, seed]))
        for seed in range(RUNS)
    ]
    biased = [
        in_biased_replay(make(name, {"alpha": 0.5}, seed), np.random.default_rng([2, seed]))
        for seed in range(RUNS)
    ]
    assert events_used([cost for _, cost in biased]) < LEVEL
    if name == "linucb-disjoint":  # a context-free policy ties for all kinds of users alike
        assert min(differences(lived, [run for run, _ in biased])) < LEVEL
