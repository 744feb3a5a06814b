"""One contract for every registered policy."""

from typing import Any, cast

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.models.making_priors import some_prior

import topstory as ts
from topstory.policies import batches
from topstory.policies.registry import REGISTRY, TUNED

POOL = ["rain", "sun", "snow"]
FEATURES = {"rain": [1.0, 0.0, 1.0], "sun": [0.0, 1.0, 1.0], "snow": [0.5, 0.5, 1.0]}
LIVE = [name for name, entry in REGISTRY.items() if not entry.model.needs_log]


def make(name: str, **parameters: Any) -> ts.Policy:
    if "offset" in REGISTRY[name].model_parameters:
        parameters["offset"] = {"rain": [0.1, 0.0, 0.0, 0.0], "sun": [0.0, 0.1, 0.0, 0.0]}
    if REGISTRY[name].from_prior:
        parameters.setdefault("prior", some_prior(4, 3))
    policy = ts.policy(name, **parameters)
    for article, features in FEATURES.items():
        policy.add_article(article, features)
    return policy


def user(random: np.random.Generator) -> Any:
    share = random.random()
    return np.array([share, 1 - share, 0.0, 1.0])


def train(policy: ts.Policy, trials: int, seed: int = 0) -> None:
    random = np.random.default_rng(seed)
    for _ in range(trials):
        x = user(random)
        policy.learn(x, policy.choose(x, POOL).article, float(random.random() < 0.3))


@pytest.mark.parametrize("name", LIVE)
def test_choose_gives_an_article_of_the_pool_and_its_propensity(name: str) -> None:
    policy = make(name)
    train(policy, 30)
    x = user(np.random.default_rng(1))
    assert policy.estimates(x, POOL).shape == (3,)
    assert policy.widths(x, POOL).shape == (3,)
    assert policy.scores(x, POOL).shape == (3,)
    choice = policy.choose(x, POOL)
    assert choice.article in POOL
    assert 0 < choice.propensity <= 1
    assert policy.greedy(x, POOL).article in POOL


@pytest.mark.parametrize("name", ["ucb-seg", "linucb-disjoint", "softmax-hybrid", "egreedy-warm"])
def test_a_batch_of_users_is_decided_as_one_by_one_to_the_bit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BLOCK", 7 * len(POOL))  # 7 users at a time
    random = np.random.default_rng(5)
    users = np.array([user(random) for _ in range(30)])
    one, many = make(name, seed=4), make(name, seed=4)
    for policy in (one, many):
        train(policy, 20)
    found = many.estimates_all(users, POOL)
    assert found.tobytes() == np.array([one.estimates(x, POOL) for x in users]).tobytes()
    assert many.choose_all(users, POOL) == [one.choose(x, POOL) for x in users]
    assert many.decisions == one.decisions
    assert many.choose_all(np.empty((0, 4)), POOL) == []
    users[3, 1] = np.nan
    with pytest.raises(ValueError, match="users: row 3 must be finite numbers"):
        many.choose_all(users, POOL)


@pytest.mark.parametrize("name", LIVE)
@pytest.mark.parametrize("trials", [0, 12])
def test_the_propensity_is_how_often_the_article_is_chosen(name: str, trials: int) -> None:
    """Over 3,000 decisions from one state; each share within 5 standard deviations."""
    policy = make(name, **({"epsilon": 0.3} if REGISTRY[name].tuned == TUNED["epsilon"] else {}))
    train(policy, trials)
    x = np.array([0.5, 0.5, 0.0, 1.0])
    found = [policy.choose(x, POOL) for _ in range(3000)]
    for article in POOL:
        propensities = {c.propensity for c in found if c.article == article}
        share = sum(c.article == article for c in found) / len(found)
        assert len(propensities) <= 1
        p = propensities.pop() if propensities else 0.0
        assert abs(share - p) <= 5 * np.sqrt(p * (1 - p) / len(found)) + 1e-12


