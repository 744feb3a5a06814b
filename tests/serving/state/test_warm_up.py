"""Kernels are called once before a visitor comes, whatever the pool has by then."""

import pytest
from tests.serving.making import M
from tests.serving.state.test_state import policy

import topstory as ts
from topstory.policies.registry import REGISTRY
from topstory.serving.config.schema import TrafficConfig
from topstory.serving.journal.records import ArticleFacts
from topstory.serving.state.pool import Pool
from topstory.serving.state.traffic import Traffic
from topstory.serving.state.warm_up import warm_up

TRAFFIC = Traffic(TrafficConfig(), "front")
FEATURES = (*[0.5] * (M - 1), 1.0)


@pytest.mark.parametrize("name", [each for each in REGISTRY if each.endswith("-prior")])
def test_a_pool_that_starts_from_a_prior_may_be_empty(name: str) -> None:
    pool = Pool("front", policy(name), 4)
    warm_up(pool, TRAFFIC)
    assert not pool.articles
    assert pool.policy.model.state is None  # what was called was a copy
    warm_up(pool, TRAFFIC, ArticleFacts("rain", FEATURES))
    pool.place(ArticleFacts("rain", FEATURES), 0)
    warm_up(pool, TRAFFIC)
    assert list(pool.articles) == ["rain"]


def test_a_policy_that_was_trained_elsewhere_may_know_articles_that_the_pool_has_not() -> None:
    trained: ts.Policy = policy("linucb-hybrid-prior")
    trained.add_article("sun", FEATURES)
    pool = Pool("front", trained, 4)
    warm_up(pool, TRAFFIC)
    assert not pool.articles
