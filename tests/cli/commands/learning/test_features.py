"""`topstory features`: fit, apply, show, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.cli.running import answer, run, words
from tests.features.worlds import little_log, mixed_log

import topstory as ts
from topstory.cli.output import feature_tables
from topstory.features.description import describe

FIT = ("--clusters", "2", "--support", "0", "--ridge", "1", "--engine", "serial")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    little_log().write(tmp_path / "raw")
    return tmp_path / "raw"


def test_fit_apply_and_show_do_what_the_library_does(raw: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "model", tmp_path / "out"
    report = answer("features", "fit", raw, model, *FIT)
    log = little_log()
    wanted = ts.FeatureBuilder(clusters=2, support=0.0, ridge=1.0, engine="serial")
    wanted.fit_folder(raw)
    assert report == msgspec.json.decode(msgspec.json.encode(describe(wanted)))
    assert answer("features", "show", model) == report
    assert answer("features", "apply", raw, model, out) == {
        "events": 2000,
        "users": 40,
        "articles": 6,
        "dimension": 3,
        "article_features": 3,
        "unknown": {},
    }
    built, expected = ts.EventLog.read(out), wanted.apply(log)
    np.testing.assert_array_equal(built.users, expected.users)
    np.testing.assert_array_equal(built.features, expected.features)
    assert built.profiles is None
    run("features", "apply", raw, model, out, "--keep-profiles")
    assert ts.EventLog.read(out).profiles is not None


def test_a_log_larger_than_memory_is_read_again_or_by_mini_batches(
    raw: Path, tmp_path: Path
) -> None:
    kept = answer("features", "fit", raw, tmp_path / "kept", *FIT)
    assert answer("features", "fit", raw, tmp_path / "again", *FIT, "--in-memory", "100") == kept
    batches = answer("features", "fit", raw, tmp_path / "batches", *FIT, "--passes", "2")
    assert batches["raw_user_features"] == kept["raw_user_features"]
    assert batches != kept
    assert (kept["scored_on"], kept["iterations"]) == ("held out", len(kept["history"]) - 1)
    assert (batches["scored_on"], batches["iterations"]) == ("last batch", 2)


def test_the_printed_log_loss_names_the_events_it_was_measured_on(
    raw: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    printed = run("features", "fit", raw, model, *FIT).stdout
    assert "on held-out events, after " in printed
    assert " iterations" in printed
    run("features", "fit", raw, model, *FIT, "--passes", "2")
    printed = run("features", "show", model).stdout
    assert "on the last batch, before learning from it, after 2 batches" in printed
    assert "held-out" not in printed
    ts.FeatureBuilder(clusters=2, support=0.0, held_out=0.0).fit(little_log()).save(model)
    printed = run("features", "show", model).stdout
    assert "on the training events, after " in printed


def test_clusters_are_shown_in_words_and_drawn(raw: Path, tmp_path: Path) -> None:
    run("features", "fit", raw, tmp_path / "model", *FIT)
    picture = tmp_path / "memberships.svg"
    printed = run("features", "show", tmp_path / "model", "--picture", picture).stdout
    for word in ("likes=opera", "tags=stage", "likes ", "largest membership"):
        assert word in printed
    assert "<svg" in picture.read_text()


def test_unknown_categories_are_reported(raw: Path, tmp_path: Path) -> None:
    run("features", "fit", raw, tmp_path / "model", *FIT)
    strange = {"gender": ["x"] * 40, "likes": [["golf"]] * 40}
    little_log(profiles=strange).write(tmp_path / "strange")
    printed = run("features", "apply", tmp_path / "strange", tmp_path / "model", tmp_path / "out")
    assert "Ignored 40 values of gender" in printed.stdout


def test_applying_never_overwrites_the_raw_profiles(raw: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    run("features", "fit", raw, model, *FIT)
    (tmp_path / "link").symlink_to(raw)
    for same in (raw, tmp_path / "link", raw / ".." / "raw"):
        failed = run("features", "apply", raw, model, same, status=1)
        assert "would lose its raw profiles" in failed.stderr
    assert ts.EventLog.read(raw).dimension == 1
    run("features", "apply", raw, model, raw, "--keep-profiles")
    log = ts.EventLog.read(raw)
    assert (log.dimension, log.profiles is None) == (3, False)


def test_every_failure_is_one_sentence(logs: Path, raw: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    for arguments, sentence in (
        (("fit", logs / "uniform", model), "no raw profiles of its users"),
        (("fit", raw, model, "--clusters", "0"), "clusters must be at least 1"),
        (("fit", raw, model, "--engine", "spark"), "engine must be one of serial, local, ray"),
        (("fit", raw, model, "--support", "age=0.1"), "unknown field 'age'"),
        (("fit", raw, model, "--passes", "0"), "passes must be at least 1"),
        (("apply", raw, raw / "log.json", tmp_path / "out"), "not a safetensors file"),
        (("show", model), "model"),
        (("show", raw), "it is a folder; a feature model is one file"),
        (("show", "/dev/null"), "/dev/null: "),
        (("fit", logs / "uniform", model), "simulate --raw makes up such a log"),
        (
            ("fit", raw, model, "--support", "2"),
            "support must lie between 0 (keep all) and 1, got 2",
        ),
        (
            ("fit", raw, model, "--support", "likes=-1"),
            "support of 'likes' must lie between 0 (keep all) and 1, got -1",
        ),
        (
            ("fit", raw, model, "--support", "0.9", "--clusters", "2"),
            "support 0.9: no category of the users has it; the most frequent, likes=golf, has 0.5",
        ),
    ):
        result = run("features", *arguments, status=1)
        assert result.stdout == ""
        assert result.stderr.startswith("topstory: ")
        assert sentence in result.stderr
    wrong = run("features", "fit", raw, model, "--method", "magic", status=2)
    assert "expected direct, clusters, pca, bilinear or auto, got 'magic'" in words(wrong.stderr)
    assert not model.exists()


def test_many_features_are_said_to_make_hybrid_policies_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed_log().write(tmp_path / "raw")
    fit = ("features", "fit", tmp_path / "raw", tmp_path / "model", "--method", "direct")
    assert "--method pca makes fewer" in run(*fit).stdout
    monkeypatch.setattr(feature_tables, "MANY_SHARED", 10_000)
    assert "--method pca" not in run(*fit).stdout


def test_where_the_model_goes_is_checked_before_the_fit(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(ts.FeatureBuilder, "fit_folder")
    for place, sentence in (
        (tmp_path / "nowhere" / "model", "there is no folder"),
        (raw / "log.json" / "model", "there is no folder"),
        (raw, "it is a folder; name a file"),
    ):
        failed = run("features", "fit", raw, place, status=1)
        assert failed.stderr.startswith(f"topstory: {place}: {sentence}")


def test_a_picture_is_svg_and_is_named_so(raw: Path, tmp_path: Path) -> None:
    run("features", "fit", raw, tmp_path / "model", *FIT)
    picture = tmp_path / "memberships.png"
    failed = run("features", "show", tmp_path / "model", "--picture", picture, status=2)
    assert "the picture is SVG" in words(failed.stderr)
    assert not picture.exists()


@pytest.mark.parametrize("support", [["much"], ["0.1", "likes=0.2"], ["likes=much"]])
def test_a_support_that_is_no_number_is_wrong_usage(
    raw: Path, tmp_path: Path, support: list[str]
) -> None:
    given = [text for each in support for text in ("--support", each)]
    result = run("features", "fit", raw, tmp_path / "model", *given, status=2)
    assert "--support" in words(result.stderr)


def test_auto_says_what_each_method_is_worth_and_keeps_the_best(tmp_path: Path) -> None:
    mixed_log().write(tmp_path / "log")
    model = tmp_path / "model"
    fit = ("--clusters", "2", "--method", "auto")
    report = answer("features", "fit", tmp_path / "log", model, *fit)
    tried = report["tried"]
    assert {each["method"] for each in tried} == {"direct", "clusters", "pca", "bilinear"}
    assert report["method"] == tried[0]["method"] == ts.FeatureBuilder.load(model).method
    judged = [each for each in tried if each["value"] is not None]
    assert judged == sorted(judged, key=lambda each: -each["value"])
    assert all(bool(each["refused"]) == (each["value"] is None) for each in tried)
    assert all(each["judged_by"] == "replay" for each in judged)
    low, high = judged[0]["lead_interval"]
    assert low <= judged[0]["lead"] <= high
    only: tuple[str, ...] = (*fit, "--policy", "linucb-disjoint")
    shown = words(run("features", "fit", tmp_path / "log", model, *only).stdout)
    assert "judged on the second, by replay, with the policy that made most of it." in shown
    assert " leads " in shown
    assert "linucb-hybrid" not in shown
    only = ("--method", "auto", "--policy", "magic")
    assert "no policy is called 'magic'" in words(
        run("features", "fit", tmp_path / "log", model, *only, status=1).stderr
    )
    only = ("--method", "direct", "--policy", "ucb")
    assert "it is for --method auto" in words(
        run("features", "fit", tmp_path / "log", model, *only, status=2).stderr
    )


def test_a_direct_model_is_shown_field_by_field(tmp_path: Path) -> None:
    mixed_log().write(tmp_path / "log")
    model = tmp_path / "model"
    shown = words(run("features", "fit", tmp_path / "log", model, "--method", "direct").stdout)
    assert "direct: " in shown
    for said in ("standardised", "one-hot", "1 if true", "not used", "components"):
        assert said in shown
    failed = run("features", "show", model, "--picture", tmp_path / "out.svg", status=1)
    assert "method direct makes no clusters" in words(failed.stderr)
