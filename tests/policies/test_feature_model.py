"""A policy belongs to the feature model whose contexts it learned, and takes no other's."""

from dataclasses import replace
from pathlib import Path

import pytest

import topstory as ts
from topstory.events import EventLog
from topstory.feature_identity import FeatureModelMismatch
from topstory.policies.log_learner import learn_log

LOG = EventLog.from_arrays(
    [[0.5, 1.0]] * 8, [["a", "b"]], [0] * 8, ["a", "b"] * 4, [0, 1, 0, 1, 0, 1, 0, 0]
)
MADE, OTHER = (replace(LOG, feature_model=name) for name in ("9f2c61d0", "04e1b7aa"))
BOTH_NAMES = "the policy was made with feature model 9f2c61d0, but the log with 04e1b7aa"


def test_a_trained_policy_carries_its_feature_model_through_a_file(tmp_path: Path) -> None:
    policy = ts.train(ts.policy("linucb-disjoint"), MADE, held_out=0.0).policy
    policy.save(tmp_path / "policy")
    assert ts.Policy.load(tmp_path / "policy").feature_model == "9f2c61d0"
    assert policy.copy().feature_model == "9f2c61d0"


def test_a_replayed_policy_carries_the_feature_model_and_the_one_given_does_not_change() -> None:
    policy = ts.policy("linucb-disjoint")
    assert ts.replay(policy, MADE).policy.feature_model == "9f2c61d0"
    assert policy.feature_model is None


@pytest.mark.parametrize("task", [ts.replay, ts.train, ts.evaluate, ts.dr_ns])
def test_a_policy_is_not_given_another_model_s_contexts(task: object) -> None:
    assert callable(task)
    policy = ts.policy("linucb-disjoint")
    learn_log(policy, MADE)
    with pytest.raises(FeatureModelMismatch, match=BOTH_NAMES):
        task(policy, OTHER)


@pytest.mark.parametrize("task", [ts.replay, ts.train, ts.evaluate, ts.dr_ns])
def test_a_raw_log_has_no_contexts_for_a_policy_that_knows_its_feature_model(task: object) -> None:
    assert callable(task)
    policy = ts.policy("linucb-disjoint")
    learn_log(policy, MADE)
    raw = EventLog.from_arrays(
        *(None, [["a", "b"]], [0] * 8, ["a", "b"] * 4, [0, 1, 0, 1, 0, 1, 0, 0]),
        visitor=range(8),
        profiles={"age": list(range(8))},
    )
    with pytest.raises(FeatureModelMismatch, match="feature model 9f2c61d0, but the log has raw"):
        task(policy, raw)


def test_a_policy_that_asks_a_function_is_checked_too() -> None:
    policy = ts.policy("ucb-warm", offset=lambda user, article: 0.0)
    policy.feature_model = "9f2c61d0"
    with pytest.raises(FeatureModelMismatch, match=BOTH_NAMES):
        ts.replay(policy, OTHER)


def test_what_is_unknown_is_not_checked_and_stays_unknown() -> None:
    policy = ts.policy("linucb-disjoint")
    learn_log(policy, LOG)
    learn_log(policy, MADE)
    assert policy.feature_model is None  # some of its contexts came from elsewhere
    known = ts.policy("linucb-disjoint")
    learn_log(known, MADE)
    learn_log(known, LOG)
    assert known.feature_model == "9f2c61d0"
