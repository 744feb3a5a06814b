"""The compiled replay retains exactly the events that the paper's algorithms retain."""

from typing import Any

import numpy as np
import pytest
from tests.twins import TWINS, Algorithm1, Algorithm2, Setting, Twin, algorithm3
from tests.worlds import changing_pools, world

import topstory as ts
from topstory.policies import REGISTRY

PLACE = world(seed=7)
POOLS = changing_pools(articles=12, size=6, count=15, seed=8)
LOG = PLACE.log(1500, POOLS, np.random.default_rng(9))
D = LOG.dimension
FEATURES = dict(zip(PLACE.ids, PLACE.features, strict=True))
OFFSET = {a: np.array([0.2, -0.1, 0.05, 0.0]) * (i % 3) for i, a in enumerate(PLACE.ids)}
MEANS = {a: r.base_ctr for a, r in ts.replay(ts.policy("random"), LOG).by_article.items()}


# Those with a prior have twins of their own, in tests/models/test_priors.py.
WITHOUT = {name: entry for name, entry in REGISTRY.items() if not entry.from_prior}
LIVE = [name for name, entry in WITHOUT.items() if not entry.model.needs_log]
VARIANTS = {
    "epsilon": (0.0, 0.15, 1.0),
    "alpha": (0.0, 0.4, 2.0),
    "c": (0.0, 10.0, 1e4),
    "temperature": (0.01, 0.1, 1.0),
    "epochs": (0.2, 1.0, 10.0),
}


def twin(name: str, parameters: dict[str, Any]) -> Twin:
    return TWINS[REGISTRY[name].model.name](Setting(D, FEATURES, OFFSET, MEANS, parameters))


def given(name: str) -> dict[str, Any]:
    return {"offset": OFFSET} if "offset" in REGISTRY[name].model_parameters else {}


def cases() -> list[Any]:
    found = []
    for name, entry in WITHOUT.items():
        # The paper's omniscient knows the whole log; ours is cross-fitted unless there is one fold.
        variants: list[dict[str, Any]] = [{"folds": 1} if entry.model.needs_log else {}]
        if entry.tuned is not None:
            values = VARIANTS.get(entry.tuned.name, entry.tuned.grid)
            variants = [{entry.tuned.name: value} for value in values]
        if entry.explorer.name == "thompson":
            variants.append({"alpha": 0.4, "optimistic": True})
        if entry.explorer.name == "inverse-gap":
            variants.append({"c": 10.0, "floor": 0.2})
        if name == "egreedy-disjoint":
            variants.append({"decay": 0.3})
        if entry.model.name == "hybrid":
            variants.append({**variants[1], "ridge": 10.0, "shared_ridge": 0.1})
        # What a data size leaves out does not depend on the parameters: one of them will do.
        found += [pytest.param(name, v, 1.0, id=f"{name}-{v}") for v in variants]
        found.append(pytest.param(name, variants[len(variants) // 2], 0.3, id=f"{name}-30%"))
    return found


@pytest.mark.parametrize(("name", "parameters", "size"), cases())
def test_replay_retains_what_algorithm_3_retains(
    name: str, parameters: dict[str, Any], size: float
) -> None:
    policy = ts.policy(name, seed=5, **parameters, **given(name))
    result = ts.replay(policy, LOG, size=size, seed=3)
    learned, deployed = algorithm3(twin(name, parameters), policy.explorer, 5, LOG, size, 3)
    # One event an hour: a block is an event.
    assert np.flatnonzero(result.learning.sums[:, 0]).tolist() == learned
    assert np.flatnonzero(result.deployment.sums[:, 0]).tolist() == deployed
    assert result.learning.payoff == LOG.payoff[learned].sum()
    assert result.deployment.payoff == LOG.payoff[deployed].sum()


# omniscient knows its log only in replay; the test above holds it to the paper.
@pytest.mark.parametrize("name", LIVE)
def test_replay_equals_the_policy_used_one_event_at_a_time(name: str) -> None:
    """To the bit, in results and in state: the same arithmetic runs live and in replay."""

    class Live:
        def __init__(self, policy: ts.Policy) -> None:
            self.policy = policy
            self.choose, self.greedy = policy.choose, policy.greedy
            self.learn, self.add_article = policy.learn, policy.add_article

        def __deepcopy__(self, memo: Any) -> "Live":
            return Live(self.policy.copy())

    policy = ts.policy(name, seed=11, **given(name))
    fast, slow = ts.replay(policy, LOG, size=0.5, seed=1), ts.replay(Live(policy), LOG, 0.5, 1)
    np.testing.assert_array_equal(fast.learning.sums, slow.learning.sums)
    np.testing.assert_array_equal(fast.deployment.sums, slow.deployment.sums)
    assert fast.by_article == slow.by_article
    for field, array in fast.policy.model.arrays().items():
        np.testing.assert_array_equal(array, slow.policy.policy.model.arrays()[field])


def test_an_offset_given_as_a_function_equals_the_same_as_a_table() -> None:
    table = ts.replay(ts.policy("ucb-warm", offset=OFFSET, alpha=0.5), LOG)
    function = ts.replay(
        ts.policy("ucb-warm", offset=lambda user, a: float(user @ OFFSET[a]), alpha=0.5), LOG
    )
    np.testing.assert_array_equal(table.learning.sums, function.learning.sums)


def test_the_order_of_pools_and_articles_changes_nothing() -> None:
    """Ties hang on the article's id, not on its place."""
    random = np.random.default_rng(0)
    order = [random.permutation(len(members)) for members in LOG.pools]
    shuffled = ts.EventLog.from_arrays(
        LOG.users,
        [[pool[i] for i in o] for pool, o in zip(LOG.pools, order, strict=True)],
        LOG.pool,
        LOG.shown,
        LOG.payoff,
        articles={a: FEATURES[a] for a in reversed(PLACE.ids)},
        timestamps=LOG.timestamps,
    )
    for name in ("random", "ucb", "linucb-disjoint", "egreedy-hybrid"):
        here, there = (ts.replay(ts.policy(name, seed=2), log) for log in (LOG, shuffled))
        np.testing.assert_array_equal(here.learning.sums, there.learning.sums)
        np.testing.assert_array_equal(here.deployment.sums, there.deployment.sums)


@pytest.mark.parametrize("kind", ["disjoint", "hybrid"])
def test_contexts_too_long_to_unroll_replay_alike(kind: str) -> None:
    place = world(seed=17, d=10, m=9)
    log = place.log(800, changing_pools(12, 6, 200, seed=18), np.random.default_rng(19))
    features = dict(zip(place.ids, place.features, strict=True))
    plain = Algorithm1(10, 1.0) if kind == "disjoint" else Algorithm2(10, features, 1.0, 1.0)
    result = ts.replay(ts.policy(f"linucb-{kind}", alpha=0.4, seed=5), log)
    learned, deployed = algorithm3(plain, ts.UpperConfidence(0.4), 5, log, 1.0, 0)
    assert np.flatnonzero(result.learning.sums[:, 0]).tolist() == learned
    assert np.flatnonzero(result.deployment.sums[:, 0]).tolist() == deployed


def test_a_pool_of_more_articles_than_sixteen_bits_can_count() -> None:
    pool = [f"a{i}" for i in range(70_000)]
    log = ts.EventLog.from_arrays(np.ones((3, 1)), [pool], [0] * 3, pool[-3:], [0, 1, 0])
    result = ts.replay(ts.policy("omniscient", folds=1), log)
    assert np.flatnonzero(result.learning.sums[:, 0]).tolist() == [1]
