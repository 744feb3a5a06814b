"""Logistic models: Newton steps in two halves, whatever form the linear model below has."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.policies.test_policies import FEATURES, POOL, make, train, user
from tests.twins import LogisticRegressions

import topstory as ts
from topstory.models.linear import LinearModel

KINDS = ["logucb-disjoint", "logucb-hybrid"]


def twin(name: str) -> LogisticRegressions:
    features = {a: np.array(f) for a, f in FEATURES.items()} if "hybrid" in name else None
    return LogisticRegressions(4, features, 1.0, 1.0, 0.05)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("factored", [False, True])
def test_the_state_is_that_of_the_plain_newton_steps(name: str, factored: bool) -> None:
    policy, plain, random = make(name), twin(name), np.random.default_rng(1)
    for t in range(150):
        if factored and t == 50:
            assert policy.model.factorise() if policy.model.state is not None else False
        x, article, r = user(random), str(random.choice(POOL)), float(random.random() < 0.3)
        policy.learn(x, article, r)
        plain.bound(x, article)
        plain.learn(x, article, r)
    assert isinstance(policy.model, LinearModel)
    assert policy.model.factored == factored
    for _ in range(5):
        x = user(random)
        bounds = np.array([plain.bound(x, a) for a in POOL])
        scores = bounds[:, 0] + policy.explorer.bonus * bounds[:, 1]
        np.testing.assert_allclose(policy.scores(x, POOL), scores, rtol=1e-9)
        p = 1 / (1 + np.exp(-bounds[:, 0]))
        np.testing.assert_allclose(policy.estimates(x, POOL), p, rtol=1e-9)
        np.testing.assert_array_equal(policy.estimates_all([x], POOL)[0], policy.estimates(x, POOL))
        np.testing.assert_allclose(policy.widths(x, POOL), p * (1 - p) * bounds[:, 1], rtol=1e-9)


def test_many_trials_come_near_the_likeliest_coefficients() -> None:
    """Within 0.15 in log-odds of the penalised maximum of the likelihood, seed 3."""
    random = np.random.default_rng(3)
    X = np.column_stack([random.normal(size=(4000, 2)), np.ones(4000)])
    clicks = random.random(4000) < 1 / (1 + np.exp(-(X @ [0.8, -0.5, -2.0])))
    policy = ts.policy("logucb-disjoint", rate=0.1)
    for x, r in zip(X, clicks, strict=True):
        policy.learn(x, "a", float(r))
    start = np.array([0.0, 0.0, np.log(0.1 / 0.9)])

    def loss(theta: Any) -> float:
        eta = X @ theta
        return float(np.logaddexp(0, eta).sum() - eta @ clicks + ((theta - start) ** 2).sum() / 2)

    likeliest = minimize(loss, start).x
    found = policy.model.state.v[0]
    np.testing.assert_allclose(found, likeliest, atol=0.15)


@pytest.mark.parametrize("name", KINDS)
def test_a_new_article_starts_at_the_rate(name: str) -> None:
    policy = make(name, rate=0.04)
    x = [0.0, 0.0, 0.0, 1.0]
    if "hybrid" in name:
        policy = ts.policy(name, rate=0.04)
    assert policy.estimates(x, ["new"] if "hybrid" in name else POOL)[0] == pytest.approx(0.04)


@pytest.mark.parametrize("name", KINDS)
def test_payoffs_beyond_a_click_are_refused_and_change_nothing(name: str) -> None:
    policy = make(name)
    train(policy, 10)
    before = {field: array.copy() for field, array in policy.model.learned().items()}
    for payoff in (1.5, -0.1):
        with pytest.raises(ValueError, match="takes payoffs from 0 to 1, such as clicks, got"):
            policy.learn([1, 0, 0, 1], "sun", payoff)
        with pytest.raises(ValueError, match="takes payoffs from 0 to 1"):
            policy.paid([1, 0, 0, 1], "sun", payoff)
    for field, array in policy.model.learned().items():
        np.testing.assert_array_equal(array, before[field])
    log = ts.EventLog.from_arrays([[1.0]] * 4, [["a", "b"]], [0] * 4, ["a", "b"] * 2, [0, 3, 0, 1])
    for run in (ts.replay, ts.train):
        with pytest.raises(ValueError, match="got 3; divide them by the largest"):
            run(ts.policy("logucb-disjoint"), log)


def test_what_a_logistic_model_learned_is_no_sum() -> None:
    one, two = make("logucb-hybrid"), make("logucb-hybrid")
    train(one, 5)
    with pytest.raises(TypeError, match="is no sum over trials"):
        one.merge(two)
    with pytest.raises(TypeError, match="has no prior to change"):
        one.with_prior(ridge=3)
    with pytest.raises(ValueError, match="the ridge of a logistic model is a number"):
        ts.LogisticDisjoint(ridge="auto")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rate must be a click rate between 0 and 1"):
        ts.policy("logts-hybrid", rate=0.0)


@pytest.mark.parametrize("name", KINDS)
def test_weighted_trials_count_as_often_as_they_weigh(name: str) -> None:
    """Twice at once is one step from the same log-odds: A grows by twice κ x xᵀ."""
    log = ts.EventLog.from_arrays(
        [[0.2, 0.8, 0.0, 1.0]] * 2,
        [POOL],
        [0, 0],
        ["sun", "sun"],
        [1, 0],
        articles=FEATURES,
        propensity=[1 / 6, 2 / 3],
    )
    policy = ts.train(ts.policy(name), log, weights="propensity", held_out=0.0).policy
    plain = twin(name)
    for r, weight in ((1.0, 2.0), (0.0, 0.5)):
        x = np.array([0.2, 0.8, 0.0, 1.0])
        eta, row = plain.bound(x, "sun")[0], plain.row(x, "sun")
        p = 1 / (1 + np.exp(-eta))
        plain.A = plain.A + weight * p * (1 - p) * np.outer(row, row)
        plain.b = plain.b + weight * (p * (1 - p) * eta - p + r) * row
    eta = plain.bound(np.array([0.2, 0.8, 0.0, 1.0]), "sun")[0]
    found = policy.estimates([0.2, 0.8, 0.0, 1.0], ["sun"])
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-eta)), rtol=1e-6)