@pytest.mark.parametrize("name", LIVE)
def test_what_scoring_reads_follows_from_what_was_learned_to_the_bit(name: str) -> None:
    """Whatever was scored in between, and in whichever batches: so other machines have the same."""
    busy, idle = make(name), make(name)
    random = np.random.default_rng(7)
    for turn in range(300):
        x, article = user(random), POOL[turn % 3]
        for policy in (busy, idle):
            policy.learn(x, article, float(turn % 4 == 0))
        busy.estimates(user(random), POOL[: 1 + turn % 3])
    slots = busy.model.slots(POOL)
    read = busy.model.scored_rows(slots)
    again, other = busy.model.scored_rows(slots), idle.model.scored_rows(slots)
    assert set(read) == set(busy.model.scored)
    for field, rows in read.items():
        assert rows.tobytes() == again[field].tobytes() == other[field].tobytes(), field
    # Nor does it change what is learned, or scored afterwards.
    x = user(random)
    before = idle.copy().estimates(x, POOL)
    assert_allclose(busy.estimates(x, POOL), before, rtol=1e-9)
    for policy in (busy, idle):
        policy.learn(x, "sun", 1.0)
    for field, rows in busy.model.learned().items():
        assert rows.tobytes() == idle.model.learned()[field].tobytes(), field


def test_propensities_are_the_true_mixture() -> None:
    greedy = make("egreedy", epsilon=0.3)
    for _ in range(4):
        greedy.learn([0.5, 0.5, 0.0, 1.0], "rain", 1.0)
    found = {
        c.article: c.propensity for c in (greedy.choose([1, 0, 0, 1], POOL) for _ in range(200))
    }
    assert found["rain"] == pytest.approx(0.7 + 0.3 / 3)
    assert found["sun"] == found["snow"] == pytest.approx(0.3 / 3)
    assert make("ucb").choose([1, 0, 0, 1], POOL).propensity == pytest.approx(1 / 3)  # three unseen
    assert make("random").choose([1, 0, 0, 1], POOL).propensity == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", LIVE)
def test_the_same_seed_makes_the_same_choices_and_another_others(name: str) -> None:
    runs = []
    for seed in (1, 1, 2):
        policy, random = make(name, seed=seed), np.random.default_rng(0)
        chosen = []
        for _ in range(60):
            x = user(random)
            chosen.append(policy.choose(x, POOL).article)
            policy.learn(x, chosen[-1], float(random.random() < 0.1))
        runs.append(chosen)
    assert runs[0] == runs[1]
    if not REGISTRY[name].from_prior:  # of which no articles tie, so that chance may decide nothing
        assert runs[0] != runs[2]


@pytest.mark.parametrize("name", LIVE)
def test_halves_equal_the_whole(name: str) -> None:
    """Late payoffs in any order, too. What impressions teach a logistic model depends on them."""
    whole, late, later, at_once = (make(name) for _ in range(4))
    random, owed = np.random.default_rng(0), []
    for _ in range(20):
        x, article, payoff = user(random), str(random.choice(POOL)), float(random.random())
        whole.learn(x, article, payoff)
        for policy in (late, later, at_once):
            policy.shown(x, article)
        at_once.paid(x, article, payoff)
        owed.append((x, article, payoff))
    for policy in (late, later):
        for i in random.permutation(len(owed)):
            policy.paid(*owed[i])
    x = user(random)
    np.testing.assert_array_equal(at_once.scores(x, POOL), whole.scores(x, POOL))
    np.testing.assert_allclose(late.scores(x, POOL), later.scores(x, POOL), rtol=1e-9)
    if whole.model.additive:
        np.testing.assert_allclose(late.scores(x, POOL), whole.scores(x, POOL), rtol=1e-9)


@pytest.mark.parametrize("name", LIVE)
def test_a_removed_article_is_forgotten_and_others_are_not(name: str) -> None:
    policy = make(name)
    train(policy, 50)
    x = np.array([0.2, 0.8, 0.0, 1.0])
    before = policy.estimates(x, ["sun", "snow"])
    policy.remove_article("rain")
    np.testing.assert_array_equal(policy.estimates(x, ["sun", "snow"]), before)
    policy.add_article("hail", [1.0, 0.0, 1.0])  # takes the free slot
    np.testing.assert_array_equal(policy.estimates(x, ["sun", "snow"]), before)
    with pytest.raises(KeyError, match="'rain' is not known"):
        policy.remove_article("rain")


