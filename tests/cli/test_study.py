"""`topstory study`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import answer, run

import topstory as ts
from topstory.studies.simulated import SCALES, Scale

SMALL = ("--sizes", "1", "--policy", "egreedy,ucb,ucb-warm", "--epsilons", "0.1", "--alphas", "0.2")


def given(logs: Path) -> tuple[object, ...]:
    """A study of logs on disk."""
    return (
        *("--tuning", logs / "uniform", "--evaluation", logs / "explored"),
        *("--exploration", logs / "explored"),
        *SMALL,
    )


def test_it_writes_all_its_files_and_says_where_the_report_is(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    printed = run("study", out, *given(logs)).stdout
    assert f"The report: {out / 'report.html'}" in printed
    assert "ε-greedy" in printed
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    # Too few trials here for Figure 3: no article was chosen 100 times.
    figures = [f"figures/figure{n}.{kind}" for n in (2, 4, 5) for kind in ("html", "svg", "png")]
    assert names >= {
        *("report.html", "runs.parquet", "table1.csv", "table1.md", "table1.tex"),
        *figures,
    }


def test_it_tells_what_study_finds(logs: Path, tmp_path: Path) -> None:
    told = answer("study", tmp_path / "one", *given(logs))
    read: dict[str, Any] = {
        role: ts.EventLog.read(logs / name)
        for role, name in (
            ("tuning", "uniform"),
            ("evaluation", "explored"),
            ("exploration", "explored"),
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
    assert [row["cells"][0]["deploy"]["value"] for row in told["table"]["rows"]] == wanted
    assert told["replays"] == len(found.tuned) + len(found.evaluated)


def test_without_logs_it_simulates_them_and_learns_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCALES, "demo", Scale(20_000, 20_000, 30_000, users=5_000))
    told = answer("study", tmp_path / "out", *SMALL)
    assert [row["policy"] for row in told["table"]["rows"]] == ["egreedy", "ucb", "ucb-warm"]
    assert (tmp_path / "out" / "features.safetensors").exists()
    again = answer("study", tmp_path / "out", *SMALL)
    assert again["table"] == told["table"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--scale", "web"), "scale must be one of demo, paper, got 'web'"),
        (("--policy", "greedy"), "no policy to tune is called 'greedy'"),
        (("--engine", "spark"), "engine must be one of serial, local, ray"),
    ],
)
def test_wrong_usage_is_told(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    assert words in run("study", tmp_path / "out", *arguments, status=1).stderr
