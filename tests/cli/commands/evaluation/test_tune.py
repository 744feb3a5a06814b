"""`topstory tune`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.running import answer, run, words
from tests.features.worlds import little_log

import topstory as ts


def test_it_prints_what_tune_finds(logs: Path) -> None:
    report = answer(
        "tune", logs / "uniform", "--policy", "ucb", "--grid", "0.1,0.5", "--sizes", "1,0.05"
    )
    tuning = ts.tune("ucb", ts.EventLog.read(logs / "uniform"), grid=[0.1, 0.5], sizes=[1, 0.05])
    assert [curve["size"] for curve in report["curves"]] == [1.0, 0.05]
    for curve in report["curves"]:
        chosen = [p["parameters"]["alpha"] for p in curve["points"] if p["chosen"]]
        assert chosen == [tuning.best(curve["size"]).parameter]
        for point, found in zip(curve["points"], tuning.curve(curve["size"]), strict=True):
            assert point["deployment"]["relative_ctr"] == found.deployment.value
            assert point["learning"]["interval"] == list(found.learning.interval)
            assert point["repeats"] == 20
            assert point["total"]["relative_ctr"] == found.total.value
            assert point["clicks_per_100000"] == found.exploration.clicks.value
        expected = tuning.expected(curve["size"])
        assert curve["expected"]["relative_ctr"] == expected.value
        assert curve["expected"]["interval"] == list(expected.interval)
        assert curve["at_edge"] == ["alpha"]
    assert (report["on"], report["learning_share"]) == ("total", 0.1)


def test_it_prints_the_curve_and_the_choice(logs: Path) -> None:
    printed = run("tune", logs / "uniform", "--policy", "egreedy-seg", "--grid", "0.1,0.5").stdout
    assert "ε-greedy (seg)" in printed
    text = words(printed)
    assert "Use epsilon 0." in text
    assert "times as much as random articles over both buckets (95 % interval" in text
    assert "exploring costs" in text
    assert "at the edge of what was tried for epsilon" in text
    assert "over the clicks and hours of this log, and the learning path (20 seeds)" in text


def test_a_warm_policy_takes_offsets_from_another_log_or_the_first_tenth(logs: Path) -> None:
    arguments = ("tune", logs / "uniform", "--policy", "ucb-warm", "--grid", "0.2")
    log, explored = (ts.EventLog.read(logs / name) for name in ("uniform", "explored"))
    given = answer(*arguments, "--warm-from", logs / "explored")
    offset = ts.fit_warm_offset(explored).table(log.articles)
    wanted = ts.tune("ucb-warm", log, grid=[0.2], offset=offset).best().deployment.value
    assert given["curves"][0]["points"][0]["deployment"]["relative_ctr"] == wanted
    assert answer(*arguments)["events"] == len(log) - len(log) // 10


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("--policy", "random"), 1, "no policy to tune is called 'random'"),
        (("--policy", "ucb", "--grid", "much"), 2, "numbers separated by commas"),
        (("--policy", "ucb", "--warm-from", "x"), 2, "does not apply to ucb"),
        (("--policy", "ucb", "--on", "both"), 1, "on must be 'total', 'deployment' or"),
        (("--policy", "ucb", "--learning-share", "2"), 2, "less than or equal to 1"),
        (("--policy", "ucb", "--engine", "spark"), 1, "engine must be one of serial, local, ray"),
        (("--policy", "ucb", "--address", "auto"), 1, "it means nothing to 'local'"),
    ],
)
def test_wrong_usage_is_an_error(
    logs: Path, arguments: tuple[str, ...], status: int, said: str
) -> None:
    result = run("tune", logs / "uniform", *arguments, status=status)
    assert said in " ".join(result.stderr.replace("│", " ").split())


def test_a_log_that_is_not_uniform_gives_one_warning(logs: Path) -> None:
    result = run("tune", logs / "biased", "--policy", "ucb", "--grid", "0.1,0.2")
    assert result.stderr.count("were not shown uniformly") == 1


def test_without_a_click_no_value_is_called_the_best(tmp_path: Path, logs: Path) -> None:
    log = ts.EventLog.read(logs / "plain")
    replace(log, payoff=0 * log.payoff).write(tmp_path / "log")
    arguments = ("tune", tmp_path / "log", "--policy", "ucb", "--grid", "0.1,0.5")
    printed = run(*arguments).stdout
    assert "Use alpha" not in printed
    assert "no clicks over both buckets" in printed
    assert "no clicks in the deployment bucket" in run(*arguments, "--on", "deployment").stdout
    points = answer(*arguments)["curves"][0]["points"]
    assert [point["chosen"] for point in points] == [False, False]


def test_where_payoffs_are_losses_nothing_is_relative(tmp_path: Path, logs: Path) -> None:
    log = ts.EventLog.read(logs / "plain")
    replace(log, payoff=log.payoff - 2).write(tmp_path / "log")
    named = (tmp_path / "log", "--policy", "ucb")
    assert "The mean payoff is not above 0 over both buckets" in run("tune", *named).stdout
    printed = run("replay", *named, "--repeats", "1").stdout
    assert "there are none unless that is above 0" in printed
    assert "Nothing can be said of what both buckets earn" in printed


def test_a_policy_without_user_features_gives_a_warning(tmp_path: Path) -> None:
    little_log().write(tmp_path / "raw")
    arguments = ("tune", tmp_path / "raw", "--grid", "0.1,0.5", "--policy")
    printed = run(*arguments, "linucb-disjoint").stderr
    assert (
        "contexts hold only the constant, so linucb-disjoint knows nothing about the user"
        in printed
    )
    assert "topstory features fit" in printed
    assert "WARNING" not in run(*arguments, "ucb").stderr
    replayed = run("replay", tmp_path / "raw", "--policy", "ucb,linucb-disjoint").stderr
    assert "so linucb-disjoint knows nothing about the user" in replayed
    out = ("--policy", "linucb-disjoint", "--out", tmp_path / "policy")
    assert "`train --features`" in run("train", tmp_path / "raw", *out).stderr


def test_the_recommended_policy_can_be_saved(logs: Path, tmp_path: Path) -> None:
    file = tmp_path / "policy.safetensors"
    given = ("tune", logs / "plain", "--policy", "egreedy", "--grid", "0.1,0.9", "--repeats", 1)
    report = answer(*given, "--save", file)
    (chosen,) = (point for point in report["curves"][0]["points"] if point["chosen"])
    assert report["saved"]["parameters"] == chosen["parameters"]
    saved = ts.Policy.load(file)
    assert saved.explorer.parameters() == chosen["parameters"]
    assert f"to {file}" in run(*given, "--save", file).stdout


def test_without_a_policy_it_tunes_one_with_a_prior_and_with_a_named_ridge_one_without(
    logs: Path,
) -> None:
    few = ("--grid", "0.1", "--repeats", "1", "--engine", "serial")
    report = answer("tune", logs / "uniform", "--warm-from", logs / "explored", *few)
    assert report["policy"] == "linucb-hybrid-prior"
    report = answer("tune", logs / "uniform", "--ridge", "auto", *few)
    assert report["policy"] == "linucb-hybrid"
    (point,) = report["curves"][0]["points"]
    log = ts.EventLog.read(logs / "uniform")
    found = ts.tune("linucb-hybrid", log, grid=[0.1], repeats=1, engine="serial", ridge="auto")
    assert point["total"]["relative_ctr"] == found.best().total.value
    assert point["parameters"] == {"alpha": 0.1}
