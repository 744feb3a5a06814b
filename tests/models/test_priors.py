"""A prior is what the formulas say, is found where it is known, and loses its weight when wrong."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from tests.models.making_priors import D, M, as_sums, learn_all, linear_log, trials
from tests.twins import Algorithm1, Algorithm2

import topstory as ts
from topstory.models import DisjointLinear, HybridLinear
from topstory.models.linear import LinearModel
from topstory.models.priors.cells import beta_prior, normal_prior
from topstory.models.priors.evidence import collapse, log_evidence, shared_evidence
from topstory.models.priors.fit import likeliest_ridges
from topstory.models.priors.sums import sum_articles
from topstory.models.priors.weighing import FIRST_CHECK

BETA = np.array([[0.3, -0.2, 0.1], [0.0, 0.2, -0.1], [-0.3, 0.1, 0.0], [0.1, 0.0, 0.2]])
FEATURES = {"rain": np.array([1.0, 0, 1]), "sun": np.array([0.0, 1, 1]), "fog": np.array([0.5] * 3)}


@pytest.fixture(scope="module")
def prior() -> ts.Prior:
    return ts.fit_prior(linear_log(1, 60, 50, BETA, 0.03))


def test_sums_are_those_of_one_event_after_another() -> None:
    log = linear_log(0, 5, 7, BETA, 0.1)
    fast, plain = sum_articles(log), as_sums(log)
    order = [fast.ids.index(article) for article in plain.ids]
    np.testing.assert_allclose(fast.S[order], plain.S, rtol=1e-12)
    np.testing.assert_allclose(fast.b[order], plain.b, rtol=1e-12)
    np.testing.assert_allclose(fast.features[order], plain.features)
    assert fast.trials == 35
    assert fast.payoff == pytest.approx(plain.payoff)
    assert fast.squares == pytest.approx(plain.squares)


def test_articles_add_up_to_what_algorithm_2_keeps_of_them() -> None:
    log = linear_log(0, 5, 20, BETA, 0.1)
    features = {a: np.asarray(f, np.float64) for a, f in log.articles.items() if f is not None}
    twin = Algorithm2(D, features, ridge=3.0, shared=2.0)
    for event in log:
        twin.bound(np.asarray(event.user), event.shown)
        twin.learn(np.asarray(event.user), event.shown, event.payoff)
    sums = sum_articles(log)
    found = collapse(sums.S, sums.b, sums.features, 3.0)
    np.testing.assert_allclose(found.A + 2.0 * np.eye(D * M), twin.A0, atol=1e-9)
    np.testing.assert_allclose(found.b, twin.b0, atol=1e-9)


def test_the_evidence_is_the_density_of_the_payoffs() -> None:
    """Against the joint normal distribution of all payoffs, by brute force."""
    log, ridge, shared, noise = linear_log(3, 4, 6, BETA, 0.1), 5.0, 2.0, 0.04
    ids = list(log.article_ids)
    users = np.array([event.user for event in log])
    shown = np.array([ids.index(event.shown) for event in log])
    F = np.array([log.articles[a] for a in ids])
    z = np.einsum("nd,nm->ndm", users, F[shown]).reshape(len(log), -1)
    same = shown[:, None] == shown[None, :]
    covariance = noise * (np.eye(len(log)) + same * (users @ users.T) / ridge + z @ z.T / shared)
    density = multivariate_normal(np.zeros(len(log)), covariance).logpdf(log.payoff)
    sums = sum_articles(log)
    found = collapse(sums.S, sums.b, sums.features, ridge)
    gain, fitted = shared_evidence(found.A, found.b, shared * np.eye(D * M), np.zeros(D * M))
    rest = sums.squares - found.explained - fitted
    value = log_evidence(found.gain + gain, rest, sums.trials, noise)
    assert value - len(log) / 2 * np.log(2 * np.pi * noise) == pytest.approx(density, abs=1e-3)


@pytest.mark.parametrize("truth", [100.0, 300.0])
def test_the_likeliest_ridge_is_near_the_true_one(truth: float) -> None:
    """Within 20 %: σ²/τ² of 300 articles × 4 numbers has a standard error of about 6 %."""
    log = linear_log(5, 300, int(3 * truth), BETA, 0.2 / np.sqrt(truth))
    ridge, _ = likeliest_ridges(sum_articles(log))
    assert truth / 1.2 < ridge < truth * 1.2


def test_the_pooled_prior_is_near_the_true_one() -> None:
    same = np.outer([0.1, -0.1, 0.0, 0.3], [0.0, 0.0, 1.0])  # no article differs by its features
    log = linear_log(6, 400, 100, same, 0.05)
    found = ts.fit_prior(log)
    # Standard errors: 0.05/√400, and 0.3 where little data leaves the rest to the pool.
    np.testing.assert_allclose(found.mean, [0.1, -0.1, 0.0, 0.3], atol=0.02)
    np.testing.assert_allclose(
        np.diag(np.linalg.inv(found.precision)) * found.noise, 0.0025, rtol=0.4
    )
    assert found.noise == pytest.approx(0.04, rel=0.05)


def test_click_rates_have_the_beta_distribution_they_were_drawn_from() -> None:
    random = np.random.default_rng(0)
    shows = random.integers(50, 2000, 2000).astype(np.float64)
    clicks = random.binomial(shows.astype(int), random.beta(4, 96, 2000)).astype(np.float64)
    mean, weight = beta_prior(shows, clicks)
    assert mean == pytest.approx(0.04, rel=0.03)
    assert weight == pytest.approx(100, rel=0.15)


def test_mean_payoffs_have_the_normal_distribution_they_were_drawn_from() -> None:
    random = np.random.default_rng(1)
    shows = random.integers(50, 500, 1000).astype(np.float64)
    means = random.normal(5, 0.5, 1000) + random.normal(0, 2 / np.sqrt(shows))
    mean, weight = normal_prior(shows, shows * means, noise=4.0)
    assert mean == pytest.approx(5, abs=0.06)
    assert weight == pytest.approx(4 / 0.25, rel=0.15)


# -- in the models --


def test_hybrid_is_algorithm_2_from_another_start(prior: ts.Prior) -> None:
    policy = ts.Policy(HybridLinear(prior=prior), ts.UpperConfidence(0.3))
    twin = Algorithm2(D, FEATURES, prior.ridge, 1.0)
    twin.A0, twin.b0 = prior.shared(prior.weight)
    for article, features in FEATURES.items():
        policy.add_article(article, features)
    for x, article, payoff in trials(np.random.default_rng(2), FIRST_CHECK, list(FEATURES)):
        assert_as_twin(policy, twin, x)
        policy.learn(x, article, payoff)
        twin.learn(x, article, payoff)
    assert_as_twin(policy, twin, np.array([0.2, 0.3, 0.4, 1.0]))


def test_disjoint_is_algorithm_1_from_another_start(prior: ts.Prior) -> None:
    policy = ts.Policy(DisjointLinear(prior=prior), ts.UpperConfidence(0.3))
    twin = Algorithm1(D, 1.0)
    for article, features in FEATURES.items():
        policy.add_article(article, features)
        twin.A[article], twin.b[article] = prior.own(1.0)
    for x, article, payoff in trials(np.random.default_rng(2), FIRST_CHECK, list(FEATURES)):
        assert_as_twin(policy, twin, x)
        policy.learn(x, article, payoff)
        twin.learn(x, article, payoff)
    assert_as_twin(policy, twin, np.array([0.2, 0.3, 0.4, 1.0]))


def assert_as_twin(policy: ts.Policy, twin: Any, x: Any) -> None:
    pool = list(FEATURES)
    expected = [twin.bound(x, article) for article in pool]
    np.testing.assert_allclose(policy.estimates(x, pool), [e for e, _ in expected], atol=1e-9)
    np.testing.assert_allclose(policy.widths(x, pool), [w for _, w in expected], atol=1e-9)


def test_an_average_starts_as_if_it_had_been_shown_before() -> None:
    counts = np.array([[0.04, 200.0], [0.05, 100.0], [0.02, 50.0]])
    given = replace(ts.fit_prior(linear_log(1, 10, 20, BETA, 0.1)), averages=counts)
    plain = ts.Policy(ts.ContextFree(given), ts.UpperConfidence(0.3))
    assert plain.estimates([1.0, 0.0, 1.0], ["new"]) == pytest.approx([0.04])
    plain.learn([1.0, 0.0, 1.0], "new", 1.0)
    assert plain.estimates([1.0, 0.0, 1.0], ["new"]) == pytest.approx([9 / 201])
    assert plain.widths([1.0, 0.0, 1.0], ["new"]) == pytest.approx([1 / np.sqrt(201)])
    segmented = ts.Policy(ts.Segmented(prior=given), ts.UpperConfidence(0.3))
    assert segmented.estimates([1.0, 0.0, 1.0], ["new"]) == pytest.approx([0.05])
    assert segmented.estimates([0.0, 1.0, 1.0], ["new"]) == pytest.approx([0.02])


@pytest.mark.parametrize("kind", [HybridLinear, DisjointLinear])
def test_a_new_article_starts_at_the_mean_of_those_before(kind: type[Any]) -> None:
    """Its estimates err no more than an honest width says: 95 of 100 within two of them."""
    log = linear_log(1, 100, 100, BETA, 0.05)
    model: LinearModel = kind(prior=ts.fit_prior(log))
    policy = ts.Policy(model, ts.Greedy())
    random = np.random.default_rng(8)
    misses = []
    for number in range(100):
        f = np.append(random.random(M - 1), 1.0)
        x = np.append(random.random(D - 1), 1.0)
        policy.add_article(str(number), f)
        truth = x @ (BETA @ f + random.normal(0, 0.05, D))
        width = 0.2 * policy.widths(x, [str(number)])[0]
        misses.append(abs(policy.estimates(x, [str(number)])[0] - truth) > 2 * width)
    assert np.mean(misses) < 0.12  # 0.05 expected; 0.12 is three standard deviations off


@pytest.mark.parametrize("kind", [HybridLinear, DisjointLinear])
def test_a_prior_that_turned_out_wrong_loses_its_weight(kind: type[Any]) -> None:
    right = ts.fit_prior(linear_log(1, 60, 200, BETA, 0.02))
    wrong = ts.fit_prior(linear_log(1, 60, 200, -BETA, 0.02))
    log = linear_log(2, 60, 60, BETA, 0.02)
    kept, lost = (kind(prior=p) for p in (right, wrong))
    for model in (kept, lost):
        learn_all(ts.Policy(model, ts.Greedy()), log, 2_100)
    assert kept.weight >= 0.3
    assert lost.weight <= 0.03


@pytest.mark.parametrize("parameters", [{"prior": True}, {"ridge": "auto"}])
@pytest.mark.parametrize("kind", [HybridLinear, DisjointLinear])
def test_replay_learns_as_one_event_after_another(
    kind: type[Any], parameters: dict[str, Any], prior: ts.Prior
) -> None:
    given = {"prior": prior} if "prior" in parameters else parameters
    log = linear_log(4, 30, 100, BETA, 0.02)
    one = ts.Policy(kind(**given), ts.UpperConfidence(0.2), seed=1)
    for article, features in log.articles.items():
        one.add_article(article, features)
    for event in log:
        if one.choose(event.user, event.pool).article == event.shown:
            one.learn(event.user, event.shown, event.payoff)
    all_at_once = ts.replay(ts.Policy(kind(**given), ts.UpperConfidence(0.2), seed=1), log).policy
    assert all_at_once.trials == one.trials > FIRST_CHECK
    for field, array in one.model.learned().items():
        np.testing.assert_allclose(all_at_once.model.learned()[field], array, atol=1e-9)


@pytest.mark.parametrize("kind", [HybridLinear, DisjointLinear])
def test_auto_finds_the_ridge_of_the_articles(kind: type[Any]) -> None:
    flat = np.outer([0.1, -0.1, 0.0, 0.3], [0.0, 0.0, 1.0])
    policy = ts.Policy(kind(ridge="auto"), ts.Greedy())
    learn_all(policy, linear_log(9, 60, 100, flat, 0.02), 6_000)
    x, width = [0.5, 0.5, 0.5, 1.0], 0.2 * policy.widths([0.5, 0.5, 0.5, 1.0], ["9-0"])[0]
    plain = ts.Policy(kind(), ts.Greedy())
    learn_all(plain, linear_log(9, 60, 100, flat, 0.02), 6_000)
    assert width < 0.9 * 0.2 * plain.widths(x, ["9-0"])[0]  # articles are alike: it is surer
    policy.add_article("new", [0.5, 0.5, 1.0])
    assert policy.estimates(x, ["new"])[0] == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("kind", [HybridLinear, DisjointLinear])
@pytest.mark.parametrize("parameters", [{"prior": True}, {"ridge": "auto"}])
def test_a_stored_policy_goes_on_with_its_prior(
    kind: type[Any], parameters: dict[str, Any], prior: ts.Prior, tmp_path: Path
) -> None:
    given = {"prior": prior} if "prior" in parameters else parameters
    log = linear_log(4, 30, 60, BETA, 0.02)
    policy = ts.Policy(kind(**given), ts.UpperConfidence(0.2), seed=1)
    learn_all(policy, log, 1_500)
    policy.save(tmp_path / "policy")
    loaded = ts.Policy.load(tmp_path / "policy")
    assert repr(loaded) == repr(policy)
    for each in (policy, loaded):
        learn_all(each, log, 1_500)
    for field, array in policy.model.arrays().items():
        np.testing.assert_array_equal(array, loaded.model.arrays()[field])


def test_a_stored_prior_is_the_same_to_the_bit(prior: ts.Prior, tmp_path: Path) -> None:
    prior.save(tmp_path / "prior")
    assert ts.Prior.load(tmp_path / "prior").equals(prior)


def test_a_prior_that_an_earlier_version_wrote_still_loads() -> None:
    path = Path(__file__).parent.parent / "fixtures" / "prior-v1.safetensors"
    found = ts.Prior.load(path)
    assert (found.dimension, found.features, found.articles) == (D, M, 20)
    np.testing.assert_allclose(found.mean, [0.1312, -0.0193, -0.0797, 0.265], atol=1e-3)


@pytest.mark.parametrize(
    ("kind", "estimates", "later"),
    [
        ("disjoint", [0.2943293206837696, 0.2924302469487478], [0.290417812194, 0.282295610510]),
        ("hybrid", [0.2922973056222719, 0.29282858993105154], [0.290182817222, 0.283702983248]),
    ],
)
def test_a_ridge_that_an_earlier_version_found_is_kept_and_found_anew_as_it_was(
    kind: str, estimates: list[float], later: list[float]
) -> None:
    path = Path(__file__).parent.parent / "fixtures" / f"auto-ridge-v1-{kind}.safetensors"
    policy, x = ts.Policy.load(path), [0.5, 0.5, 0.5, 1.0]
    ids = ["9-0", "9-1"]
    np.testing.assert_allclose(policy.estimates(x, ids), estimates, rtol=1e-9)
    flat = np.outer([0.1, -0.1, 0.0, 0.3], [0.0, 0.0, 1.0])
    learn_all(policy, linear_log(9, 25, 60, flat, 0.02), 1_500)
    np.testing.assert_allclose(policy.estimates(x, ids), later, rtol=1e-9)


def test_bad_input_is_refused_with_what_to_do(prior: ts.Prior, tmp_path: Path) -> None:
    empty = linear_log(0, 3, 4, BETA, 0.1)[:0]
    for call, message in (
        (lambda: ts.fit_prior(empty), "the log has none"),
        (lambda: ts.fit_prior(linear_log(0, 1, 4, BETA, 0.1)), "give a log with more"),
        (lambda: HybridLinear(ridge="auto", prior=prior), "either it, or prior"),
        (lambda: DisjointLinear(ridge="big"), "a number, 'auto' or 'paper'"),
        (lambda: ts.policy("linucb-disjoint", prior=prior).choose([1.0], ["a"]), "4 features"),
        (
            lambda: ts.policy("linucb-hybrid", prior=prior).add_article("a", [1.0]),
            "the prior was learned from had 3",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    path = tmp_path / "prior"
    prior.save(path)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        ts.Prior.load(path)
