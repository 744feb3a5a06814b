"""The linear models equal one ridge regression solved from scratch."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.twins import Floats, StackedRidge
from tests.worlds import world

import topstory as ts

KINDS = ["disjoint", "hybrid"]


def make(kind: str, ridge: float, shared: float) -> ts.Policy:
    model: Any = ts.HybridLinear(ridge, shared) if kind == "hybrid" else ts.DisjointLinear(ridge)
    return ts.Policy(model, ts.UpperConfidence(0.7))


def twin(
    kind: str, d: int, ridge: float, shared: float, features: dict[str, Floats]
) -> StackedRidge:
    if kind == "disjoint":  # no shared features: β is never used
        features = {a: np.zeros(0) for a in features}
    return StackedRidge(d, ridge, shared, features)


def context(random: np.random.Generator, d: int) -> Floats:
    return np.append(random.dirichlet(np.full(d - 1, 0.5)), 1.0)


def assert_same(policy: ts.Policy, plain: StackedRidge, x: Floats, pool: list[str]) -> None:
    estimates, widths = plain.bounds(x, pool)
    assert_allclose(policy.widths(x, pool), widths, rtol=1e-8)
    assert_allclose(policy.estimates(x, pool), estimates, rtol=1e-8, atol=1e-10)
    assert_allclose(policy.scores(x, pool), estimates + 0.7 * widths, rtol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
@given(
    seed=st.integers(0, 2**32),
    steps=st.lists(
        st.sampled_from(["learn", "shown", "paid", "add", "remove", "ask"]), max_size=40
    ),
    shared=st.sampled_from([0.1, 1.0, 10.0]),
    size=st.sampled_from([(4, 3), (10, 9)]),  # unrolled or not: one compilation each
)
def test_any_history_equals_one_stacked_ridge_regression(
    kind: str, ridge: float, seed: int, steps: list[str], shared: float, size: tuple[int, int]
) -> None:
    d, m = size
    random = np.random.default_rng(seed)
    # An article that is removed and added again is a new one: it has an id for each of its lives.
    lives = [f"life-{i}" for i in range(20)]
    features = {a: random.normal(0, 1, m) for a in lives}
    policy, plain = make(kind, ridge, shared), twin(kind, d, ridge, shared, features)
    pool = [lives.pop() for _ in range(3)]
    for a in pool:
        policy.add_article(a, features[a])
    owed: list[tuple[Floats, str]] = []
    for step in steps:
        x, a, r = context(random, d), str(random.choice(pool)), float(random.normal())
        if step == "learn":
            policy.learn(x, a, r)
            plain.shown(x, a)
            plain.paid(x, a, r)
        elif step == "shown":
            policy.shown(x, a)
            plain.shown(x, a)
            owed.append((x, a))
        elif step == "paid" and owed:
            x, a = owed.pop(random.integers(len(owed)))
            if a in pool:
                policy.paid(x, a, r)
                plain.paid(x, a, r)
        elif step == "add" and lives:
            pool.append(lives.pop())
            policy.add_article(pool[-1], features[pool[-1]])
        elif step == "remove" and len(pool) > 1:
            pool.remove(a)
            policy.remove_article(a)
        elif step == "ask":
            part = [b for b in pool if random.random() < 0.6] or pool
            assert_same(policy, plain, x, part)
    assert_same(policy, plain, context(random, d), pool)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32), trials=st.integers(1, 40))
def test_the_halves_of_learning_add_up_in_any_order(kind: str, seed: int, trials: int) -> None:
    random = np.random.default_rng(seed)
    whole, halves = make(kind, 1.0, 1.0), make(kind, 1.0, 1.0)
    pool = ["a", "b", "c"]
    for a in pool:
        f = random.normal(0, 1, 3)
        whole.add_article(a, f)
        halves.add_article(a, f)
    steps = []
    for _ in range(trials):
        x, a = context(random, 4), str(random.choice(pool))
        parts = random.normal(0, 1, random.integers(0, 3))  # a payoff may come in parts, or never
        whole.learn(x, a, float(parts.sum()))
        steps += [("shown", x, a, 0.0)] + [("paid", x, a, float(part)) for part in parts]
    for i in random.permutation(len(steps)):
        step, x, a, r = steps[i]
        if step == "shown":
            halves.shown(x, a)
        else:
            halves.paid(x, a, r)
    x = context(random, 4)
    assert_allclose(halves.estimates(x, pool), whole.estimates(x, pool), rtol=1e-8, atol=1e-10)
    assert_allclose(halves.widths(x, pool), whole.widths(x, pool), rtol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_learn_is_shown_then_paid_to_the_bit(kind: str) -> None:
    random = np.random.default_rng(0)
    whole, halves = make(kind, 1.0, 1.0), make(kind, 1.0, 1.0)
    for _ in range(50):
        x, a, r = context(random, 4), str(random.choice(["a", "b"])), float(random.normal())
        whole.learn(x, a, r)
        halves.shown(x, a)
        halves.paid(x, a, r)
    for field, array in whole.model.arrays().items():
        np.testing.assert_array_equal(array, halves.model.arrays()[field])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("every_other", [1000.0, 1e-3])
def test_hostile_contexts_do_not_raise_the_drift(kind: str, every_other: float) -> None:
    """Nearly parallel, of the greatest magnitude that any service accepts; or tiny ones between."""
    random = np.random.default_rng(1)
    users = random.normal(size=4) + 1e-5 * random.normal(size=(2_000, 4))
    users *= 1000.0 / np.abs(users).max(axis=1, keepdims=True)
    users[::2] *= every_other / 1000.0
    policy, worst = make(kind, 1.0, 1.0), 0.0
    for number, x in enumerate(users):
        policy.shown(x, "ab"[random.integers(2)])
        if not number % 20:
            worst = max(worst, policy.model.drift())
    assert 0.0 < worst < 1e-6  # above: an alarm


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
def test_a_million_updates_stay_exact(kind: str, ridge: float) -> None:
    # Pools of one article: every event is a trial. Memberships sum to the constant, so that A keeps
    # an eigenvalue at its prior, and its condition number grows with the number of trials.
    place = world(seed=1, articles=3, d=6, m=6, rate=0.04)
    log = place.log(1_000_000, [[0], [1], [2]] * 20, np.random.default_rng(2), hourly=False)
    policy = ts.replay(make(kind, ridge, 1.0), log).policy
    assert policy.model.drift() < 1e-6
    d, pool = 6, place.ids
    plain = twin(kind, d, ridge, 1.0, dict(zip(pool, place.features, strict=True)))
    users, shown = np.asarray(log.users, float), log.shown_index
    for i, a in enumerate(pool):
        X, r = users[shown == i], log.payoff[shown == i].astype(float)
        rows = np.array([plain.row(x, a) for x in np.eye(d)])  # row(x) = x @ rows, being linear
        plain.gram += rows.T @ (X.T @ X) @ rows
        plain.target += rows.T @ (X.T @ r)
    for x in users[:50]:
        estimates, widths = plain.bounds(x, pool)
        assert_allclose(policy.estimates(x, pool), estimates, rtol=1e-6)
        assert_allclose(policy.widths(x, pool), widths, rtol=1e-6)


def test_ten_million_updates_of_a_singular_design_stay_finite_and_positive() -> None:
    place = world(seed=3, kinds=5, articles=1, d=6, m=1)  # five users, six features
    log = place.log(1_000_000, [[0]], np.random.default_rng(4), hourly=False)
    policy = make("disjoint", 0.01, 1.0)
    for _ in range(10):
        policy = ts.replay(policy, log).policy
    assert "L" in policy.model.arrays()  # factored: trace(A)/ridge is 2e9
    for array in policy.model.arrays().values():
        assert np.isfinite(array).all()
    assert (policy.widths(place.users[0], place.ids) > 0).all()


def test_hybrid_with_zero_article_features_is_disjoint() -> None:
    random = np.random.default_rng(0)
    hybrid, disjoint = make("hybrid", 2.0, 1.0), make("disjoint", 2.0, 1.0)
    pool = ["a", "b"]
    for a in pool:
        hybrid.add_article(a, np.zeros(3))
    for _ in range(200):
        x, a, r = context(random, 4), str(random.choice(pool)), float(random.random() < 0.3)
        hybrid.learn(x, a, r)
        disjoint.learn(x, a, r)
        assert_allclose(hybrid.scores(x, pool), disjoint.scores(x, pool), rtol=1e-10)


def test_hybrid_without_article_features_is_disjoint_with_a_shared_prior() -> None:
    # Worked out by hand: φ_a = β + θ_a has prior covariance I/shared between any two articles and
    # I/ridge more with itself, so payoffs are a Gaussian process with noise 1 and covariance
    # xᵀx'·(1/shared + [a = a']/ridge).
    random = np.random.default_rng(1)
    ridge, shared = 3.0, 0.5
    policy = make("hybrid", ridge, shared)
    pool = ["a", "b", "c"]
    trials = [
        (context(random, 4), str(random.choice(pool[:2])), float(random.normal()))
        for _ in range(60)
    ]
    for x, a, r in trials:
        policy.learn(x, a, r)
    X = np.array([x for x, _, _ in trials])
    arms = np.array([a for _, a, _ in trials])
    payoffs = np.array([r for _, _, r in trials])

    def covariance(x: Floats, a: Any, y: Floats, b: Any) -> Any:
        return (x @ y.T) * (1 / shared + (a[:, None] == b[None, :]) / ridge)

    noisy = covariance(X, arms, X, arms) + np.eye(len(X))
    x = context(random, 4)
    for a in pool:  # "c" was never shown: what it knows is what "a" and "b" taught it
        here, arm = x[None], np.array([a])
        across = covariance(here, arm, X, arms)
        mean = across @ np.linalg.solve(noisy, payoffs)
        variance = covariance(here, arm, here, arm) - across @ np.linalg.solve(noisy, across.T)
        assert_allclose(policy.estimates(x, [a]), mean, rtol=1e-8)
        assert_allclose(policy.widths(x, [a]) ** 2, variance[0], rtol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_and_dense_contexts_give_the_same_bits(kind: str) -> None:
    from scipy import sparse

    random = np.random.default_rng(5)
    n, d, pool = 4000, 136, [f"a{i}" for i in range(8)]
    on = random.random((n, d)) < 0.04
    on[:, -1] = True
    shown = random.choice(pool, n)
    clicked = random.random(n) < 0.2 + 0.3 * on[:, 3]

    def log(users: Any) -> ts.EventLog:
        return ts.EventLog.from_arrays(users, [pool], np.zeros(n, int), shown, clicked)

    dense = ts.replay(make(kind, 1.0, 1.0), log(on.astype(float)))
    thin = ts.replay(make(kind, 1.0, 1.0), log(sparse.csr_array(on.astype(float))))
    np.testing.assert_array_equal(dense.learning.sums, thin.learning.sums)
    np.testing.assert_array_equal(dense.deployment.sums, thin.deployment.sums)
    for field, array in dense.policy.model.arrays().items():
        np.testing.assert_array_equal(array, thin.policy.model.arrays()[field])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e4, 1e6])
def test_long_contexts_stay_exact(kind: str, scale: float) -> None:
    """A raw count or income among the features: the condition number is the square of its size."""
    random = np.random.default_rng(0)
    policy = make(kind, 1.0, 1.0)
    features = {a: random.normal(0, 1, 3) for a in ("a", "b")}
    plain = twin(kind, 4, 1.0, 1.0, features)
    for a, f in features.items():
        policy.add_article(a, f)
    for i in range(40):
        x = np.array([scale * (1 + i / 20), random.random(), random.random(), 1.0])
        a, r = "ab"[i % 2], float(random.random())
        policy.learn(x, a, r)
        plain.shown(x, a)
        plain.paid(x, a, r)
    x = np.array([scale, 0.5, 0.5, 1.0])
    estimates, widths = plain.bounds(x, ["a", "b"])
    assert_allclose(policy.widths(x, ["a", "b"]), widths, rtol=1e-3)
    assert_allclose(policy.estimates(x, ["a", "b"]), estimates, rtol=1e-3)


def test_equals_on_paper_tie_whatever_way_they_were_computed() -> None:
    """Two cold articles with the same features: one was in the pool all along, one just came."""
    random = np.random.default_rng(3)
    ties = 0
    for _ in range(200):
        policy = make("hybrid", 1.0, 1.0)
        for a, f in (("old", [0.2, 0.8, 1.0]), ("x", [0.5, 0.5, 1.0]), ("new", [0.2, 0.8, 1.0])):
            policy.add_article(a, f)
        for _ in range(20):
            x = context(random, 4)
            policy.choose(x, ["old", "x"])
            policy.learn(x, "x", float(random.random() < 0.3))
        ties += policy.choose(context(random, 4), ["old", "new"]).propensity == 0.5
    assert ties >= 198  # a score at the very edge of 40 bits may still fall to either side
