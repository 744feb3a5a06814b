"""`ts.choose`: which policy to run, from whatever log there is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from tests.evaluation.test_training import personalised_log

import topstory as ts
from topstory.evaluation.blocks import Blocks
from topstory.evaluation.intervals import quantile
from topstory.evaluation.off_policy.question import question_of
from topstory.evaluation.off_policy.together import level_for_all
from topstory.evaluation.uncertainty.clusters import ClusteredSums

Floats = npt.NDArray[np.float64]


def test_the_best_policy_wins_and_is_trained_on_the_whole_log() -> None:
    """Users of two kinds like one article each: only a personalised policy knows."""
    log = personalised_log(6_000)
    found = ts.choose(log, policies=["random", "egreedy", "linucb-disjoint"])
    assert found.winner.startswith("linucb-disjoint")
    # The log itself shows what is liked to 85 %: (0.5 vs 0.4475 a click), 12 % more.
    assert found.together[found.winner].value == pytest.approx(0.117, abs=0.06)
    assert found.sure == (found.together[found.winner].interval.low > 0)
    assert found.evaluation.events == 2_400
    assert found.together["random"].interval.high < 0
    assert "random" not in found.rivals
    assert found.policy.greedy([1.0, 0.0, 1.0], ["a", "b"]).article == "a"
    assert found.policy.greedy([0.0, 1.0, 1.0], ["a", "b"]).article == "b"
    ridge = 100.0 if "100" in found.winner else 1.0
    whole = ts.train(ts.policy("linucb-disjoint", ridge=ridge), log, held_out=0).policy
    np.testing.assert_array_equal(found.policy.model.state.b, whole.model.state.b)
    assert found.verdict.startswith("Run linucb-disjoint" if found.sure else "linucb-disjoint")
    assert "policies that were compared" in found.verdict


def test_a_policy_no_better_than_the_log_is_not_called_better() -> None:
    random = np.random.default_rng(3)
    log = ts.EventLog.from_arrays(
        np.ones((3_000, 1)),
        [["a", "b"]],
        np.zeros(3_000, int),
        random.choice(["a", "b"], 3_000),
        random.random(3_000) < 0.1,
    )
    found = ts.choose(log)
    assert not found.sure
    assert "No policy looks better than what was logged" in found.verdict
    assert "It could show lifts from" in found.verdict


def _shown(shown: list[str]) -> ts.EventLog:
    n = len(shown)
    return ts.EventLog.from_arrays(
        np.ones((n, 1)), [["a", "b"], ["b", "c"]], np.arange(n) % 2, shown, np.zeros(n)
    )


@pytest.mark.parametrize(
    ("log", "why"),
    [
        (_shown(["a", "b"] * 1_000), "left nothing to chance"),
        (_shown(["a", "b", "b", "b"] * 500), "does not say with what probability"),
        (_shown([]), "no events"),
    ],
    ids=["settled", "unrecorded", "empty"],
)
def test_a_log_that_cannot_say_is_refused_with_the_reason(log: ts.EventLog, why: str) -> None:
    with pytest.raises(ts.NotAnswerable, match=why):
        ts.choose(log)


def test_pools_of_one_article_leave_nothing_to_choose() -> None:
    log = ts.EventLog.from_arrays(np.ones((9, 1)), [["a"]], [0] * 9, ["a"] * 9, [0] * 9)
    with pytest.raises(ts.NotAnswerable, match="nothing to choose"):
        question_of(log)


def test_payoffs_that_are_no_clicks_are_judged_with_a_model() -> None:
    log = ts.EventLog.from_arrays(
        np.ones((400, 1)), [["a", "b"]], [0] * 400, ["a", "b"] * 200, np.arange(400.0)
    )
    assert question_of(log).method == "dr"


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"policies": ["nobody"]}, "no policy is called 'nobody'"),
        ({"policies": []}, "at least one policy"),
        ({"policies": ["ucb-warm"]}, "cannot be trained on a part"),
        ({"policies": ["omniscient"]}, "cannot be trained on a part"),
        ({"train_share": 1.0}, "train_share must be between 0 and 1"),
    ],
)
def test_bad_arguments_are_refused(given: dict[str, object], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        ts.choose(personalised_log(1_000), **given)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"choosing takes 1,000 or more"):
        ts.choose(personalised_log(900))


def _sums(random: np.random.Generator, policies: int, alike: float) -> ClusteredSums:
    """Blocks with a column for each policy, whose mean is 0, and the count."""
    own, shared = random.normal(size=(200, policies)), random.normal(size=(200, 1))
    blocks = np.hstack([own * (1 - alike) ** 0.5 + shared * alike**0.5, np.ones((200, 1))])
    none = np.zeros((policies + 1, policies + 1))
    return ClusteredSums(blocks, blocks[:0], none, none, False, Blocks(200, 1, None))


@pytest.mark.parametrize("alike", [0.0, 0.9])
def test_intervals_hold_for_all_policies_at_once(alike: float) -> None:
    """Eight policies, 400 runs: coverage of 0.95 has a standard error of 0.011."""
    hits, levels = 0, []
    for run in range(400):
        sums = _sums(np.random.default_rng(run), 8, alike)
        means = sums.total[:8] / 200
        gradients = []
        for place in range(8):
            gradient = np.zeros(9)
            gradient[place], gradient[8] = 1 / 200, -means[place] / 200
            gradients.append(gradient)
        level = level_for_all(sums, gradients)
        size = np.eye(9)[8]
        errors = [sums.error(gradient, size).such_days for gradient in gradients]
        reach = [quantile(each.freedom, level) * each.value**0.5 for each in errors]
        hits += bool((np.abs(means) <= reach).all())
        levels.append(level)
    assert 0.92 <= hits / 400 <= 0.98
    assert 0.95 <= min(levels) <= max(levels) <= 1 - 0.05 / 8
    assert (np.mean(levels) > 0.993) == (alike == 0.0)  # alike policies cost less


def test_a_log_in_which_nothing_paid_is_refused_with_the_reason() -> None:
    log = ts.EventLog.from_arrays(
        np.ones((1_200, 1)), [["a", "b"]], np.zeros(1_200, int), ["a", "b"] * 600, np.zeros(1_200)
    )
    with pytest.raises(ValueError, match="every payoff of the log is 0"):
        ts.choose(log)
