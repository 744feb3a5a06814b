"""An explorer's probabilities: exact, and what its draws come to."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc, betaln, expit, rel_entr
from scipy.stats import beta, chi2, norm
from tests.twins import EXPLORER_TWINS

import topstory as ts
from topstory.explorers.explorer import WORK
from topstory.kernels.beta import beta_quantile
from topstory.kernels.choice import choose
from topstory.kernels.compilation import Floats, compiled
from topstory.kernels.explorers.counts import kl_bound
from topstory.kernels.explorers.explorer import draw
from topstory.kernels.models.model import comparable
from topstory.kernels.normal import quantile
from topstory.kernels.randomness import priority, stream
from topstory.policies.registry import EXPLORERS

RANDOM = np.random.default_rng(4)
ESTIMATES = np.array([0.031, 0.045, 0.045, 0.02, 0.04])
WIDTHS = np.array([0.02, 0.004, 0.004, 0.03, 0.01])
EVERY = [
    ts.Greedy(),
    ts.Uniform(),
    ts.EpsilonGreedy(0.2),
    ts.EpsilonGreedy("decay", 0.5),
    ts.UpperConfidence(0.7),
    ts.Thompson(0.8),
    ts.Thompson(0.8, optimistic=True),
    ts.Softmax(0.01),
    ts.InverseGap(30.0),
    ts.InverseGap(30.0, floor=0.1),
    ts.EpochGreedy(2.0),
    ts.BetaThompson(10.0),
    ts.BetaThompson(0.3, successes=0.5, failures=3),
    ts.LogUpperConfidence(0.4),
    ts.KLUpperConfidence(0.7),
]


def test_every_explorer_with_a_rule_of_its_own_is_tested_here_and_has_a_plain_twin() -> None:
    own = {name for name, entry in EXPLORERS.items() if entry.load().rule is not ts.Explorer.rule}
    assert own <= {each.name for each in EVERY} == set(EXPLORER_TWINS)


@compiled
def count_choices(
    rule: Any,
    estimates: Floats,
    widths: Floats,
    keys: Any,
    draws: int,
    trials: int,
    scores: Floats,
    work: Floats,
    counts: Floats,
) -> None:
    """As `choose`, without the probabilities, which take longer than the draw."""
    for decision in range(draws):
        root = stream(np.uint64(9), decision)
        draw(rule, estimates, widths, keys, root, trials, scores, work)
        best = 0
        for j in range(1, 5):
            if comparable(scores[j]) > comparable(scores[best]) or (
                comparable(scores[j]) == comparable(scores[best])
                and priority(root, keys[j]) > priority(root, keys[best])
            ):
                best = j
        counts[best] += 1.0


@pytest.mark.parametrize("explorer", EVERY, ids=repr)
def test_draws_have_the_probabilities(explorer: ts.Explorer) -> None:
    """Over 10⁶ draws; fewer of beta distributions, which take twenty times as long."""
    check_draws(explorer, 200_000 if isinstance(explorer, ts.BetaThompson) else 1_000_000)


@pytest.mark.long
@pytest.mark.parametrize("explorer", [e for e in EVERY if isinstance(e, ts.BetaThompson)], ids=repr)
def test_a_million_draws_of_beta_distributions_have_the_probabilities(
    explorer: ts.Explorer,
) -> None:
    check_draws(explorer, 1_000_000)


def check_draws(explorer: ts.Explorer, draws: int) -> None:
    """Chi-square, at a false alarm in 10⁵ tests for each explorer."""
    trials = 40
    expected = explorer.probabilities(ESTIMATES, WIDTHS, trials)
    assert expected.sum() == pytest.approx(1.0, abs=1e-9)
    keys = np.random.default_rng(0).integers(2**63, size=5).astype(np.uint64)
    scores, work, counts = np.empty(5), np.empty(5 * WORK), np.zeros(5)
    count_choices(explorer.rule, ESTIMATES, WIDTHS, keys, draws, trials, scores, work, counts)
    for decision in range(3):
        place, propensity = choose(
            explorer.rule, ESTIMATES, WIDTHS, keys, np.uint64(9), decision, trials, scores, work
        )
        assert propensity == expected[place]
    possible = expected > 0
    assert counts[~possible].sum() == 0
    wanted = draws * expected[possible]
    statistic = float(((counts[possible] - wanted) ** 2 / wanted).sum())
    assert statistic < chi2.isf(1e-5, max(1, possible.sum() - 1))


LARGE = [each for each in EVERY if not isinstance(each, ts.BetaThompson | ts.KLUpperConfidence)]


@pytest.mark.parametrize("explorer", LARGE, ids=repr)
def test_what_is_chosen_has_a_probability_however_large_scores_are(explorer: ts.Explorer) -> None:
    """The first two are equal but for rounding: chance decides, by the probabilities."""
    estimates = 1e19 * np.array([1.0, 1.0 + 2**-52, 0.5, 0.2, -1.0])
    widths, keys = np.full(5, 0.5), np.arange(5, dtype=np.uint64)
    scores, work, counts = np.empty(5), np.empty(5 * WORK), np.zeros(5)
    expected = explorer.probabilities(estimates, widths, 40)
    assert expected.sum() == pytest.approx(1.0, abs=1e-9)
    for decision in range(400):
        place, propensity = choose(
            explorer.rule, estimates, widths, keys, np.uint64(9), decision, 40, scores, work
        )
        assert propensity == expected[place] > 0
        counts[place] += 1
    spread = np.sqrt(400 * expected * (1 - expected))
    assert (np.abs(counts - 400 * expected) <= 5 * spread).all()  # false alarm: 1 in 10⁶


@pytest.mark.parametrize("ratio", [1.0, 10.0, 30.0, 1000.0])
@pytest.mark.parametrize("optimistic", [False, True])
def test_thompson_s_probabilities_are_the_integral(ratio: float, optimistic: bool) -> None:
    random = np.random.default_rng(int(ratio))
    for _ in range(3):
        count = 20
        means = random.normal(0.03, 0.01, count)
        spreads = 0.01 * ratio ** -random.random(count)
        found = ts.Thompson(1.0, optimistic).probabilities(means, spreads)
        assert found.sum() == pytest.approx(1.0, abs=1e-12)
        for a in range(0, count, 7):
            plain = chance_by_scipy(a, means, spreads, optimistic)
            assert found[a] == pytest.approx(plain, abs=1e-9)


def chance_by_scipy(a: int, means: Floats, spreads: Floats, optimistic: bool) -> float:
    """One article's integral, in pieces wherever a factor of it changes."""
    others = np.arange(len(means)) != a
    low = means.max() if optimistic else means[a] - 9 * spreads[a]
    high = means[a] + 9 * spreads[a]

    def integrand(s: float) -> float:
        z = (s - means[others]) / spreads[others]
        return float(norm.pdf(s, means[a], spreads[a]) * norm.cdf(z).prod())

    inner = means[:, np.newaxis] + np.multiply.outer(spreads, np.linspace(-8, 8, 9))
    edges = np.unique(np.clip(np.r_[low, inner.ravel(), high], low, max(low, high)))
    pieces = [
        quad(integrand, begin, end, epsabs=1e-13, epsrel=1e-10)[0] for begin, end in pairwise(edges)
    ]
    at_its_mean = optimistic and means[a] == low
    return sum(pieces) + (float(norm.cdf((low - means) / spreads).prod()) if at_its_mean else 0.0)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_beta_thompson_s_probabilities_are_the_integral(alpha: float) -> None:
    """By the trapezoidal rule over log-odds, in steps far narrower than any score's spread."""
    random = np.random.default_rng(int(10 * alpha))
    for _ in range(3):
        shows = 10 ** random.uniform(0, 4, 12)
        clicks = random.binomial(shows.astype(int), 0.04) / shows
        found = ts.BetaThompson(alpha).probabilities(clicks, 1 / np.sqrt(shows))
        a, b = clicks * shows / alpha**2 + 1, (1 - clicks) * shows / alpha**2 + 1
        y = np.arange(-45, 30, 5e-4)[:, np.newaxis]
        below = betainc(a, b, expit(y))  # (steps, articles)
        density = np.exp(a * y - (a + b) * np.logaddexp(0, y) - betaln(a, b))
        others = [below[:, np.arange(12) != i].prod(axis=1) for i in range(12)]
        plain = 5e-4 * (density * np.transpose(others)).sum(axis=0)
        np.testing.assert_allclose(found, plain, atol=1e-9)