@pytest.mark.parametrize("name", LIVE)
def test_many_articles_come_and_go(name: str) -> None:
    policy, random = make(name), np.random.default_rng(0)
    for i in range(100):
        article = f"a{i}"
        policy.add_article(article, [random.random(), random.random(), 1.0])
        policy.learn(user(random), article, 1.0)
        if i % 3 == 0:
            policy.remove_article(article)
    assert len(policy.model.roster) == 3 + 66
    left = [f"a{i}" for i in range(100) if i % 3]
    x = user(random)
    if REGISTRY[name].model.article_features or name == "random":  # shared, or nothing, learned
        assert np.isfinite(policy.scores(x, left)).all()
    else:  # each article has learned its own payoff, and none of those whose slot it took
        alone, random = make(name), np.random.default_rng(0)
        for i in range(100):
            random.random(2)
            alone.learn(user(random), f"a{i}", 1.0)
        np.testing.assert_allclose(policy.estimates(x, left), alone.estimates(x, left), rtol=1e-9)


def test_an_article_not_added_before_is_added() -> None:
    policy = ts.policy("linucb-disjoint")
    assert policy.choose([1.0], ["new", "newer"]).article in ("new", "newer")
    assert len(policy.model.roster) == 2


@pytest.mark.parametrize("name", LIVE)
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda p: p.choose([0.5, 0.5, 0.0, 1.0], []), "pool is empty"),
        (lambda p: p.choose([0.5, 0.5, 0.0, 1.0], ["sun", "sun"]), "lists article 'sun' twice"),
        (lambda p: p.choose([0.5, np.nan, 0.0, 1.0], POOL), "vector of finite numbers"),
        (
            lambda p: p.choose([[0.5, 0.5, 0.0, 1.0]], POOL),
            "needs as many contexts, or one for all; got 1",
        ),
        (lambda p: p.choose([], POOL), "at least one feature"),
        (
            lambda p: (p.choose([1, 0, 0, 1], POOL), p.choose([1, 1], POOL)),
            "4 features here, got 2",
        ),
        (lambda p: p.learn([1, 0, 0, 1], "sun", float("inf")), "payoff is a finite number"),
        (lambda p: p.add_article(7.5), "non-empty string, got 7.5"),
        (lambda p: p.add_article("fog", [np.nan]), "finite numbers"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(name: str, bad: Any, message: str) -> None:
    policy = make(name)
    with pytest.raises(ValueError, match=message):
        bad(policy)
    assert len(policy.model.roster) == 3


def test_features_must_agree() -> None:
    policy = make("linucb-hybrid")
    with pytest.raises(ValueError, match="comes with 2 features, but others here have 3"):
        policy.add_article("fog", [0.1, 1.0])
    with pytest.raises(ValueError, match="comes with no features, but others here have 3"):
        policy.choose([1, 0, 0, 1], ["fog"])
    with pytest.raises(ValueError, match="known with other features"):
        policy.add_article("rain", [0.0, 0.0, 1.0])
    policy.add_article("rain", FEATURES["rain"])


@pytest.mark.parametrize(
    ("make_it", "message"),
    [
        (lambda: ts.policy("linucb"), "no policy is called 'linucb'; there are random, "),
        (lambda: ts.policy("ucb", alpha=-1), "alpha must be >= 0"),
        (lambda: ts.policy("ucb", alpha=float("nan")), "alpha must be >= 0"),
        (lambda: ts.policy("ucb", delta=2), "delta must be between 0 and 1"),
        (lambda: ts.policy("ucb", alpha=1, delta=0.1), "alpha or delta, not both"),
        (lambda: ts.policy("egreedy", epsilon=1.5), "epsilon must be between 0"),
        (lambda: ts.policy("linucb-hybrid", shared_ridge=0), "shared_ridge must be"),
        (lambda: ts.policy("ucb", seed=-1), "seed must be a whole number"),
        (lambda: ts.policy("ucb", seed=cast(int, 1.5)), "seed must be a whole number"),
        (lambda: ts.policy("ucb-seg", segments=0, assignment=len), "segments must be at least 1"),
        (lambda: ts.policy("ucb-seg", segments=2), "segments and assignment go together"),
        (lambda: ts.policy("ucb-seg", assignment=len), "segments and assignment go together"),
    ],
)
def test_bad_parameters_are_refused(make_it: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_it()


def test_parameters_of_other_policies_are_refused() -> None:
    with pytest.raises(TypeError, match="policy 'random' takes no alpha; it takes seed"):
        ts.policy("random", alpha=1)
    with pytest.raises(TypeError, match="needs offset="):
        ts.policy("ucb-warm")


def test_delta_gives_the_papers_alpha() -> None:
    alpha = ts.policy("linucb-disjoint", delta=0.1).explorer.bonus
    assert alpha == pytest.approx(1 + np.sqrt(np.log(2 / 0.1) / 2))


def test_an_assignment_outside_its_segments_is_refused() -> None:
    policy = ts.policy("ucb-seg", segments=2, assignment=lambda users: np.full(len(users), 2))
    with pytest.raises(ValueError, match="gave segment 2, not 0 … 1"):
        policy.choose([1.0, 1.0], POOL)
    shapes = ts.policy("ucb-seg", segments=2, assignment=lambda users: np.zeros(5))
    with pytest.raises(ValueError, match="one whole number for each of 1 users"):
        shapes.choose([1.0, 1.0], POOL)


def test_an_offset_of_the_wrong_length_is_refused() -> None:
    policy = ts.policy("ucb-warm", offset={"rain": [0.1, 0.2]})
    for _ in range(2):  # refused again and again, not half taken in
        with pytest.raises(ValueError, match="'rain' has 2 weights, but a context has 4"):
            policy.choose([0.5, 0.5, 0.0, 1.0], POOL)
    broken = ts.policy("ucb-warm", offset=lambda user, article: float("nan"))
    with pytest.raises(ValueError, match="offset of article 'rain' is nan"):
        broken.choose([0.5, 0.5, 0.0, 1.0], POOL)


@pytest.mark.parametrize("name", LIVE)
def test_a_payoff_for_a_removed_article_is_refused(name: str) -> None:
    policy = make(name)
    policy.shown([1, 0, 0, 1], "rain")
    policy.remove_article("rain")
    with pytest.raises(KeyError, match="'rain' is not known"):
        policy.paid([1, 0, 0, 1], "rain", 1.0)
    assert len(policy.model.roster) == 2


def test_the_number_of_features_is_settled_by_the_first_article() -> None:
    policy = ts.policy("linucb-hybrid")
    policy.choose([1, 0, 0, 1], ["x"])  # without features
    policy.remove_article("x")
    with pytest.raises(ValueError, match="comes with 3 features, but others here have 1"):
        policy.add_article("a", [1.0, 2.0, 3.0])
    assert len(policy.model.roster) == 0
    features = np.array([1.0, 2.0, 3.0])
    other = ts.policy("linucb-hybrid")
    other.add_article("a", features)
    features[0] = 99.0  # the caller's own array
    other.choose([1, 0, 0, 1], ["a"])
    assert other.model.state.features[0].tolist() == [1.0, 2.0, 3.0]


def test_omniscient_prefers_what_was_shown_to_what_never_was() -> None:
    log = ts.EventLog.from_arrays([[1.0]] * 40, [["a", "b"]], [0] * 40, ["a"] * 40, [-1.0] * 40)
    with pytest.warns(UserWarning, match="left nothing to chance"):
        result = ts.replay(ts.policy("omniscient"), log)
    assert result.learning.trials == 40


def test_omniscient_refuses_to_choose_without_a_log() -> None:
    with pytest.raises(ValueError, match=r"call ts\.replay"):
        ts.policy("omniscient").choose([1.0], POOL)


def test_what_is_no_number_is_refused_by_its_name() -> None:
    for name, settings, says in (
        ("linucb-disjoint", {"alpha": "x"}, "alpha must be a number, got 'x'"),
        ("egreedy", {"epsilon": [0.1]}, r"epsilon must be a number, got \[0.1\]"),
        ("ucb", {"half_life": "day"}, "half_life must be a number, got 'day'"),
    ):
        with pytest.raises(TypeError, match=says):
            ts.policy(name, **settings)
    assert ts.policy("ucb", alpha=np.float32(0.5)).explorer.bonus == 0.5
    for payoff in ("x", None, [1.0]):
        with pytest.raises(ValueError, match="a payoff is a finite number, got"):
            ts.policy("linucb-disjoint").learn([1.0], "a", payoff)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="log must be an EventLog, got int"):
        ts.train(ts.policy("ucb"), 3)  # type: ignore[arg-type]
