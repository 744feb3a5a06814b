"""Warm policies: what they average, and that an offset counts once."""

from __future__ import annotations

import numpy as np
import pytest

import topstory as ts
from topstory.policies.storage import build, describe

OFFSET = {"a": [0.25, -0.25, 0.0], "b": [-0.5, 0.5, 0.0]}
USERS = [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.5, 0.5, 1.0]]


def warm(average: str = "residual", function: bool = False) -> ts.Policy:
    offset = (lambda user, a: float(user @ np.array(OFFSET[a]))) if function else OFFSET
    return ts.policy("ucb-warm", offset=offset, average=average)


@pytest.mark.parametrize("function", [False, True])
def test_the_mean_is_of_payoff_minus_offset(function: bool) -> None:
    policy = warm(function=function)
    for user, payoff in zip(USERS, (1.0, 0.0, 0.5), strict=True):
        policy.learn(user, "a", payoff)
    mean = ((1.0 - 0.25) + (0.0 + 0.25) + (0.5 - 0.0)) / 3
    found = [policy.estimates(user, ["a", "b"])[0] for user in USERS]
    np.testing.assert_allclose(found, [mean + 0.25, mean - 0.25, mean], rtol=1e-15)
    np.testing.assert_allclose(policy.estimates(USERS[0], ["b"]), -0.5)  # no trial yet


@pytest.mark.parametrize("function", [False, True])
def test_the_papers_mean_is_of_payoffs(function: bool) -> None:
    policy = warm("payoff", function)
    for user, payoff in zip(USERS, (1.0, 0.0, 0.5), strict=True):
        policy.learn(user, "a", payoff)
    found = [policy.estimates(user, ["a"])[0] for user in USERS]
    np.testing.assert_allclose(found, [0.5 + 0.25, 0.5 - 0.25, 0.5], rtol=1e-15)


@pytest.mark.parametrize("average", ["residual", "payoff"])
def test_the_halves_add_up_in_any_order_to_the_bit(average: str) -> None:
    # Halves and quarters have no rounding, so the order cannot matter.
    random = np.random.default_rng(0)
    whole, halves = warm(average), warm(average)
    steps = []
    for _ in range(50):
        user, a, payoff = (
            USERS[random.integers(3)],
            "ab"[random.integers(2)],
            random.integers(4) / 4,
        )
        whole.learn(user, a, payoff)
        steps += [(False, user, a, 0.0), (True, user, a, payoff)]
        halves.model.add_if_new(a)
    for i in random.permutation(len(steps)):
        paid, user, a, payoff = steps[i]
        halves.paid(user, a, payoff) if paid else halves.shown(user, a)
    for user in USERS:
        np.testing.assert_array_equal(
            whole.estimates(user, ["a", "b"]), halves.estimates(user, ["a", "b"])
        )


def test_an_offset_that_chose_the_users_counts_once() -> None:
    # Both articles pay 0.3 plus the true offset. Each is shown only to those who like it better, so
    # its mean payoff is 0.5: the paper's estimate for its users is 0.7, though they pay 0.5.
    random = np.random.default_rng(1)
    truth = {"a": np.array([0.2, -0.2, 0.0]), "b": np.array([-0.2, 0.2, 0.0])}
    policies = {
        average: ts.policy("egreedy-warm", epsilon=0.0, offset=truth, average=average)
        for average in ("residual", "payoff")
    }
    users = np.eye(3)[random.integers(0, 2, 4000)] + [0, 0, 1]
    for policy in policies.values():
        for user in users:
            shown = policy.choose(user, ["a", "b"]).article
            pays = 0.3 + float(user @ truth[shown])
            policy.learn(user, shown, float(random.random() < pays))
    found = {k: policy.estimates(np.array([1.0, 0, 1]), ["a"])[0] for k, policy in policies.items()}
    assert found["residual"] == pytest.approx(0.5, abs=0.05)  # 4 standard errors of 2,000 trials
    assert found["payoff"] == pytest.approx(0.7, abs=0.05)


def test_a_policy_stored_without_saying_what_is_averaged_is_the_papers() -> None:
    old = warm("payoff")
    old.learn(USERS[0], "a", 1.0)
    described = describe(old) | {"dimension": 3, "articles": old.model.roster.ids}
    del described["model"]["parameters"]["average"]
    loaded = build(described, old.model.arrays(), {})
    loaded.learn(USERS[0], "a", 0.0)
    assert loaded.estimates(USERS[0], ["a"]) == [0.75]
    assert loaded.model.parameters()["average"] == "payoff"


def test_another_average_is_refused() -> None:
    with pytest.raises(ValueError, match="average must be 'residual' or 'payoff', got 'median'"):
        warm("median")
