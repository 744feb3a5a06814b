"""An article whose features change: they count from then on, and its trials stay what they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.twins import Algorithm2, Floats, StackedRidge

import topstory as ts
from topstory.engines import engine
from topstory.events import EventLog
from topstory.kernels.models.hybrid import Hybrid
from topstory.models.input_range import ScaleError
from topstory.policies.log_learner import learn_log
from topstory.policies.sum_learner import learn_sums

D, POOL, RIDGE, SHARED = 4, ["rain", "sun", "fog"], 0.7, 2.0
FEATURES = {"rain": [0.2, 0.8, 1.0], "sun": [0.9, 0.1, 1.0], "fog": [0.5, 0.5, 1.0]}
EDITED, AGAIN = np.array([0.9, 0.3, 1.0]), np.array([0.0, 0.6, 1.0])
X = np.array([0.2, 0.9, 0.1, 1.0])


class Pair:
    """A policy, and one plain regression whose rows are as they were when the article was shown."""

    def __init__(self, factored: bool = False, seed: int = 1, **parameters: Any) -> None:
        features = {article: np.array(row) for article, row in FEATURES.items()}
        model = ts.HybridLinear(**({"ridge": RIDGE, "shared_ridge": SHARED} | parameters))
        self.policy = ts.Policy(model, ts.UpperConfidence(0.5))
        for article, row in features.items():
            self.policy.add_article(article, row)
        self.policy.model.see(D)
        if factored:
            assert self.policy.model.factorise()
        self.plain = StackedRidge(D, RIDGE, SHARED, features)
        self.random = np.random.default_rng(seed)

    def trial(self) -> tuple[Floats, str, float]:
        x, article = np.append(self.random.random(D - 1), 1.0), POOL[self.random.integers(3)]
        return x, article, float(self.random.random() < 0.3 + 0.4 * x[0] * (article == "rain"))

    def learn(self, trials: int) -> Pair:
        for _ in range(trials):
            x, article, payoff = self.trial()
            self.policy.learn(x, article, payoff)
            self.plain.shown(x, article)
            self.plain.paid(x, article, payoff)
        return self

    def edit(self, article: str, features: Floats) -> Pair:
        self.policy.edit_article(article, features)
        self.plain.features[article] = np.asarray(features)
        return self

    def agree(self, rtol: float = 1e-9) -> None:
        for x in (X, np.append(self.random.random(D - 1), 1.0)):
            estimates, widths = self.plain.bounds(x, POOL)
            assert_allclose(self.policy.estimates(x, POOL), estimates, rtol=rtol)
            assert_allclose(self.policy.widths(x, POOL), widths, rtol=rtol)


@pytest.mark.parametrize("factored", [False, True])
def test_each_trial_keeps_the_z_that_it_had_when_shown(factored: bool) -> None:
    pair = Pair(factored)
    pair.learn(60)
    pair.policy.scores(X, POOL)  # so that forms are kept, and must be dropped
    pair.edit("rain", EDITED).agree()
    pair.learn(40).agree()
    pair.edit("sun", AGAIN).edit("rain", AGAIN).agree()
    pair.learn(40).agree()
    pair.edit("rain", np.array(FEATURES["rain"])).agree()  # it has been there before
    pair.learn(20).agree()


@pytest.mark.parametrize("factored", [False, True])
def test_lines_17_to_24_of_algorithm_2_take_any_z_and_so_does_the_model(factored: bool) -> None:
    pair = Pair(factored)
    plain = Algorithm2(D, dict(pair.plain.features), RIDGE, SHARED)
    for number in range(120):
        x, article, payoff = pair.trial()
        for each in POOL:
            plain.bound(x, each)
        pair.policy.choose(x, POOL)
        pair.policy.learn(x, article, payoff)
        plain.learn(x, article, payoff)
        if number % 30 == 20:
            features = pair.random.random(3)
            pair.policy.edit_article("rain", features)
            plain.features["rain"] = features
        found = np.array([plain.bound(x, each) for each in POOL])
        assert_allclose(pair.policy.estimates(x, POOL), found[:, 0], rtol=1e-8)
        assert_allclose(pair.policy.widths(x, POOL), found[:, 1], rtol=1e-8)


def test_the_articles_own_coefficients_and_the_shared_ones_stay() -> None:
    policy = Pair().learn(50).policy
    before = {name: array.copy() for name, array in policy.model.learned().items()}
    estimate = policy.estimates(X, ["rain"])[0]
    policy.edit_article("rain", EDITED)
    after = policy.model.learned()
    for name in ("A", "b", "A_inverse", "A0", "b0", "P", "beta"):
        np.testing.assert_array_equal(after[name], before[name])
    change = np.outer(X, EDITED - FEATURES["rain"]).ravel() @ before["beta"]
    assert policy.estimates(X, ["rain"])[0] == pytest.approx(estimate + change, rel=1e-12)


def test_an_edit_makes_the_width_larger_where_the_new_features_were_not_seen() -> None:
    """A third number that no article had: of it nothing was learned."""
    policy = ts.Policy(ts.HybridLinear(), ts.UpperConfidence(0.5))
    for article in POOL:
        policy.add_article(article, [0.0, 1.0])
    for _ in range(500):
        policy.learn(X, "rain", 1.0)
    before = policy.widths(X, ["rain"])[0]
    policy.edit_article("rain", [1.0, 1.0])
    assert before < 0.1
    assert policy.widths(X, ["rain"])[0] > 0.9 * np.linalg.norm(X)  # that of its prior


@pytest.mark.parametrize("factored", [False, True])
def test_halves_of_earlier_trials_come_late_with_the_features_of_then(factored: bool) -> None:
    pair = Pair(factored).learn(30)
    late = [pair.trial() for _ in range(12)]
    for x, article, _ in late[:6]:
        pair.policy.shown(x, article)
    for x, article, _ in late:
        pair.plain.shown(x, article)
    for x, article, payoff in late:
        pair.plain.paid(x, article, payoff)
    old = {article: row.copy() for article, row in pair.plain.features.items()}
    pair.edit("rain", EDITED).edit("fog", AGAIN)
    pair.policy.scores(X, POOL)
    for x, article, _ in late[6:]:
        pair.policy.shown(x, article, features=old[article])
    for x, article, payoff in late:
        pair.policy.paid(x, article, payoff, features=old[article])
    pair.agree()
    pair.learn(20).agree()


def test_late_halves_of_an_article_that_had_no_trials_when_it_was_edited() -> None:
    pair = Pair()
    pair.policy.edit_article("rain", EDITED)
    pair.policy.shown(X, "rain", features=FEATURES["rain"])
    pair.policy.paid(X, "rain", 1.0, features=FEATURES["rain"])
    pair.plain.shown(X, "rain")
    pair.plain.paid(X, "rain", 1.0)
    pair.plain.features["rain"] = EDITED
    pair.agree()
    pair.learn(20).agree()


@pytest.mark.parametrize("factored", [False, True])
def test_an_edited_policy_is_stored_copied_and_goes_on_to_the_bit(
    factored: bool, tmp_path: Path
) -> None:
    policy = Pair(factored).learn(40).edit("rain", EDITED).learn(10).policy
    policy.save(tmp_path / "policy")
    again, copy = ts.Policy.load(tmp_path / "policy"), policy.copy()
    later = Pair(seed=5)
    trials = [later.trial() for _ in range(20)]
    for each in (policy, again, copy):
        each.edit_article("sun", AGAIN)
        for x, article, payoff in trials:
            each.learn(x, article, payoff)
    assert (again.scores(X, POOL) == policy.scores(X, POOL)).all()
    assert (copy.scores(X, POOL) == policy.scores(X, POOL)).all()


@pytest.mark.parametrize("factored", [False, True])
def test_what_an_edited_article_taught_stays_when_it_is_removed(factored: bool) -> None:
    pair = Pair(factored).learn(40).edit("rain", EDITED).learn(30)
    pair.policy.remove_article("rain")
    left = ["sun", "fog"]
    for _ in range(1 if factored else 2):
        estimates, widths = pair.plain.bounds(X, left)
        assert_allclose(pair.policy.estimates(X, left), estimates, rtol=1e-9)
        assert_allclose(pair.policy.widths(X, left), widths, rtol=1e-9)
        if not factored:  # the right-hand side is the sum of its parts, too
            pair.policy.model.factorise()


def test_a_new_article_in_the_place_of_an_edited_one_knows_nothing_of_it() -> None:
    policy = Pair().learn(40).edit("rain", EDITED).policy
    policy.remove_article("rain")
    policy.add_article("new", EDITED)
    fresh = policy.copy()
    fresh.add_article("other", EDITED)
    assert_allclose(fresh.scores(X, ["new"]), fresh.scores(X, ["other"]), rtol=1e-12)
    fresh.edit_article("sun", AGAIN)  # which takes the row that is free
    assert len(fresh.model.arrays()["K"]) == 2


def changed(pair: Pair, how: str) -> ts.Policy:
    """The same knowledge, by way of sums."""
    policy = pair.policy
    if how == "fill":
        policy.model.take(policy.model.sums())
    if how == "merge":
        empty = Pair().policy
        for article in POOL:
            empty.edit_article(article, pair.plain.features[article])
        return policy.merge(empty)
    return policy.with_prior(ridge=RIDGE) if how == "prior" else policy


@pytest.mark.parametrize("how", ["fill", "merge", "prior"])
@pytest.mark.parametrize("factored", [False, True])
def test_sums_carry_what_each_trial_had(factored: bool, how: str) -> None:
    pair = Pair(factored).learn(40).edit("rain", EDITED).learn(30)
    pair.policy = changed(pair, how)
    pair.agree()
    pair.learn(20).agree()


def test_another_ridge_is_as_if_it_had_been_there_from_the_start() -> None:
    pair, other = Pair(), Pair()
    other.policy = ts.Policy(ts.HybridLinear(3.0, 5.0), ts.UpperConfidence(0.5))
    for article, row in FEATURES.items():
        other.policy.add_article(article, row)
    for each in (pair, other):
        each.learn(40).edit("rain", EDITED).learn(30)
    found = pair.policy.with_prior(ridge=3.0, shared_ridge=5.0)
    assert_allclose(found.scores(X, POOL), other.policy.scores(X, POOL), rtol=1e-9)


def test_a_half_life_fades_all_trials_alike() -> None:
    pair = Pair().learn(40).edit("rain", EDITED).learn(30)
    pair.policy.model.fade(0.5)
    plain = pair.plain
    start = np.diag(np.r_[np.full(plain.k, SHARED), np.full(D * 3, RIDGE)])
    plain.gram, plain.target = start + 0.5 * (plain.gram - start), 0.5 * plain.target
    pair.agree()


def test_the_features_that_it_has_change_nothing_and_models_without_features_take_any() -> None:
    pair = Pair().learn(20)
    policy = pair.policy
    before = policy.scores(X, POOL).tolist()
    policy.edit_article("rain", FEATURES["rain"])
    policy.edit_article("rain", None)
    assert policy.scores(X, POOL).tolist() == before
    assert isinstance(policy.model.state, Hybrid)
    with pytest.raises(ValueError, match="comes with 2 features, but others here have 3"):
        policy.edit_article("rain", [0.1, 1.0])
    disjoint = ts.policy("linucb-disjoint")
    disjoint.edit_article("rain", [1.0])
    disjoint.edit_article("rain", [2.0, 3.0])
    assert disjoint.choose(X, ["rain"]).article == "rain"
    disjoint.paid(X, "rain", 1.0, features=[1.0])


def test_an_article_that_nobody_saw_is_as_if_it_had_always_been_so() -> None:
    policy, other = (Pair(seed=3).policy for _ in range(2))
    policy.edit_article("rain", EDITED)
    other.remove_article("rain")
    other.add_article("rain", EDITED)
    for each in (policy, other):
        each.learn(X, "rain", 1.0)
        assert isinstance(each.model.state, Hybrid)
    assert (policy.scores(X, POOL) == other.scores(X, POOL)).all()


def test_a_log_in_which_an_article_has_other_features_edits_it() -> None:
    """Three articles, of which one is described anew a month later."""
    later = {**FEATURES, "rain": EDITED.tolist()}
    x = np.random.default_rng(0).random((30, D))
    logs = [
        EventLog.from_arrays(x, [POOL], [0] * 30, POOL * 10, [1, 0, 0] * 10, articles=articles)
        for articles in (FEATURES, later)
    ]
    whole, single, summed = (ts.policy("linucb-hybrid") for _ in range(3))
    for log in logs:
        learn_log(whole, log)
        learn_sums(summed, log, None, engine("serial"))
        for article, features in log.articles.items():
            single.edit_article(article, features)
        for event in log:
            single.learn(event.user, event.shown, event.payoff)
    assert (whole.scores(x[0], POOL) == single.scores(x[0], POOL)).all()
    assert_allclose(summed.scores(x[0], POOL), single.scores(x[0], POOL), rtol=1e-9)


def replayed(policy: ts.Policy) -> Callable[[EventLog], Any]:
    return lambda log: ts.replay(policy, log)


def test_replay_of_an_edited_policy_equals_the_plain_loop() -> None:
    class Own:
        """Replayed event by event, since it is not a `Policy`."""

        def __init__(self, policy: ts.Policy) -> None:
            self.policy = policy
            self.choose, self.learn = policy.choose, policy.learn
            self.greedy, self.add_article = policy.greedy, policy.add_article

        def __deepcopy__(self, memo: object) -> Own:
            return Own(self.policy.copy())

    pair = Pair().learn(40).edit("rain", EDITED)
    random = np.random.default_rng(2)
    users = np.column_stack([random.random((600, D - 1)), np.ones(600)])
    log = EventLog.from_arrays(
        *(users, [POOL], [0] * 600, random.choice(POOL, 600), random.random(600) < 0.3),
        articles={article: pair.plain.features[article] for article in POOL},
    )
    fast, plain = ts.replay(pair.policy, log), ts.replay(Own(pair.policy), log)
    np.testing.assert_array_equal(fast.learning.sums, plain.learning.sums)
    np.testing.assert_array_equal(fast.deployment.sums, plain.deployment.sums)
    theirs = plain.policy.policy.model.learned()
    for field, array in fast.policy.model.learned().items():
        np.testing.assert_array_equal(array, theirs[field])


def test_a_logistic_model_keeps_the_z_of_each_trial_too() -> None:
    """Against one Newton step after the other, over all coefficients at once."""
    from tests.twins import LogisticRegressions

    features = {article: np.array(row) for article, row in FEATURES.items()}
    model = ts.LogisticHybrid(RIDGE, SHARED)
    policy = ts.Policy(model, ts.UpperConfidence(0.5))
    for article, row in features.items():
        policy.add_article(article, row)
    plain, pair = LogisticRegressions(D, features, RIDGE, SHARED, 0.05), Pair()
    for number in range(80):
        x, article, payoff = pair.trial()
        policy.learn(x, article, payoff)
        plain.learn(x, article, payoff)
        if number == 40:
            policy.edit_article("rain", EDITED)
            features["rain"] = EDITED
        if number % 10 == 0:
            found = [plain.bound(x, each)[0] + 0.5 * plain.bound(x, each)[1] for each in POOL]
            assert_allclose(policy.scores(x, POOL), found, rtol=1e-8)


def test_an_edit_that_arithmetic_cannot_hold_is_refused_by_name_and_changes_nothing() -> None:
    policy = Pair().policy
    random = np.random.default_rng(0)
    for _ in range(5):
        policy.learn(random.normal(0, 1e8, D), "rain", 1.0)
    before = policy.scores(X, POOL)
    with pytest.raises(ScaleError, match=r"other features of article 'rain'.*a larger ridge"):
        policy.edit_article("rain", EDITED)
    np.testing.assert_array_equal(policy.scores(X, POOL), before)
    edited = Pair().learn(10).edit("rain", EDITED).policy
    with pytest.raises(ScaleError, match="cannot hold the next trial"):
        edited.learn(np.full(D, 1e8), "rain", 1.0)
    assert np.isfinite(edited.scores(X, POOL)).all()
