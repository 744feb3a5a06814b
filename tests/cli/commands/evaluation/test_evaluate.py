"""`topstory evaluate` prints what `ts.evaluate` finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.running import answer, run, words

import topstory as ts


@pytest.fixture(scope="module")
def state(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("policy") / "trained.safetensors"
    log = ts.EventLog.read(logs / "recorded")
    ts.train(ts.policy("linucb-disjoint"), log[:1_000], held_out=0).policy.save(file)
    return file


def test_the_json_is_that_of_the_python_api(logs: Path, state: Path) -> None:
    report = answer(
        *("evaluate", logs / "recorded", "--policy", f"{state},ucb", "--policy", "random"),
        *("--alpha", 0.2, "--train-share", 0.25, "--baseline", "random"),
    )
    log = ts.EventLog.read(logs / "recorded")
    given: dict[str, ts.Policy | str] = {str(state): ts.Policy.load(state), "ucb": "ucb"}
    given["random"] = "random"
    found = ts.evaluate(given, log, alpha=0.2, train_share=0.25, baseline="random")
    assert (report["format"], report["version"]) == ("topstory-evaluate", 1)
    assert (report["events"], report["trained_events"]) == (3_000, 1_000)
    assert report["logged"]["value"] == found.logged.value
    assert [each["policy"] for each in report["values"]] == list(given)
    for printed, value in zip(report["values"], found.values.values(), strict=True):
        assert printed["value"]["value"] == value.value.value
        assert printed["value"]["interval"] == list(value.value.interval)
        assert printed["lift"]["interval"] == list(value.lift.interval)
        assert printed["effective_events"] == value.effective_events
        assert printed["cautions"] == list(value.cautions)


def test_the_table_says_what_was_judged_and_how_sure_it_is(logs: Path, state: Path) -> None:
    printed = words(run("evaluate", logs / "recorded", "--policy", f"{state},ucb").stdout)
    assert "snips on 2,000 events of recorded" in printed
    for column in ("smallest to see", "effective events", "mean weight", "without support"):
        assert column in printed
    assert "learned from the 2,000 events before those" in printed
    assert "Intervals cover other clicks and other runs of events" in printed
    assert "if it learned from these events" in printed


def test_a_log_without_propensities_that_is_not_uniform_warns(logs: Path) -> None:
    warned = run("evaluate", logs / "biased", "--policy", "random").stderr
    assert "every value is biased" in words(warned)


@pytest.mark.parametrize(
    ("wrong", "status", "said"),
    [
        (("--policy", "nowhere.safetensors"), 2, "neither a file nor a policy"),
        (("--policy", "ucb", "--estimator", "x"), 1, "no estimator is called"),
        (("--policy", "ucb", "--baseline", "x"), 1, "baseline must be"),
        (("--policy", "ucb", "--train-share", "1"), 1, "train_share must be"),
        (("--policy", "ucb", "--bucket", "x"), 1, "bucket must be"),
        (("--policy", "ucb", "--ridge", "2"), 2, "does not apply to ucb"),
    ],
)
def test_a_bad_request_is_one_sentence(
    logs: Path, wrong: tuple[str, ...], status: int, said: str
) -> None:
    assert said in words(run("evaluate", logs / "recorded", *wrong, status=status).stderr)


def test_numbers_without_a_named_policy_are_refused(logs: Path, state: Path) -> None:
    asked = ("evaluate", logs / "recorded", "--policy", state, "--alpha", 0.1)
    assert "does not apply to" in words(run(*asked, status=2).stderr)


def test_a_state_of_other_contexts_is_refused(logs: Path, state: Path) -> None:
    failed = run("evaluate", logs / "uniform", "--policy", state, status=1).stderr
    assert "a context has 3 features here, got 6" in words(failed)


def test_a_log_without_events_is_refused(logs: Path) -> None:
    failed = run("evaluate", logs / "empty", "--policy", "ucb", status=1).stderr
    assert "the log has no events" in words(failed)


def test_the_report_compares_with_the_baseline(logs: Path, state: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    given = ("--policy", f"{state},ucb,random", "--baseline", "random", "--report", file)
    found = answer("evaluate", logs / "recorded", *given)
    page = file.read_text("utf-8")
    random = next(each for each in found["values"] if each["policy"] == "random")
    assert f"random: {1e5 * random['value']['value']:,.0f}" in page
    assert "trained.safetensors" in page
    assert str(state.parent) not in page
