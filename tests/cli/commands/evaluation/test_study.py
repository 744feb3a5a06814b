"""`topstory study`."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.running import answer, run, words
from tests.features.worlds import clear_world

import topstory as ts
from topstory.policies.registry import TUNED
from topstory.report.html import plotly_script
from topstory.studies.logs.simulated import SCALES, Scale

SMALL = ("--sizes", "1", "--policy", "egreedy,ucb,ucb-warm", "--epsilons", "0.1", "--alphas", "0.2")


def test_every_named_grid_of_the_registry_is_an_option_beside_values(tmp_path: Path) -> None:
    assert [each.plural for each in TUNED.values() if each.plural] == ["epsilons", "alphas"]
    result = run("study", tmp_path / "out", "--alphas", "much", status=2)
    assert "--alphas: expected numbers" in " ".join(result.output.split())
    result = run("study", tmp_path / "out", "--alphas", 0.1, "--values", "alpha=1", status=2)
    assert "--values sets alpha, too" in result.output
    assert not (tmp_path / "out").exists()


def given(logs: Path) -> tuple[object, ...]:
    """A study of logs on disk."""
    return (
        *("--tuning", logs / "uniform", "--evaluation", logs / "explored"),
        *("--exploration", logs / "uniform"),
        *SMALL,
    )


def test_it_writes_all_its_files_and_says_where_the_report_is(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    printed = run("study", out, *given(logs)).stdout
    assert f"Report: {out / 'report.html'}" in printed
    assert "ε-greedy" in printed
    assert "total cost" in words(printed)
    assert "Total: both buckets with 10 % of visits learning, at 100 %; cost: clicks in" in words(
        printed
    )
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    # Too few trials here for Figure 3: no article was chosen 100 times.
    figures = [f"figures/figure{n}.{kind}" for n in (2, 4, 5) for kind in ("html", "svg", "png")]
    assert names >= {
        *("report.html", "runs.parquet", "table1.csv", "table1.md", "table1.tex"),
        *figures,
    }


def test_it_prints_what_study_finds(logs: Path, tmp_path: Path) -> None:
    file = tmp_path / "policy.safetensors"
    report = answer("study", tmp_path / "one", *given(logs), "--save", file)
    read: dict[str, Any] = {
        role: ts.EventLog.read(logs / name)
        for role, name in (
            ("tuning", "uniform"),
            ("evaluation", "explored"),
            ("exploration", "uniform"),
        )
    }
    found = ts.study(
        tmp_path / "two",
        **read,
        sizes=[1.0],
        policies=["egreedy", "ucb", "ucb-warm"],
        epsilons=[0.1],
        alphas=[0.2],
    )
    wanted = [row.cells[0].deploy.value for row in found.report().table.rows]
    assert [row["cells"][0]["deploy"]["value"] for row in report["table"]["rows"]] == wanted
    assert report["replays"] == len(found.tuned) + len(found.evaluated)
    policy, parameters = found.advised()
    assert (report["saved"]["policy"], report["saved"]["parameters"]) == (policy, parameters)
    assert ts.Policy.load(file).explorer.parameters().items() >= dict(parameters).items()


def test_a_policy_to_save_needs_logs(logs: Path, tmp_path: Path) -> None:
    file = tmp_path / "policy.safetensors"
    said = words(run("study", tmp_path / "out", "--save", file, status=2).stderr)
    assert "it needs your own logs: --tuning and --evaluation" in said


def test_payoffs_that_are_no_clicks_are_never_called_ctr(logs: Path, tmp_path: Path) -> None:
    for name, role in (("uniform", "tuning"), ("explored", "evaluation")):
        log = ts.EventLog.read(logs / name)[:3000]
        paid = (log.payoff * np.float32(7.5)).astype(np.float32)
        replace(log, payoff=paid).write(tmp_path / role)
    result = run(
        *("study", tmp_path / "out", "--tuning", tmp_path / "tuning", "--policy", "egreedy,ucb"),
        *("--evaluation", tmp_path / "evaluation", "--sizes", "1"),
    )
    assert "deployment payoff, lift" in result.stdout
    page = (tmp_path / "out" / "report.html").read_text("utf-8").replace(plotly_script(), "")
    others = [*(tmp_path / "out").glob("*.md"), *(tmp_path / "out" / "figures").glob("*.svg")]
    for text in (page, result.stdout, *(path.read_text("utf-8") for path in others)):
        assert "CTR" not in text
    assert "Payoff on the evaluation log" in page


def test_without_logs_it_simulates_them_and_learns_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCALES, "demo", Scale(20_000, 20_000, 30_000, users=5_000))
    report = answer("study", tmp_path / "out", *SMALL)
    assert [row["policy"] for row in report["table"]["rows"]] == ["egreedy", "ucb", "ucb-warm"]
    assert (tmp_path / "out" / "features.safetensors").exists()
    again = answer("study", tmp_path / "out", *SMALL)
    assert again["table"] == report["table"]


def test_contexts_with_only_the_constant_give_one_warning(logs: Path, tmp_path: Path) -> None:
    for name, role in (("uniform", "tuning"), ("explored", "evaluation")):
        log = ts.EventLog.read(logs / name)[:2000]
        bare = replace(log, users=np.ones((len(log), 1), np.float32), visitors=None)
        bare.write(tmp_path / role)
    result = run(
        *("study", tmp_path / "out", "--tuning", tmp_path / "tuning"),
        *("--evaluation", tmp_path / "evaluation", *SMALL),
    )
    warning = "WARNING: contexts hold only the constant, so ucb-warm knows no more about the user"
    assert result.stderr.count(warning) == 1
    assert "--exploration" in result.stderr
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "Contexts hold only the constant" in page


def test_features_of_raw_logs_have_the_support_that_is_asked_for_and_go_with_the_saved_policy(
    tmp_path: Path,
) -> None:
    world, out = clear_world(users=2_000), tmp_path / "out"
    roles = ("exploration", "tuning", "evaluation")
    for seed, role in enumerate(roles):
        world.random_log(4_000, "2009-05-01", 1, seed=seed, raw=True).write(tmp_path / role)
    given = [word for role in roles for word in (f"--{role}", tmp_path / role)]
    small = ("--policy", "egreedy", "--sizes", "1", "--epsilons", "0.1")
    support, file = ("--support", "behaviours=0.05", "--support", "age=0"), tmp_path / "policy"
    saved = answer("study", out, *given, *small, *support, "--save", file)["saved"]
    assert saved["features"] == str(out / "features.safetensors")
    model = ts.FeatureBuilder.load(saved["features"])
    assert model.support == {"age": 0.0, "behaviours": 0.05}
    policy = ts.Policy.load(file)
    assert policy.feature_model == model.identity
    assert policy.trials == saved["events"] == 8_000
    printed = run("study", out, *given, *small, "--support", "some", status=2).stderr
    assert "expected a number or FIELD=NUMBER, got 'some'" in words(printed)


def test_ctrl_c_says_that_the_same_command_goes_on(logs: Path, tmp_path: Path) -> None:
    """Interrupted once its first run is recorded; then it goes on, and repeats none of them."""
    out = tmp_path / "out"
    command = [
        Path(sys.executable).with_name("topstory"),
        "study",
        out,
        *given(logs),
        "--engine",
        "serial",
    ]
    process = subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (recorded := _runs(out)) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate(timeout=120)
    assert (process.returncode, printed) == (
        130,
        "interrupted; run the same command again to continue\n",
    )
    answer("study", out, *given(logs))
    again = _runs(out)
    assert again[: len(recorded)] == recorded
    assert len(again) == len(set(again))


def _runs(out: Path) -> list[bytes]:
    journal = out / "journal.jsonl"
    lines = journal.read_bytes().splitlines() if journal.exists() else []
    return [line for line in lines if line.startswith(b'{"type":"run"') and line.endswith(b"}")]


def test_a_file_is_no_folder_for_a_study(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("years of work")
    printed = run("study", tmp_path / "out", *given(logs), status=1).stderr
    assert "is a file, and a study needs a folder" in printed
    assert (tmp_path / "out").read_text() == "years of work"


def test_a_missing_log_is_one_sentence(logs: Path, tmp_path: Path) -> None:
    printed = run(
        "study", tmp_path / "out", "--tuning", logs / "none", "--evaluation", logs, status=1
    ).stderr
    assert printed.count("\n") == 1
    assert "there is no such folder" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--scale", "web"), "scale must be one of demo, paper, got 'web'"),
        (("--policy", "greedy"), "no policy to tune is called 'greedy'"),
        (("--engine", "spark"), "engine must be one of serial, local, ray"),
    ],
)
def test_wrong_usage_is_an_error(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    assert words in run("study", tmp_path / "out", *arguments, status=1).stderr
