"""A score that is not a number is an error with a name: never a match, never a propensity of 0."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.models.making_priors import some_prior
from tests.policies.test_policies import LIVE

import topstory as ts
from topstory.kernels.buckets import LEARNING
from topstory.models.input_range import MAX_MAGNITUDE, MAX_RIDGE, MIN_RIDGE
from topstory.policies.policy import Policy
from topstory.policies.registry import REGISTRY
from topstory.serving.api.errors import ApiError
from topstory.serving.config.limits import LimitsConfig
from topstory.serving.config.schema import Config, TrafficConfig
from topstory.serving.journal.records import ArticleFacts
from topstory.serving.state.decider import Decider
from topstory.serving.state.pool import Pool
from topstory.serving.state.traffic import Traffic

LINEAR = ["linucb-disjoint", "egreedy-disjoint", "linucb-hybrid", "egreedy-hybrid"]
POOL = ["rain", "sun", "fog"]
USER = [0.5, 0.2, 1.0]
ENDS = [0.0, 5e-324, 1e-20, 1e-6, 1.0, 1e6, MAX_MAGNITUDE, -MAX_MAGNITUDE]


def poisoned(name: str, article: str = "sun") -> Policy:
    """A policy that has learned, with a state that no longer holds numbers."""
    policy = ts.policy(name)
    for each in POOL:
        policy.learn(USER, each, 1.0)
    policy.scores(USER, POOL)  # hybrid now keeps the forms of all three
    policy.model.state.v[policy.model.roster.slot(article)] = np.nan
    return policy


@pytest.mark.parametrize("name", LINEAR)
def test_scoring_names_the_article(name: str) -> None:
    policy = poisoned(name)
    for ask in (policy.choose, policy.greedy, policy.scores, policy.estimates, policy.widths):
        with pytest.raises(ts.NotFiniteError, match=r"score of article 'sun' is not a number"):
            ask(USER, POOL)
    assert policy.decisions == 0


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("pools", [[POOL], [["sun"]]])
def test_replay_stops_whether_the_article_was_shown_or_not(
    name: str, pools: list[list[str]]
) -> None:
    events = 60
    shown = [pools[0][t % len(pools[0])] for t in range(events)]
    log = ts.EventLog.from_arrays([USER] * events, pools, [0] * events, shown, [0, 1] * 30)
    policy = ts.policy(name)
    policy.learn(USER, "sun", 1.0)
    state = policy.model.state
    for array in (state.S, state.v, getattr(state, "A_inverse", state.S), state.b):
        array[0] = np.nan
    with pytest.raises(
        ts.NotFiniteError, match=r"article 'sun' is not a number at event \d+; scale"
    ):
        ts.replay(policy, log)


@pytest.mark.parametrize("name", LINEAR)
def test_learning_stops_before_factors_are_made_of_no_numbers(name: str) -> None:
    policy = poisoned(name)
    policy.model.state.A[policy.model.roster.slot("sun")] = np.nan
    with pytest.raises(ts.NotFiniteError, match=r"model \(A\): .* article 'sun'"):
        policy.learn(USER, "sun", 1.0)
    with pytest.raises(ts.NotFiniteError, match=r"model \(A\): .* article 'sun'"):
        policy.shown(USER, "sun")


def test_the_service_refuses_instead_of_a_propensity_of_0() -> None:
    policy = poisoned("linucb-disjoint")
    pool = Pool("front", policy, 3)
    for article in POOL:
        pool.place(ArticleFacts(article), 0)
    decider = Decider(pool, Traffic(TrafficConfig(), "front"))
    for slots in (1, 2):
        with pytest.raises(ApiError, match="article 'sun' is not a number"):
            decider.decide(tuple(USER), LEARNING, 1, 0, slots=slots)
    with pytest.raises(ApiError, match="article 'sun' is not a number") as refused:
        decider.decide_all([tuple(USER)], [LEARNING], 1, 0)
    assert refused.value.status == 422


def test_what_the_service_takes_is_within_what_models_take() -> None:
    assert Config(context=3).limits.magnitude <= MAX_MAGNITUDE
    with pytest.raises(ValueError, match="magnitude"):
        msgspec.convert({"magnitude": 1.1e9}, LimitsConfig)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("ridge", [1e-300, 1e-13, 1e13, float("inf"), float("nan"), 0.0, -1.0])
def test_a_ridge_out_of_range_is_refused(name: str, ridge: float) -> None:
    with pytest.raises(ValueError, match=r"ridge must be from 1e-12 to 1e\+12 .*got"):
        ts.policy(name, ridge=ridge)


@pytest.mark.parametrize("name", [*LINEAR, "lints-disjoint", "lints-hybrid"])
@pytest.mark.parametrize("ridge", [MIN_RIDGE, 1e-6, 1.0, 1e6, MAX_RIDGE])
def test_no_score_is_nan_at_the_ends_of_what_is_accepted(name: str, ridge: float) -> None:
    """Contexts, features and payoffs at both ends, in any order: scores, replay and a batch."""
    random = np.random.default_rng(7)
    policy = ts.policy(name, ridge=ridge)
    for article in POOL:
        policy.add_article(article, random.choice(ENDS, 2))
    users = random.choice(ENDS, (200, 3))
    for user in users:
        chosen = policy.choose(user, POOL).article
        policy.learn(user, chosen, float(random.choice(ENDS)))
        for found in (policy.estimates(user, POOL), policy.widths(user, POOL)):
            assert np.isfinite(found).all()
        assert not np.isnan(policy.scores(user, POOL)).any()
        assert policy.probabilities(user, POOL).sum() == pytest.approx(1.0)
    assert np.isfinite(policy.estimates_all(users, POOL)).all()
    logged = users.astype(np.float32) * np.float32(0.99)  # 1e20 rounds to more
    shown = random.choice(POOL, len(users))
    log = ts.EventLog.from_arrays(logged, [POOL], [0] * len(users), shown, [0, 1] * 100)
    result = ts.replay(ts.policy(name, ridge=ridge), log)
    assert 0 < result.learning.trials < len(log)  # a NaN would match every event


@pytest.mark.parametrize("name", LIVE)
@pytest.mark.parametrize(("ridge", "half_life"), [(MIN_RIDGE, None), (1.0, 1.0), (MAX_RIDGE, None)])
def test_no_policy_has_a_nan_or_chooses_with_no_chance_at_the_ends_of_what_is_accepted(
    name: str, ridge: float, half_life: float | None
) -> None:
    """Every model with every explorer; an overflow that numpy warns of is an error, too."""
    entry, random = REGISTRY[name], np.random.default_rng(7)
    given: dict[str, Any] = {} if entry.model.name == "nothing" else {"half_life": half_life}
    if "ridge" in entry.model_parameters and not entry.from_prior:
        given["ridge"] = ridge
    if "offset" in entry.model_parameters:
        given["offset"] = {"rain": random.choice(ENDS, 4), "snow": random.choice(ENDS, 4)}
    if entry.from_prior:
        given["prior"] = some_prior(4, 2)
    policy = ts.policy(name, **given)
    pool = ["rain", "sun", "snow"]
    for article in pool:
        policy.add_article(article, random.choice(ENDS, 2))
    users = random.choice(ENDS, (80, 4))
    payoffs = random.integers(2, size=80).astype(float)
    if "logistic" not in entry.model.name:
        payoffs = random.choice(ENDS, 80)
    for number, (user, payoff) in enumerate(zip(users, payoffs, strict=True)):
        policy.advance(600 * number)
        choice = policy.choose(user, pool)
        assert 0 < choice.propensity <= 1
        policy.learn(user, choice.article, payoff)
        assert np.isfinite(policy.estimates(user, pool)).all()
        assert not np.isnan(policy.widths(user, pool)).any()
        chances = policy.probabilities(user, pool)
        assert (chances >= 0).all()
        assert chances.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("tiny", [0.0, 5e-324, 1e-200, 1e-75])
def test_a_context_of_zeros_teaches_a_low_rank_model_nothing(tiny: float) -> None:
    taught, other = (ts.policy("linucb-lowrank", ridge=1e-12) for _ in range(2))
    for policy in (taught, other):
        policy.learn(USER, "sun", 1.0)
    taught.learn([tiny] * 3, "sun", 1.0)
    for ask in ("estimates", "widths"):
        found, wanted = (getattr(policy, ask)(USER, POOL) for policy in (taught, other))
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    new = ts.policy("linucb-lowrank")
    new.learn([tiny] * 3, "sun", 1.0)  # the first that it sees
    assert np.isfinite(new.estimates(USER, POOL)).all()


@pytest.mark.parametrize("name", ["ucb", "ucb-seg", "linucb-disjoint", "linucb-hybrid"])
def test_numbers_out_of_range_are_refused_at_the_door(name: str) -> None:
    policy = ts.policy(name)
    with pytest.raises(ValueError, match=r"finite numbers, at most 1e\+20"):
        policy.choose([1e21, 1.0], ["rain"])
    with pytest.raises(ValueError, match=r"finite numbers, at most 1e\+20"):
        policy.add_article("rain", [1e21])
    for learn in (policy.learn, policy.paid):
        with pytest.raises(ValueError, match=r"payoff is a finite number, at most 1e\+20"):
            learn([0.5, 1.0], "rain", -1e21)


@pytest.mark.parametrize(
    ("users", "payoff", "message"),
    [
        ([[0.5, 1.0], [1e30, 1.0]], [0, 1], r"context \(number 0\) of event 1 is 1e\+30; policies"),
        ([[0.5, 1.0], [0.5, 1.0]], [1e25, 1], r"payoff of event 0 is 1e\+25; policies take"),
    ],
)
def test_a_log_keeps_what_a_policy_refuses(
    users: list[list[float]], payoff: list[float], message: str
) -> None:
    log = ts.EventLog.from_arrays(users, [["a"]], [0, 0], ["a", "a"], payoff)
    assert len(log) == 2
    with pytest.raises(ValueError, match=message):
        ts.replay(ts.policy("linucb-disjoint"), log)
    with pytest.raises(ValueError, match=message):
        ts.compare(["ucb"], log)


def test_a_stored_state_that_holds_no_numbers_is_refused(tmp_path: Path) -> None:
    poisoned("linucb-disjoint").save(tmp_path / "state.safetensors")
    with pytest.raises(ValueError, match="not all of it is numbers"):
        Policy.load(tmp_path / "state.safetensors")
