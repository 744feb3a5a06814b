"""EXP4 and the Banditron: their own formulas, and that they find out what is good."""

from pathlib import Path

import numpy as np
import pytest
from tests.policies.stored_policies import FIXTURES
from tests.policies.test_policies import FEATURES, POOL, user

import topstory as ts


def combined(gamma: float = 0.2) -> ts.Combination:
    both = ts.combine([ts.policy("egreedy", epsilon=0.5), ts.policy("lints-hybrid")], gamma, seed=4)
    for article, features in FEATURES.items():
        both.add_article(article, features)
    return both


def test_weights_and_probabilities_are_exp4_s() -> None:
    both, random = combined(), np.random.default_rng(0)
    log_weights = np.zeros(2)
    for _ in range(60):
        x = user(random)
        advice = np.array([expert.probabilities(x, POOL) for expert in both.experts])
        w = np.exp(log_weights) / np.exp(log_weights).sum()
        p = 0.8 * w @ advice + 0.2 / 3
        np.testing.assert_allclose(both.probabilities(x, POOL), p, rtol=1e-12)
        choice, payoff = both.choose(x, POOL), float(random.random() < 0.4)
        place = POOL.index(choice.article)
        assert choice.propensity == pytest.approx(p[place], rel=1e-12)
        both.learn(x, choice.article, payoff)
        log_weights += 0.2 / 3 * advice[:, place] * payoff / p[place]
        np.testing.assert_allclose(both.weights, np.exp(log_weights) / np.exp(log_weights).sum())
    assert both.experts[0].trials == both.experts[1].trials == 60


def test_choices_have_the_probabilities_that_they_tell() -> None:
    """Over 3,000 decisions from one state; each share within 5 standard deviations."""
    both, x = combined(), [0.5, 0.5, 0.0, 1.0]
    chances = both.probabilities(x, POOL)
    found = [both.choose(x, POOL).article for _ in range(3000)]
    for article, p in zip(POOL, chances, strict=True):
        share = found.count(article) / len(found)
        assert abs(share - p) <= 5 * np.sqrt(p * (1 - p) / len(found))


def test_the_better_expert_gains_the_weight() -> None:
    """One expert knows users, the other only articles; each group likes one article. Seed 1."""
    both = ts.combine([ts.policy("ucb"), ts.policy("linucb-disjoint")], gamma=0.3, seed=1)
    random = np.random.default_rng(1)
    for _ in range(1500):
        group = int(random.integers(2))
        x = [float(group == 0), float(group == 1)]
        choice = both.choose(x, ["a", "b"])
        rate = 0.8 if choice.article == "ab"[group] else 0.1
        both.learn(x, choice.article, float(random.random() < rate))
    assert both.weights[1] > 0.99
    assert both.greedy([1.0, 0.0], ["a", "b"]).article == "a"
    assert both.greedy([0.0, 1.0], ["a", "b"]).article == "b"


def taught() -> ts.Combination:
    both, random = combined(), np.random.default_rng(0)
    for _ in range(20):
        x = user(random)
        both.learn(x, both.choose(x, POOL).article, float(random.random() < 0.4))
    return both


def test_a_combination_that_an_earlier_version_wrote_still_loads() -> None:
    """The file is never written again; `taught().save(…)` wrote it."""
    kept, both = ts.Combination.load(FIXTURES / "combination-v1.safetensors"), taught()
    assert repr(kept) == repr(both)
    np.testing.assert_allclose(kept.weights, both.weights, rtol=1e-9)
    x = [0.5, 0.5, 0.0, 1.0]
    np.testing.assert_allclose(kept.probabilities(x, POOL), both.probabilities(x, POOL), rtol=1e-9)


def test_a_combination_is_stored_whole(tmp_path: Path) -> None:
    both, random = taught(), np.random.default_rng(0)
    both.save(tmp_path / "c.safetensors")
    loaded = ts.Combination.load(tmp_path / "c.safetensors")
    assert repr(loaded) == repr(both)
    x = user(random)
    assert [loaded.choose(x, POOL) for _ in range(5)] == [both.choose(x, POOL) for _ in range(5)]
    with pytest.raises(ValueError, match="not a topstory policy"):
        ts.Policy.load(tmp_path / "c.safetensors")


def test_both_can_be_replayed() -> None:
    random = np.random.default_rng(0)
    users = np.eye(2)[random.integers(2, size=800)]
    shown = random.choice(["a", "b"], 800)
    clicks = random.random(800) < np.where((users[:, 0] == 1) == (shown == "a"), 0.9, 0.1)
    log = ts.EventLog.from_arrays(users, [["a", "b"]], [0] * 800, shown, clicks)
    for policy in (
        ts.combine([ts.policy("ucb"), ts.policy("linucb-disjoint")], gamma=0.2),
        ts.Banditron(gamma=0.1),
    ):
        result = ts.replay(policy, log)
        assert result.learning.ctr > 1.3 * result.random_ctr
        assert result.deployment.ctr > result.random_ctr


def test_the_banditron_moves_as_its_paper_says() -> None:
    learner, random = ts.Banditron(gamma=0.3, seed=2), np.random.default_rng(5)
    weights = {article: np.zeros(4) for article in POOL}
    for _ in range(50):
        x, r = user(random), float(random.random() < 0.5)
        scores = np.array([weights[a] @ x for a in POOL])
        np.testing.assert_allclose(learner.scores(x, POOL), scores, atol=1e-9)
        choice = learner.choose(x, POOL)
        learner.learn(x, choice.article, r)
        if (scores == scores.max()).sum() > 1:  # the guess was drawn: take what it came to
            columns = np.array([learner.scores(row, POOL) for row in np.eye(4)])  # (d, articles)
            weights = {a: columns[:, i] for i, a in enumerate(POOL)}
            continue
        guess = POOL[int(np.argmax(scores))]
        weights[choice.article] = weights[choice.article] + x * r / choice.propensity
        weights[guess] = weights[guess] - x


def test_bad_input_is_refused() -> None:
    with pytest.raises(TypeError, match="experts must be one or more policies"):
        ts.combine([])
    with pytest.raises(ValueError, match="gamma must be above 0"):
        ts.combine([ts.policy("ucb")], gamma=0)
    with pytest.raises(ValueError, match="gamma must be above 0"):
        ts.Banditron(gamma=2)
    with pytest.raises(ValueError, match="takes payoffs from 0 to 1, got 3"):
        combined().learn([1, 0, 0, 1], "sun", 3)
    with pytest.raises(ValueError, match="takes payoffs from 0 to 1, got -1"):
        ts.Banditron().learn([1.0], "sun", -1)
    with pytest.raises(ValueError, match="the pool is empty"):
        ts.Banditron().choose([1.0], [])