def test_beta_thompson_of_certain_and_of_unknown_articles() -> None:
    unknown = ts.BetaThompson(successes=0, failures=0)
    assert unknown.probabilities([0.9, 0.0], [0.1, np.inf]).tolist() == [0.0, 1.0]
    assert ts.BetaThompson().probabilities([0.0, 0.0], [np.inf, np.inf]).tolist() == [0.5, 0.5]
    certain = ts.BetaThompson().probabilities([0.4, 0.0], [0.0, np.inf])
    assert certain.tolist() == pytest.approx([0.4, 0.6], abs=1e-9)  # a uniform draw above 0.4
    assert ts.BetaThompson().probabilities([0.4, 0.3], [0.0, 0.0]).tolist() == [1.0, 0.0]


def test_quantiles_of_the_beta_distribution() -> None:
    uniform = np.r_[RANDOM.random(200), 1e-13, 1e-9, 1 - 1e-9]
    for a, b in ((1, 1), (1, 30), (3.5, 100), (0.3, 0.7), (0.2, 5), (300, 9000), (3e4, 1e6)):
        found = np.array([beta_quantile(u, a, b) for u in uniform])
        np.testing.assert_allclose(beta.cdf(found, a, b), uniform, rtol=1e-9, atol=1e-9)


def test_kl_ucb_s_bound_is_the_largest_that_the_divergence_allows() -> None:
    for mean in (0.0, 1e-9, 0.03, 0.5, 0.9):
        for room in (1e-12, 1e-4, 0.3, 0.9):
            q = kl_bound(mean, room)
            divergence = rel_entr(mean, q) + rel_entr(1 - mean, 1 - q)
            assert q > mean
            assert divergence == pytest.approx(room, rel=1e-6, abs=1e-15)
    assert kl_bound(1.0, 0.3) == kl_bound(1 - 1e-9, 0.3) == 1.0
    assert kl_bound(0.2, 0.0) == 0.2


