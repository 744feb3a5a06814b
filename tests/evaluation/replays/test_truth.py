"""The true value of a policy in a simulated world."""

from __future__ import annotations

import numpy as np
import pytest

import topstory as ts
from topstory.evaluation.replays.replay import replay_unwarned
from topstory.evaluation.replays.run import Outcome, Run
from topstory.evaluation.replays.truth import ExpectedPayoffs

WORLD = ts.TodayModule(seed=3, users=2_000)
LOG = WORLD.random_log(150_000, days=0.25)
EXPECTED = ExpectedPayoffs.of(WORLD.expected_payoffs(LOG), LOG)


@pytest.mark.parametrize("size", [1.0, 0.1])
def test_counting_the_truth_changes_nothing_else(size: float) -> None:
    policy = ts.policy("linucb-disjoint", alpha=0.4, seed=1)
    plain = replay_unwarned(policy, LOG, size, 1)
    counted = replay_unwarned(policy, LOG, size, 1, expected=EXPECTED)
    for bucket in ("deployment", "learning"):
        assert np.array_equal(getattr(plain, bucket).sums, getattr(counted, bucket).sums)
    assert plain.by_article == counted.by_article
    assert plain.true_relative_ctr is None


def test_it_is_the_mean_probability_of_the_trials() -> None:
    """Omniscient's choice is known from the log: the article of each pool with the highest CTR."""
    found = replay_unwarned(ts.policy("omniscient"), LOG, 1.0, 0, expected=EXPECTED)
    assert found.true_relative_ctr is not None
    index = {key: i for i, key in enumerate(LOG.article_ids)}
    rate = np.array([found.by_article[key].base_ctr for key in LOG.article_ids])
    chosen = np.array(
        [max((index[key] for key in pool), key=lambda i: rate[i]) for pool in LOG.pools]
    )
    kept = LOG.shown_index == chosen[LOG.pool]
    sizes = np.array([len(pool) for pool in LOG.pools])[LOG.pool]
    random = np.average(EXPECTED.payoffs, weights=1 / sizes)
    assert found.true_relative_ctr["deployment"] == pytest.approx(
        EXPECTED.payoffs[kept].mean() / random, rel=1e-12
    )


def test_clicks_are_the_truth_and_luck() -> None:
    """Over 20 seeds of visits, mean clicks are within three standard errors of mean truths."""
    apart = []
    for seed in range(20):
        log = WORLD.random_log(40_000, days=0.25, seed=10 + seed)
        expected = ExpectedPayoffs.of(WORLD.expected_payoffs(log), log)
        found = replay_unwarned(ts.policy("ucb", alpha=0.3), log, 1.0, 0, expected=expected)
        assert found.true_relative_ctr is not None
        apart.append(found.learning.relative_ctr - found.true_relative_ctr["learning"])
    assert abs(np.mean(apart)) < 3 * np.std(apart, ddof=1) / 20**0.5


def test_an_outcome_keeps_it_and_says_none_without_trials() -> None:
    run, policy = Run.of("ucb", {"alpha": 0.3}, 1.0, 0), ts.policy("ucb", alpha=0.3)
    found = replay_unwarned(policy, LOG, 1.0, 0, expected=EXPECTED)
    assert Outcome.of(run, found).truth == found.true_relative_ctr
    other = next(
        t for t in range(99) if not replay_unwarned(policy, LOG[t : t + 1], 1.0, 0).learning.trials
    )
    log = LOG[other : other + 1]
    expected = ExpectedPayoffs.of(EXPECTED.payoffs[other : other + 1], log)
    nothing = Outcome.of(run, replay_unwarned(policy, log, 1.0, 0, expected=expected))
    assert nothing.truth is not None
    assert nothing.truth["learning"] is None


def test_as_many_as_events() -> None:
    with pytest.raises(ValueError, match="a log of 150000 events needs as many expected payoffs"):
        ExpectedPayoffs.of(np.ones(3), LOG)


def test_expected_payoffs_of_another_log_are_refused() -> None:
    with pytest.raises(ValueError, match="of a log of 150000 events, and this one has 5"):
        replay_unwarned(ts.policy("ucb", alpha=0.3), LOG[:5], 1.0, 0, expected=EXPECTED)
