"""An article whose features change: they count from then on, and what was learned stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.twins import Algorithm2, Floats

import topstory as ts
from topstory.events import EventLog
from topstory.policies.log_learner import learn_log

D, POOL, RIDGE, SHARED = 4, ["rain", "sun", "fog"], 0.7, 2.0
FEATURES = {"rain": [0.2, 0.8, 1.0], "sun": [0.9, 0.1, 1.0], "fog": [0.5, 0.5, 1.0]}
EDITED = np.array([0.9, 0.3, 1.0])


def made(factored: bool) -> tuple[ts.Policy, Algorithm2]:
    features = {article: np.array(row) for article, row in FEATURES.items()}
    policy = ts.Policy(ts.HybridLinear(RIDGE, SHARED), ts.UpperConfidence(0.5))
    for article, row in features.items():
        policy.add_article(article, row)
    policy.model.see(D)
    if factored:
        assert policy.model.factorise()
    return policy, Algorithm2(D, dict(features), RIDGE, SHARED)


def learn(policy: ts.Policy, plain: Algorithm2, trials: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(trials):
        x, article = np.append(random.random(D - 1), 1.0), POOL[random.integers(3)]
        payoff = float(random.random() < 0.3 + 0.4 * x[0] * (article == "rain"))
        for each in POOL:
            plain.bound(x, each)
        policy.learn(x, article, payoff)
        plain.learn(x, article, payoff)


def edit(policy: ts.Policy, plain: Algorithm2) -> None:
    """θ = A⁻¹(b − Bβ) stays, while B becomes that of the new features."""
    beta = np.linalg.solve(plain.A0, plain.b0)
    B = np.kron(plain.A["rain"] - RIDGE * np.eye(D), EDITED)
    plain.b["rain"] = plain.b["rain"] + (B - plain.B["rain"]) @ beta
    plain.B["rain"], plain.features["rain"] = B, EDITED
    policy.edit_article("rain", EDITED)


def bounds(plain: Algorithm2, x: Floats) -> tuple[Floats, Floats]:
    found = np.array([plain.bound(x, article) for article in POOL])
    return found[:, 0], found[:, 1]


@pytest.mark.parametrize("factored", [False, True])
def test_right_after_an_edit_estimates_are_those_of_algorithm_2_with_the_new_features(
    factored: bool,
) -> None:
    policy, plain = made(factored)
    learn(policy, plain, 60, seed=1)
    x = np.array([0.7, 0.1, 0.4, 1.0])
    policy.estimates(x, POOL)  # so that forms are kept, and must be dropped
    plain.features["rain"] = EDITED  # Algorithm 2 keeps B, so it takes any z
    wanted, _ = bounds(plain, x)
    policy.edit_article("rain", EDITED)
    assert_allclose(policy.estimates(x, POOL), wanted, rtol=1e-9)


@pytest.mark.parametrize("factored", [False, True])
def test_it_goes_on_learning_line_by_line_as_algorithm_2(factored: bool, tmp_path: Path) -> None:
    policy, plain = made(factored)
    learn(policy, plain, 40, seed=1)
    edit(policy, plain)
    learn(policy, plain, 40, seed=2)
    x = np.array([0.2, 0.9, 0.1, 1.0])
    estimates, widths = bounds(plain, x)
    assert_allclose(policy.estimates(x, POOL), estimates, rtol=1e-8)
    assert_allclose(policy.widths(x, POOL), widths, rtol=1e-8)
    policy.save(tmp_path / "policy")
    again = ts.Policy.load(tmp_path / "policy")
    assert (again.scores(x, POOL) == policy.scores(x, POOL)).all()
    if not factored:  # the right-hand side is the sum of its parts, also after an edit
        assert policy.model.factorise()
        assert_allclose(policy.estimates(x, POOL), estimates, rtol=1e-8)


def test_the_features_that_it_has_change_nothing_and_models_without_features_take_any() -> None:
    policy, plain = made(factored=False)
    learn(policy, plain, 20, seed=1)
    x = [0.2, 0.9, 0.1, 1.0]
    before = policy.scores(x, POOL).tolist()
    policy.edit_article("rain", FEATURES["rain"])
    policy.edit_article("rain", None)
    assert policy.scores(x, POOL).tolist() == before
    with pytest.raises(ValueError, match="comes with 2 features, but others here have 3"):
        policy.edit_article("rain", [0.1, 1.0])
    disjoint = ts.policy("linucb-disjoint")
    disjoint.edit_article("rain", [1.0])
    disjoint.edit_article("rain", [2.0, 3.0])
    assert disjoint.choose(x, ["rain"]).article == "rain"


def test_a_log_in_which_an_article_has_other_features_edits_it() -> None:
    """Three articles, of which one is described anew a month later."""
    later = {**FEATURES, "rain": EDITED.tolist()}
    x = np.random.default_rng(0).random((30, D))
    logs = [
        EventLog.from_arrays(x, [POOL], [0] * 30, POOL * 10, [1, 0, 0] * 10, articles=articles)
        for articles in (FEATURES, later)
    ]
    whole, single = ts.policy("linucb-hybrid"), ts.policy("linucb-hybrid")
    for log in logs:
        learn_log(whole, log)
        for article, features in log.articles.items():
            single.edit_article(article, features)
        for event in log:
            single.learn(event.user, event.shown, event.payoff)
    assert (whole.scores(x[0], POOL) == single.scores(x[0], POOL)).all()
