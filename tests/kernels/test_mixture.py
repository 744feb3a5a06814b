"""The kernel of a decision under a traffic mix, and its naive twin."""

from __future__ import annotations

import numpy as np
import pytest
from tests.worlds import world

import topstory as ts
from topstory.explorers.explorer import WORK
from topstory.kernels import mixture
from topstory.kernels.choice import choose
from topstory.kernels.compilation import Floats
from topstory.kernels.explorers.bounds import Bounds

SHARES = np.array([0.5, 0.3, 0.2])


def mixed(policy: ts.Policy, user: Floats, pool: list[str], number: int) -> Floats:
    """(K,) the probability of each article over the mix, as the definition says it."""
    chances: Floats = SHARES @ in_bucket(policy, user, pool, number)
    return chances


def in_bucket(policy: ts.Policy, user: Floats, pool: list[str], number: int) -> Floats:
    """(3, K) the probability of each article in each bucket, as the definition says it."""
    estimates, widths = policy.estimates(user, pool), policy.widths(user, pool)
    best_estimate = estimates.round(9) == estimates.round(9).max()
    learning = policy.explorer.probabilities(estimates, widths, number)
    deployment = best_estimate / best_estimate.sum()
    return np.array([learning, deployment, np.full(len(pool), 1 / len(pool))])


def trained(name: str, trials: int, **parameters: float) -> tuple[ts.Policy, Floats, list[str]]:
    truth = world(3, kinds=50, articles=7)
    random = np.random.default_rng(1)
    policy = ts.policy(name, seed=5, **parameters)
    for article, features in zip(truth.ids, truth.features, strict=True):
        policy.add_article(article, features)
    for _ in range(trials):
        kind, shown = int(random.integers(50)), int(random.integers(7))
        paid = float(random.random() < truth.chances[kind, shown])
        policy.learn(truth.users[kind], truth.ids[shown], paid)
    return policy, truth.users, truth.ids


def decide(
    policy: ts.Policy, user: Floats, pool: list[str], bucket: int, number: int
) -> tuple[str, float, float, Floats]:
    slots = policy.model.slots(pool)
    policy.model.see(len(user))
    room = policy.model.room(len(user))
    room.values[:] = user
    estimates, scores = np.empty(len(pool)), np.empty(len(pool))
    if not isinstance(policy.explorer.rule, Bounds):
        place, propensity, own = mixture.decide_randomised(
            *(policy.model.state, room, policy.model.segment(user), slots),
            *(policy.model.roster.keys[slots], policy.explorer.rule, SHARES, bucket),
            *(np.uint64(policy.seed), number),
            *(estimates, scores, np.empty((2 + WORK) * len(pool))),
        )
        return pool[place], propensity, own, scores
    place, propensity, own = mixture.decide(
        *(policy.model.state, room, policy.model.segment(user), slots, policy.model.roster.keys),
        *(policy.explorer.bonus, policy.explorer.share, SHARES, bucket),
        *(np.uint64(policy.seed), number, estimates, scores),
    )
    return pool[place], propensity, own, scores


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("linucb-hybrid", {"alpha": 0.3}),
        ("egreedy-seg", {"epsilon": 0.2}),
        ("random", {}),
        ("lints-hybrid", {"alpha": 0.3}),
        ("squarecb-disjoint", {"c": 3.0}),
        ("softmax-disjoint", {"temperature": 0.1}),
    ],
)
@pytest.mark.parametrize("trials", [0, 60])
def test_a_decision_is_its_buckets_and_its_propensity_is_the_mixs(
    name: str, parameters: dict[str, float], trials: int
) -> None:
    policy, users, pool = trained(name, trials, **parameters)
    for number in range(60):
        user = users[number % len(users)]
        chances = mixed(policy, user, pool, number)
        estimates, widths = policy.estimates(user, pool), policy.widths(user, pool)
        keys = policy.model.roster.keys[policy.model.slots(pool)]
        for bucket, explorer in enumerate([policy.explorer, ts.Greedy(), ts.Uniform()]):
            article, propensity, own, _ = decide(policy, user, pool, bucket, number)
            place, _ = choose(
                *(explorer.rule, estimates, widths, keys, np.uint64(policy.seed), number, number),
                *(np.empty(len(pool)), np.empty(WORK * len(pool))),
            )
            assert article == pool[place]  # what the policy alone would choose
            assert propensity == pytest.approx(chances[pool.index(article)])
            chance = in_bucket(policy, user, pool, number)[bucket][pool.index(article)]
            assert own == pytest.approx(chance)


def test_propensities_sum_to_one_over_what_the_buckets_can_show() -> None:
    policy, users, pool = trained("egreedy-disjoint", 40, epsilon=0.3)
    for user in users[:10]:
        found = {}
        for number in range(200):
            for bucket in range(3):
                article, propensity, *_ = decide(policy, user, pool, bucket, number)
                found[article] = propensity
        assert sum(found.values()) == pytest.approx(1.0)


def test_a_ranking_is_the_scores_in_order_after_the_first() -> None:
    policy, users, pool = trained("linucb-hybrid", 60, alpha=0.3)
    slots, keys = policy.model.slots(pool), policy.model.roster.keys
    for number, user in enumerate(users[:20]):
        article, *_, scores = decide(policy, user, pool, 0, number)
        first = pool.index(article)
        out = np.empty(5, np.int32)
        order = [first, *(j for j in np.argsort(-scores, kind="stable") if j != first)][:5]
        mixture.rank(scores.copy(), keys, slots, False, np.uint64(5), number, first, out)
        assert out.tolist() == order


def test_a_uniform_ranking_is_every_order_alike() -> None:
    """Each article is second about as often: chi-square, p > 0.001 at a fixed seed."""
    from scipy.stats import chisquare

    policy, _, pool = trained("ucb", 60)
    slots, keys = policy.model.slots(pool), policy.model.roster.keys
    out = np.empty(2, np.int32)
    seconds = np.zeros(7)
    for number in range(2_000):
        scores = np.arange(7.0)
        mixture.rank(scores, keys, slots, True, np.uint64(5), number, 0, out)
        seconds[out[1]] += 1
    assert seconds[0] == 0
    assert chisquare(seconds[1:]).pvalue > 0.001