def test_an_article_that_nothing_is_known_of_comes_first() -> None:
    found = ts.Thompson(0.5).probabilities([0.9, 0.0, 0.0], [0.1, np.inf, np.inf])
    assert found.tolist() == [0.0, 0.5, 0.5]


def test_without_widths_thompson_is_greedy() -> None:
    assert ts.Thompson(0.5).probabilities([0.1, 0.3], [0, 0]).tolist() == [0.0, 1.0]
    assert ts.Thompson(0.0).probabilities([0.1, 0.3], [9, 9]).tolist() == [0.0, 1.0]


def test_an_exact_score_among_uncertain_ones() -> None:
    """Σ 1 and the one-dimensional formula: P(N(0, 1) > 0.5)."""
    found = ts.Thompson(1.0).probabilities([0.5, 0.0], [0.0, 1.0])
    assert found[1] == pytest.approx(norm.sf(0.5), abs=1e-8)


def test_inverse_gap_weighting_is_its_formula() -> None:
    found = ts.InverseGap(c=50.0).probabilities([0.5, 0.3, 0.1], [0, 0, 0], trials=99)
    gamma = 50 * 10
    plain = [1 / (3 + gamma * 0.2), 1 / (3 + gamma * 0.4)]
    np.testing.assert_allclose(found, [1 - sum(plain), *plain], rtol=1e-12)


