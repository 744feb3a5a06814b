"""The best method is found on events that it was not fitted on, and it is said by how much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.features.worlds import mixed_log

import topstory as ts
from topstory.evaluation.feature_choice import choose_features
from topstory.evaluation.off_policy.evaluate import evaluate
from topstory.events import EventLog


def test_values_are_those_of_an_evaluation_on_the_rest_of_the_log() -> None:
    log = mixed_log(6_000)
    found = choose_features(log, ["direct"], policy="linucb-disjoint", fit_share=0.6)
    first, rest = log[:3_600], log[3_600:]
    builder = ts.FeatureBuilder(method="direct").fit(first)
    trained = ts.train(ts.policy("linucb-disjoint"), builder.apply(first), held_out=0).policy
    wanted = evaluate({"direct": trained}, builder.apply(rest), estimator="snips")["direct"]
    assert found.values["direct"].value == wanted.value
    assert (found.fitted_events, found.judged_events) == (3_600, 2_400)
    whole = ts.FeatureBuilder(method="direct").fit(log)
    assert found.builder.identity == whole.identity
    assert found.lead is None
    assert (found.policy, found.judged_by) == ("linucb-disjoint", "replay")


def test_each_method_counts_by_the_policy_that_makes_most_of_it() -> None:
    log = mixed_log(6_000)
    both = choose_features(log, ["direct", "pca"])
    alone = {
        name: choose_features(log, ["direct", "pca"], policy=name).values
        for name in ("linucb-disjoint", "linucb-hybrid")
    }
    for method, value in both.values.items():
        best = max(each[method].value.value for each in alone.values())
        assert value.value.value == best == alone[both.policies[method]][method].value.value


def test_a_log_with_propensities_is_judged_off_policy_and_one_without_warns_if_it_must() -> None:
    log = mixed_log(4_000)
    chance = np.where(np.arange(len(log)) % 2, 0.95 / 8, 1.05 / 8).astype(np.float32)
    weighted = replace(log, recorded_propensity=chance, recorded_count=len(log))
    assert choose_features(weighted, ["direct"], policy="linucb-disjoint").judged_by == "off-policy"
    skewed = log[np.flatnonzero((np.asarray(log.position) == 0) | (np.arange(len(log)) % 3 == 0))]
    with pytest.warns(ts.NotUniformWarning, match="articles were not shown uniformly at random"):
        choose_features(skewed, ["direct"], policy="linucb-disjoint")


def test_a_method_that_finds_what_matters_beats_one_that_does_not() -> None:
    """Who subscribes decides all; one component cannot tell."""
    template = ts.FeatureBuilder(2, components=1, ridge=1.0, engine="serial")
    found = choose_features(mixed_log(12_000), ["pca", "direct"], template=template)
    assert list(found.values) == ["direct", "pca"]
    assert found.values["direct"].lift.best_interval.low > 0.1
    assert found.lead is not None
    assert found.lead.best_interval.low > 0


def test_a_method_that_does_not_suit_the_log_is_named_with_the_reason() -> None:
    log = mixed_log(payoff=np.arange(4_000) % 7 - 3.0)
    found = choose_features(log)
    assert set(found.refused) == {"clusters", "bilinear"}
    assert "payoffs from 0 to 1" in found.refused["clusters"]
    assert set(found.values) == {"direct", "pca"}


def test_bad_requests_are_refused() -> None:
    log = mixed_log()
    with pytest.raises(ValueError, match="no method is called 'magic': direct, clusters, pca"):
        choose_features(log, ["magic"])
    with pytest.raises(ValueError, match="fit_share must lie between 0 and 1, got 1"):
        choose_features(log, fit_share=1)
    with pytest.raises(ValueError, match="a log of 1 events cannot be divided"):
        choose_features(log[:1])
    bare = EventLog.from_arrays([[1.0]] * 8, [["a", "b"]], [0] * 8, ["a", "b"] * 4, [0, 1] * 4)
    with pytest.raises(ValueError, match="no method could be fitted: direct: the log has no raw"):
        choose_features(replace(bare), ["direct"])
