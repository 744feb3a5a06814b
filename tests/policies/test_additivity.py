"""What policies learned adds up, and goes with any prior: exact to 1e-9."""

from typing import Any

import numpy as np
import pytest
from tests.models.making_priors import linear_log
from tests.policies.test_policies import FEATURES, LIVE, POOL, make, user

import topstory as ts
from topstory.models.linear import LinearModel
from topstory.policies.registry import REGISTRY

BETA = np.array([[0.3, -0.2, 0.1], [0.0, 0.2, -0.1], [-0.3, 0.1, 0.0], [0.1, 0.0, 0.2]])
PLAIN = [n for n in LIVE if REGISTRY[n].in_paper and REGISTRY[n].model.load().learns]


def teach(policy: ts.Policy, seed: int, trials: int = 50) -> None:
    random = np.random.default_rng(seed)
    for _ in range(trials):
        x = user(random)
        policy.learn(x, str(random.choice(POOL)), float(random.random() < 0.3))


def assert_same(one: ts.Policy, two: ts.Policy) -> None:
    random = np.random.default_rng(9)
    for _ in range(5):
        x = user(random)
        np.testing.assert_allclose(one.estimates(x, POOL), two.estimates(x, POOL), atol=1e-9)
        np.testing.assert_allclose(one.widths(x, POOL), two.widths(x, POOL), atol=1e-9)


@pytest.mark.parametrize("name", PLAIN)
def test_merged_policies_know_what_one_would_that_learned_everything(name: str) -> None:
    one, two, whole = make(name), make(name), make(name)
    teach(one, 1)
    teach(two, 2)
    teach(whole, 1)
    teach(whole, 2)
    found = one.merge(two)
    assert_same(found, whole)
    assert found.trials == whole.trials
    for policy in (found, whole):  # and it goes on alike
        teach(policy, 3)
    assert_same(found, whole)


@pytest.mark.parametrize("name", ["linucb-disjoint", "linucb-hybrid"])
def test_another_ridge_is_as_if_it_had_been_there_from_the_start(name: str) -> None:
    changes: dict[str, Any] = {"ridge": 7.0}
    if "hybrid" in name:
        changes["shared_ridge"] = 3.0
    policy, whole = make(name), make(name, **changes)
    teach(policy, 1)
    teach(whole, 1)
    found = policy.with_prior(**changes)
    assert_same(found, whole)
    for each in (found, whole):
        teach(each, 2)
    assert_same(found, whole)
    assert_same(found.with_prior(**dict.fromkeys(changes, 1.0)), taught_twice(name))


def taught_twice(name: str) -> ts.Policy:
    policy = make(name)
    teach(policy, 1)
    teach(policy, 2)
    return policy


@pytest.mark.parametrize("name", ["linucb-disjoint", "linucb-hybrid"])
def test_another_prior_is_as_if_it_had_been_there_from_the_start(name: str) -> None:
    prior = ts.fit_prior(linear_log(1, 30, 50, BETA, 0.05))
    policy, whole = make(name), make(name, prior=prior)
    teach(policy, 1)
    teach(whole, 1)
    found = policy.with_prior(prior=prior)
    assert isinstance(found.model, LinearModel)
    assert isinstance(whole.model, LinearModel)
    learned = whole.model.sums()
    whole.model.weight = found.model.weight  # which was chosen by all trials, not by the first ones
    whole.model.take(learned)
    assert_same(found, whole)
    plain = make(name)
    teach(plain, 1)
    assert_same(found.with_prior(prior=None), plain)


def test_the_prior_of_an_average_can_be_changed_as_well() -> None:
    prior = ts.fit_prior(linear_log(1, 30, 50, BETA, 0.05))
    policy, whole = make("ucb-seg"), make("ucb-seg", prior=prior)
    teach(policy, 1)
    teach(whole, 1)
    assert_same(policy.with_prior(prior=prior), whole)


def test_merged_hybrids_keep_what_removed_articles_taught() -> None:
    one, two, whole = make("linucb-hybrid"), make("linucb-hybrid"), make("linucb-hybrid")
    for policy in (one, whole):
        policy.add_article("fog", [0.2, 0.8, 1.0])
        for payoff in (1.0, 0.0, 1.0):
            policy.learn([0.3, 0.7, 0.0, 1.0], "fog", payoff)
        policy.remove_article("fog")
    teach(two, 2)
    teach(whole, 2)
    assert_same(one.merge(two), whole)
    assert_same(two.merge(one), whole)


def test_an_article_that_only_one_of_them_knows_is_known_after() -> None:
    one, two = ts.policy("linucb-disjoint"), ts.policy("linucb-disjoint")
    one.learn([1.0, 1.0], "rain", 1.0)
    two.learn([1.0, 1.0], "sun", 1.0)
    both = one.merge(two)
    assert both.estimates([1.0, 1.0], ["rain", "sun"]) == pytest.approx([2 / 3, 2 / 3])
    assert ts.policy("linucb-disjoint").merge(one).trials == 1


def test_a_model_in_factored_form_can_be_merged() -> None:
    one, two, whole = (make("linucb-hybrid") for _ in range(3))
    for policy in (one, whole):
        teach(policy, 1)
    one.model.factorise()
    teach(two, 2)
    teach(whole, 2)
    assert_same(one.merge(two), whole)


@pytest.mark.parametrize(
    ("one", "two", "message"),
    [
        ("linucb-disjoint", "linucb-hybrid", "learn different things"),
        ("ucb", "ucb-seg", "learn different things"),
    ],
)
def test_what_does_not_add_up_is_refused(one: str, two: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(one).merge(make(two))
    with pytest.raises(TypeError, match="no prior"):
        make("ucb-warm").with_prior(prior=None)
    with pytest.raises(ValueError, match="known with other features"):
        make("linucb-hybrid").merge(other_features())


def other_features() -> ts.Policy:
    policy = ts.policy("linucb-hybrid")
    for article in FEATURES:
        policy.add_article(article, [0.1, 0.2, 1.0])
    return policy