def test_epsilon_falls_with_the_trials() -> None:
    explorer = ts.EpsilonGreedy("decay")
    shares = [explorer.probabilities([0.0, 1.0], [0, 0], t)[0] * 2 for t in (0, 1, 15, 1999)]
    assert shares == pytest.approx([1.0, 1.0, 0.5, 0.1])


def test_quantiles_of_the_normal_distribution() -> None:
    uniform = np.r_[RANDOM.random(2000), 10.0 ** -np.linspace(1, 300, 300), 1 - 2.0**-53]
    np.testing.assert_allclose(
        [quantile(u) for u in uniform], norm.ppf(uniform), rtol=5e-15, atol=1e-16
    )


@pytest.mark.parametrize(
    "name", ["lints-disjoint", "lints-hybrid", "squarecb-hybrid", "softmax-disjoint"]
)
def test_a_policy_s_choice_has_the_propensity_that_it_tells(name: str) -> None:
    policy = ts.policy(name, seed=2)
    for i, article in enumerate(("a", "b", "c")):
        policy.add_article(article, [0.1 * i, 1.0])
    for t in range(30):
        policy.learn([0.3, 1.0], "abc"[t % 3], float(t % 4 == 0))
    chances = policy.probabilities([0.3, 1.0], ["a", "b", "c"])
    assert chances.sum() == pytest.approx(1.0, abs=1e-9)
    choice = policy.choose([0.3, 1.0], ["a", "b", "c"])
    assert choice.propensity == chances["abc".index(choice.article)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ts.Thompson(-1), "alpha must be >= 0"),
        (lambda: ts.Softmax(0.0), "temperature must be > 0"),
        (lambda: ts.BetaThompson(-1), "alpha must be >= 0"),
        (lambda: ts.BetaThompson(failures=-1), "failures must be from 0 to 1e6"),
        (lambda: ts.LogUpperConfidence(np.inf), "alpha must be >= 0"),
        (lambda: ts.KLUpperConfidence(np.nan), "alpha must be >= 0"),
        (lambda: ts.EpochGreedy(0), "epochs must be above 0"),
        (lambda: ts.InverseGap(c=np.nan), "c must be >= 0"),
        (lambda: ts.InverseGap(floor=1.5), "floor must be between 0 and 1"),
        (lambda: ts.EpsilonGreedy(cast(Any, "falling")), "epsilon must be between 0"),
        (lambda: ts.EpsilonGreedy("decay", 0.0), "decay must be > 0"),
        (lambda: ts.policy("egreedy", epsilon=0.1, decay=1.0), "give epsilon or decay, not both"),
        (lambda: ts.Thompson().probabilities([0.1], [0.1, 0.2]), "two vectors of the same length"),
        (lambda: ts.Thompson().probabilities([np.nan], [0.1]), "must be finite"),
    ],
)
def test_bad_numbers_are_named(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("optimistic", [False, True])
@pytest.mark.parametrize(
    ("estimates", "widths"),
    [
        ([1e9, 1e9, 0.0], [1.0, 1e-12, 1e-12]),
        ([4e-7, -1e-60], [1e-26, 2e-20]),
        ([4e33, 1e6], [1e14, 1e20]),
        ([0.0, 0.0], [5e-324, 5e-324]),
    ],
)
def test_scores_surer_than_their_last_digit_have_chances_that_add_up(
    optimistic: bool, estimates: list[float], widths: list[float]
) -> None:
    found = ts.Thompson(1.0, optimistic).probabilities(estimates, widths)
    assert found.sum() == pytest.approx(1.0)
    rivals = [j for j, each in enumerate(estimates) if each == max(estimates)]
    assert found[rivals].sum() == pytest.approx(1.0)  # no other comes near
    if not optimistic:
        assert found[rivals] == pytest.approx(1 / len(rivals))
