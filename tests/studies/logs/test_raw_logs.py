"""A study of raw logs: features are learned from the exploration, kept, and reported."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.features.worlds import clear_world, little_log
from tests.studies.small import logs

import topstory as ts
from topstory.engines import SerialEngine
from topstory.studies.logs.features import DEFAULT_SUPPORT
from topstory.studies.logs.simulated import Scale, SimulatedLogs
from topstory.studies.logs.summaries import fingerprint


@cache
def raw_logs() -> dict[str, ts.EventLog]:
    """Three raw logs of one world."""
    world = clear_world()
    return {
        "exploration": world.random_log(20_000, "2009-04-01", 2, seed=1, raw=True),
        "tuning": world.random_log(4_000, "2009-05-01", 1, seed=2, raw=True),
        "evaluation": world.random_log(8_000, "2009-05-03", 1, seed=3, raw=True),
    }


@pytest.mark.parametrize(
    "change",
    [
        {"visitor": np.arange(2_000) % 40},
        {"profiles": {"likes": [["opera"] if i % 2 else ["golf"] for i in range(40)]}},
        {"profiles": {"gender": ["f", None] * 20, "likes": [["tea"]] * 40}},
        {"article_profiles": {"tags": [["stage"]] * 6}},
        {"article_profiles": {"topics": [["stage"]] * 6}},
    ],
)
def test_visitors_and_profiles_tell_logs_apart(change: dict[str, object]) -> None:
    """In a raw log every context is the constant: without them two logs look the same."""
    assert fingerprint(little_log(**change)) != fingerprint(little_log())


def test_a_raw_log_read_again_has_the_same_fingerprint(tmp_path: Path) -> None:
    little_log().write(tmp_path / "raw")
    once, again = (fingerprint(ts.EventLog.read(tmp_path / "raw")) for _ in range(2))
    assert once == again


def raw_study(out: Path, **changes: Any) -> ts.Study:
    settings: dict[str, Any] = {"policies": ["egreedy", "linucb-disjoint"], "sizes": [1.0]}
    settings |= {"epsilons": [0.1], "alphas": [0.3], "engine": "serial"}
    return ts.study(out, **{**raw_logs(), **settings, **changes})


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> ts.Study:
    return raw_study(tmp_path_factory.mktemp("raw") / "out")


def test_features_are_learned_kept_and_replayed_with(study: ts.Study) -> None:
    model = ts.FeatureBuilder.load(study.folder / "features.safetensors")
    assert model.support == DEFAULT_SUPPORT
    assert model.engine == "serial"
    log = model.apply(raw_logs()["evaluation"])
    chosen: dict[str, Any] = dict(study.chosen("linucb-disjoint"))
    result = ts.replay(ts.policy("linucb-disjoint", **chosen), log)
    assert study.outcomes("linucb-disjoint")[0].bucket("deployment").ctr == result.deployment.ctr
    profile = raw_logs()["evaluation"].profiles
    assert profile is not None
    assert model.users(profile.slice(0, 1)).shape == (1, 6)  # the winner can be served


def test_the_report_says_how_features_were_made(study: ts.Study) -> None:
    parameters = dict(study.report().settings)["feature model"]
    assert "clusters 5" in parameters
    assert f"support {DEFAULT_SUPPORT}" in parameters
    assert "ridge 15.0" in parameters
    assert "engine" not in parameters


def test_a_study_of_other_raw_logs_is_not_continued(study: ts.Study) -> None:
    other = clear_world().random_log(8_000, "2009-05-03", 1, seed=4, raw=True)
    log = raw_logs()["evaluation"]
    same_clicks = replace(log, visitors=other.visitors)
    with pytest.raises(ValueError, match="contains a study with another evaluation log"):
        raw_study(study.folder, evaluation=same_clicks)


def test_a_study_with_other_features_is_not_continued(study: ts.Study) -> None:
    with pytest.raises(ValueError, match=r"another feature model: .*support 0\.1.*, not .*0\.02"):
        raw_study(study.folder, support=0.02)


def test_the_support_is_that_of_features_fit_unless_it_is_chosen(
    study: ts.Study, tmp_path: Path
) -> None:
    assert study.report().command.count("--support") == 0
    chosen = {"gender": 0.0, "behaviours": 0.02}
    found = raw_study(tmp_path / "out", support=chosen, policies=["egreedy"])
    assert ts.FeatureBuilder.load(found.folder / "features.safetensors").support == chosen
    assert "--support behaviours=0.02 --support gender=0" in found.report().command
    other_order = dict(reversed(chosen.items()))
    raw_study(tmp_path / "out", support=other_order, policies=["egreedy"])  # goes on with it


def test_a_support_does_not_apply_to_logs_with_contexts(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"support 0\.02 applies only to features learned from raw logs"
    ):
        raw_study(tmp_path / "out", support=0.02, **logs())


def test_logs_with_contexts_are_taken_as_they_are(tmp_path: Path) -> None:
    """Those that `apply --keep-profiles` made: the contexts are the user's choice."""
    log = little_log()
    model = ts.FeatureBuilder(clusters=2).fit(log)
    tuning, evaluation = (model.apply(part, keep_profiles=True) for part in (log[:900], log[900:]))
    for exploration in (None, tuning):
        out = tmp_path / f"{exploration is None}"
        found = raw_study(out, tuning=tuning, evaluation=evaluation, exploration=exploration)
        assert {each.inspection.dimension for each in found.logs.values()} == {3}
        assert "feature model" not in dict(found.report().settings)
        assert not (out / "features.safetensors").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"exploration": None},
            "the tuning and the evaluation log are raw, .* give one with --exploration",
        ),
        (
            {"tuning": logs()["tuning"]},
            "the evaluation and the exploration log are raw, and the tuning log is not",
        ),
        (
            {"tuning": logs()["tuning"], "evaluation": logs()["evaluation"]},
            "the exploration log is raw, and the tuning and the evaluation log are not",
        ),
    ],
)
def test_raw_logs_that_cannot_be_studied_are_an_error(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        raw_study(tmp_path / "out", **changes)


def test_the_identity_of_a_simulated_study_covers_all_that_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, scale = SerialEngine(), Scale(20_000, 4_000, 8_000, users=5_000)

    def known(scale: Scale = scale, seed: int = 0) -> dict[str, str]:
        return SimulatedLogs(scale, seed, tmp_path, engine).identities

    first = known()
    others = [
        known(replace(scale, tuning_days=2)),
        known(replace(scale, evaluation_days=2)),
        known(replace(scale, users=6_000)),
        known(seed=1),
    ]
    monkeypatch.setattr("topstory.studies.logs.simulated.EXPLORATION_DAYS", 29)
    others.append(known())
    monkeypatch.undo()
    monkeypatch.setattr("topstory.studies.logs.simulated.MAY_1", "2009-05-02")
    others.append(known())
    monkeypatch.undo()
    monkeypatch.setattr(
        "topstory.studies.logs.simulated.new_builder", lambda *_: ts.FeatureBuilder(ridge=3.0)
    )
    others.append(known())
    assert all(other != first for other in others)
