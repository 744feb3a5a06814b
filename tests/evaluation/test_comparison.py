"""A comparison is the replay of each policy by itself, on the same events."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

import topstory as ts
from topstory.evaluation.replays.warm_start import warm_start


@cache
def log(shares: tuple[float, ...] = (0.5, 0.5), seed: int = 0) -> ts.EventLog:
    random = np.random.default_rng(seed)
    shown = random.choice(["rain", "sun"], 2_000, p=shares)
    clicked = random.random(2_000) < np.where(shown == "sun", 0.3, 0.1)
    users = np.column_stack([random.random(2_000), np.ones(2_000)])
    return ts.EventLog.from_arrays(users, [["rain", "sun"]], [0] * 2_000, shown, clicked)


def test_each_result_is_the_replay_of_that_policy() -> None:
    found = ts.compare(["ucb", "egreedy"], log(), alpha=0.3, epsilon=0.2, size=0.5, seed=4)
    assert list(found.results) == ["ucb", "egreedy"]
    for name, parameter in (("ucb", {"alpha": 0.3}), ("egreedy", {"epsilon": 0.2})):
        policy = ts.policy(name, seed=4, **parameter)
        alone = ts.replay(policy, log(), size=0.5, seed=4)
        np.testing.assert_array_equal(found.results[name].learning.sums, alone.learning.sums)
        np.testing.assert_array_equal(found.results[name].deployment.sums, alone.deployment.sums)
    assert found.seeds == 20  # a short log
    again = ts.replay(ts.policy("ucb", alpha=0.3, seed=6), log(), size=0.5, seed=6)
    np.testing.assert_array_equal(found.runs["ucb"][2].learning.sums, again.learning.sums)
    assert found.lift("ucb") == ts.lift(found.runs["ucb"], found.runs["egreedy"])
    assert found.warm is None


def test_there_is_no_lift_without_the_baseline() -> None:
    found = ts.compare("ucb", log())
    assert found.lift("ucb") is None
    assert found.table().column("lift").to_pylist() == [None, None]


def test_warm_policies_take_the_first_tenth_from_all_policies() -> None:
    found = ts.compare(["ucb", "ucb-warm"], log())
    assert found.warm is not None
    assert (len(found.warm.exploration), len(found.log)) == (200, 1_800)
    offset = ts.fit_warm_offset(log()[:200]).table(log().articles)
    alone = ts.replay(ts.policy("ucb-warm", offset=offset), log()[200:])
    assert found.results["ucb-warm"].learning.payoff == alone.learning.payoff
    assert found.results["ucb"].learning.payoff == (
        ts.replay(ts.policy("ucb"), log()[200:]).learning.payoff
    )


def test_with_warm_from_the_whole_log_is_replayed() -> None:
    explored = log(seed=1)[:300]
    found = ts.compare("egreedy-warm", log(), warm_from=explored)
    assert found.warm is not None
    assert (len(found.warm.exploration), len(found.log)) == (300, 2_000)
    assert not found.warm.first_tenth


def test_a_log_that_is_not_uniform_gives_one_warning() -> None:
    with pytest.warns(ts.NotUniformWarning) as caught:
        ts.compare(["egreedy", "ucb", "random"], log((0.8, 0.2)))
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_progress_names_the_policy_and_only_grows() -> None:
    seen: list[tuple[str, float, float]] = []
    ts.compare(["egreedy", "ucb"], log(), progress=lambda *step: seen.append(step))
    assert [what for what, _, _ in seen][-1] == "ucb"
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert seen[-1][1:] == (80_000, 80_000)  # of 20 seeds each


def test_a_handful_of_events_claims_nothing_and_warns_of_nothing() -> None:
    for events in (1, 2, 3, 5, 10, 20, 40):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            found = ts.compare(["egreedy", "ucb", "random", "omniscient"], log()[:events])
            assert not any(claim.sure for claim in found.claims().values())
            for name in found.runs:
                found.earned(name), found.exploration(name), found.bucket(name, "total").interval
            found.table()


def test_what_cannot_be_compared_is_an_error() -> None:
    with warnings.catch_warnings():
        for policies, given, message in (
            (["ucb", "thompson"], {}, "no policy is called 'thompson'"),
            ([], {}, "needs at least one policy"),
            (["ucb"], {"epsilon": 0.1}, "epsilon does not apply to ucb"),
            (["ucb"], {"alpha": -1}, "alpha must be >= 0"),
            (["ucb"], {"size": 2}, "size must be between 0 and 1"),
        ):
            with pytest.raises(ValueError, match=message):
                ts.compare(policies, log(), **given)
    with pytest.raises(ValueError, match="the log has no events"):
        ts.compare("ucb", log()[:0])
    with pytest.raises(ValueError, match="the first tenth of the log has none"):
        ts.compare("ucb-warm", log()[:9])
    with pytest.raises(ValueError, match="they must have the same features"):
        warm_start(log(), ts.EventLog.from_arrays([[1.0]], [["a"]], [0], ["a"], [1]))


def test_a_baseline_is_replayed_too_and_lifts_are_over_it() -> None:
    found = ts.compare("ucb", log(), baseline="random", alpha=0.3)
    assert list(found.runs) == ["random", "ucb"]
    lifted = found.lift("ucb")
    assert lifted is not None
    assert lifted == ts.lift(found.runs["ucb"], over=found.runs["random"])
    assert set(found.claims()) == {"ucb"}


def test_over_a_uniform_log_itself_the_lift_is_the_relative_ctr() -> None:
    found = ts.compare("ucb", log(), baseline="logged", alpha=0.3)
    lifted = found.lift("ucb")
    assert lifted is not None
    assert lifted.value == pytest.approx(found.bucket("ucb").relative_ctr - 1, rel=1e-6)
    assert found.claims()["ucb"].value == pytest.approx(lifted.value, rel=1e-6)


def test_what_the_log_shows_counts_all_of_it_also_where_events_are_rejected() -> None:
    """A log that showed the better article mostly earned more than random articles would."""
    random = np.random.default_rng(0)
    shown = np.where(random.random(20_000) < 0.8, "good", "bad")
    clicked = random.random(20_000) < np.where(shown == "good", 0.3, 0.1)
    biased = ts.EventLog.from_arrays(
        np.ones((20_000, 1)),
        [["good", "bad"]],
        np.zeros(20_000, int),
        shown,
        clicked,
        propensity=np.where(shown == "good", 0.8, 0.2),
    )
    found = ts.compare("ucb", biased, baseline="logged", alpha=2.0)
    assert found.bucket("logged").ctr == pytest.approx(biased.ctr, rel=1e-6)
    lifted = found.lift("ucb")
    assert lifted is not None
    assert lifted.value == pytest.approx(0.3 / 0.26 - 1, abs=0.06)  # of 4 standard errors
    assert found.best() == "ucb"


def test_of_two_that_deploy_alike_the_best_is_the_one_that_costs_less_while_it_learns() -> None:
    """ε-greedy with ε = 0.6 may be a little above in deployment, by chance."""
    by_deployment = []
    for seed in range(4):
        found = ts.compare(["egreedy", "ucb"], log(seed=seed), epsilon=0.6, alpha=0.3, repeats=3)
        assert found.best() == "ucb"
        by_deployment.append(found.best("deployment"))
    assert "egreedy" in by_deployment


def test_an_unknown_baseline_is_named() -> None:
    with pytest.raises(ValueError, match=r"baseline must be 'logged' or a policy: .*; got 'today'"):
        ts.compare("ucb", log(), baseline="today")
