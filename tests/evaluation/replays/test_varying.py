"""Contexts that differ between the articles of a pool: kernels choose as plain Python does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import topstory as ts
from topstory.evaluation import dr_ns, evaluate
from topstory.events.columns.varying import VaryingNumbers, starts_of
from topstory.events.log import EventLog

POLICIES = ["linucb-disjoint", "linucb-hybrid"]


def varying_log(events: int = 3_000, seed: int = 0, scale: float = 1.0) -> EventLog:
    """Articles pay the less the higher their varying number is; pools of several sizes."""
    random = np.random.default_rng(seed)
    names = [f"a{i}" for i in range(6)]
    pools = [names[:4], names[2:], names[::-1]]
    pool = np.sort(random.integers(3, size=events))
    sizes = np.array([len(each) for each in pools])[pool]
    position = random.integers(sizes)
    shown = [pools[p][j] for p, j in zip(pool, position, strict=True)]
    values = random.random((int(sizes.sum()), 1)).astype(np.float32)
    starts = starts_of(sizes)
    own = values[starts + position, 0]
    users = np.ones((events, 4), np.float32)
    users[:, :2] = random.random((events, 2))
    users[:, 2] = own
    log = EventLog.from_arrays(
        users * np.float32(scale),
        pools,
        pool,
        shown,
        random.random(events) < 0.5 * (1 - own),
        articles={name: [i / 6, 1.0] for i, name in enumerate(names)},
    )
    numbers = VaryingNumbers(values * np.float32(scale), starts)
    return replace(log, event_numbers=1, varying=numbers)


class Plain:
    """A policy that the kernels do not know: replay asks it event by event."""

    def __init__(self, policy: ts.Policy) -> None:
        self.policy = policy

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.policy, name)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("ridge", [1.0, 1e-8])  # with the latter, in the factored form
def test_a_replay_is_that_of_plain_python(name: str, ridge: float) -> None:
    log, policy = varying_log(1_500), ts.policy(name, ridge=ridge, seed=2)
    fast, slow = ts.replay(policy, log), ts.replay(Plain(policy), log)
    assert fast.learning.trials == slow.learning.trials > 200
    assert fast.by_article == slow.by_article
    x = log.contexts(7)
    pool = log.pools[int(log.pool[7])]
    np.testing.assert_allclose(
        fast.policy.scores(x, pool), slow.policy.policy.scores(x, pool), rtol=1e-9
    )


def test_a_number_that_varies_is_worth_its_while() -> None:
    log = varying_log(6_000)
    users = np.array(log.users)
    users[:, 2] = 0.0
    blind = EventLog.from_arrays(
        users, log.pools, log.pool, log.shown, log.payoff, articles=dict(log.articles)
    )
    policy = ts.policy("linucb-hybrid", alpha=0.2)
    sees, does_not = ts.replay(policy, log), ts.replay(policy, blind)
    # Means of 6,000 / 5 retained clicks each: their deviation is 0.02; the truth differs by 0.15.
    assert sees.deployment.ctr > does_not.deployment.ctr + 0.08


@pytest.mark.parametrize("estimator", ["snips", "dr"])
def test_off_policy_values_are_those_of_plain_python(estimator: str) -> None:
    log = varying_log(1_500)
    trained = ts.replay(ts.policy("linucb-disjoint"), log).policy
    found = evaluate(
        {"fast": trained, "slow": Plain(trained)}, log, estimator=estimator, bucket="learning"
    )
    values = [each.value.value for each in found.values.values()]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_dr_ns_learns_from_the_events_that_replay_retains() -> None:
    log = varying_log(1_500)
    same = log[log.pool == 2]  # pools of one size
    policy = ts.policy("linucb-disjoint", alpha=0.3)
    found = dr_ns(policy, same)
    assert found.trials == ts.replay(policy, same).learning.trials


def test_segments_are_not_taken_from_numbers_of_events() -> None:
    log = varying_log(200)
    for use in (lambda p: ts.replay(p, log), lambda p: ts.train(p, log)):
        with pytest.raises(ValueError, match="largest number of a context for the user's segment"):
            use(ts.policy("ucb-seg"))


class GeneralAlgorithm2:
    """Algorithm 2 line by line, with any z of user, article and time: nothing is assumed of it."""

    def __init__(self, d: int, k: int) -> None:
        self.A0, self.b0 = np.eye(k), np.zeros(k)
        self.A: dict[str, Any] = {}
        self.B: dict[str, Any] = {}
        self.b: dict[str, Any] = {}
        self.d, self.k = d, k

    def parts(self, a: str) -> tuple[Any, Any, Any]:
        self.A.setdefault(a, np.eye(self.d))
        self.B.setdefault(a, np.zeros((self.d, self.k)))
        self.b.setdefault(a, np.zeros(self.d))
        return self.A[a], self.B[a], self.b[a]

    def bound(self, x: Any, z: Any, a: str) -> tuple[float, float]:
        A, B, b = self.parts(a)
        A0, A = np.linalg.inv(self.A0), np.linalg.inv(A)
        beta = A0 @ self.b0
        theta = A @ (b - B @ beta)
        s = z @ A0 @ z - 2 * z @ A0 @ B.T @ A @ x + x @ A @ x + x @ A @ B @ A0 @ B.T @ A @ x
        return float(z @ beta + x @ theta), float(np.sqrt(s))

    def learn(self, x: Any, z: Any, a: str, r: float) -> None:
        A, B, b = self.parts(a)
        self.A0 += B.T @ np.linalg.inv(A) @ B
        self.b0 += B.T @ np.linalg.inv(A) @ b
        A += np.outer(x, x)
        B += np.outer(x, z)
        b += r * x
        self.A0 += np.outer(z, z) - B.T @ np.linalg.inv(A) @ B
        self.b0 += r * z - B.T @ np.linalg.inv(A) @ b


def test_hybrid_is_algorithm_2_with_a_z_of_user_article_and_time() -> None:
    log = varying_log(300)
    policy, twin = ts.policy("linucb-hybrid"), GeneralAlgorithm2(4, 8)
    features = {name: np.asarray(row) for name, row in log.articles.items()}
    for name, row in features.items():
        policy.add_article(name, row)
    for t in range(len(log)):
        contexts, pool = log.contexts(t), log.pools[int(log.pool[t])]
        if t % 10 == 0:
            wanted = [
                twin.bound(x, np.outer(x, features[a]).ravel(), a)
                for x, a in zip(contexts, pool, strict=True)
            ]
            np.testing.assert_allclose(
                [policy.estimates(contexts, pool), policy.widths(contexts, pool)],
                np.transpose(wanted),
                rtol=1e-8,
                atol=1e-12,
            )
        x, a, paid = log.context(t), str(log.shown[t]), float(log.payoff[t])
        policy.learn(x, a, paid)
        twin.learn(x, np.outer(x, features[a]).ravel(), a, paid)
