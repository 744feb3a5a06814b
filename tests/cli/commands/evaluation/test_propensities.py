"""`topstory propensities` prints and writes what `ts.estimate_propensities` finds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.cli.running import answer, run, words

import topstory as ts


def test_the_log_and_the_json_are_those_of_the_python_api(logs: Path, tmp_path: Path) -> None:
    report = answer("propensities", logs / "biased", tmp_path / "out", "--method", "counts")
    found = ts.estimate_propensities(ts.EventLog.read(logs / "biased"), method="counts")
    written = ts.EventLog.read(tmp_path / "out")
    assert (report["format"], report["version"]) == ("topstory-propensities", 1)
    assert report["estimate"] == written.propensity_estimate == found.log.propensity_estimate
    np.testing.assert_array_equal(written.propensity, found.log.propensity)
    assert report["losses"] == found.losses
    assert [each["shown"] for each in report["articles"]] == [each[2] for each in found.articles]


def test_every_later_command_says_that_they_were_estimated(logs: Path, tmp_path: Path) -> None:
    printed = words(run("propensities", logs / "biased", tmp_path / "out").stdout)
    for said in ("Are the chances right?", "marked as estimated", "mean weight", "Less is better"):
        assert said in printed
    log = tmp_path / "out"
    commands = (
        ("inspect", log),
        ("evaluate", log, "--policy", "egreedy"),
        ("choose", log, tmp_path / "chosen", "--policy", "egreedy"),
        ("replay", log, "--policy", "egreedy"),
        ("replay", log, "--policy", "egreedy-disjoint", "--estimator", "dr-ns"),
    )
    for command in commands:
        assert "estimated, not recorded" in words(run(*command).output), command
    assert any("estimated" in each for each in answer("replay", *commands[3][1:])["warnings"])


def test_recorded_propensities_and_the_log_itself_are_kept(logs: Path, tmp_path: Path) -> None:
    failed = run("propensities", logs / "recorded", tmp_path / "out", status=1).stderr
    assert "better than any estimate" in words(failed)
    assert not (tmp_path / "out").exists()
    same = run("propensities", logs / "biased", logs / "biased", status=2).stderr
    assert "must be different folders" in words(same)


def test_a_log_without_chance_is_one_sentence_and_writes_nothing(tmp_path: Path) -> None:
    log = ts.EventLog.from_arrays(
        np.ones((400, 1)), [["a", "b"]], [0] * 400, ["a"] * 400, [0, 1] * 200
    )
    log.write(tmp_path / "log")
    failed = words(run("propensities", tmp_path / "log", tmp_path / "out", status=1).stderr)
    assert "left nothing to chance" in failed
    assert "topstory plan" in failed
    assert not (tmp_path / "out").exists()
