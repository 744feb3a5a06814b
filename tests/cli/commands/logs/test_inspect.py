"""`topstory inspect` prints what `ts.inspect` finds, without importing numba."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.cli.running import answer, run

import topstory as ts


@pytest.mark.parametrize("name", ["uniform", "plain", "biased", "recorded", "empty"])
def test_json_is_the_inspection(logs: Path, name: str) -> None:
    found = ts.inspect(ts.EventLog.read(logs / name))
    assert answer("inspect", logs / name) == msgspec.json.decode(msgspec.json.encode(found))


@pytest.mark.parametrize("name", ["uniform", "plain", "biased", "recorded", "empty"])
def test_the_verdict_is_printed_in_words(logs: Path, name: str) -> None:
    found = ts.inspect(ts.EventLog.read(logs / name))
    printed = run("inspect", logs / name).stdout
    for sentence in found.verdict:
        assert sentence in printed
    assert f"{found.events:,}" in printed


def test_days_and_the_most_shown_articles_are_listed(logs: Path) -> None:
    found = ts.inspect(ts.EventLog.read(logs / "uniform"))
    printed = run("inspect", logs / "uniform").stdout
    assert "2009-05-01" in printed
    for article in found.by_article[:10]:
        assert article.article in printed
    assert found.by_article[10].article not in printed


def test_articles_shown_too_often_or_too_rarely_are_listed(logs: Path) -> None:
    found = ts.inspect(ts.EventLog.read(logs / "biased"))
    printed = run("inspect", logs / "biased").stdout
    assert "not as expected" in printed
    assert f"{found.uniformity.standouts[0].expected:,.1f}" in printed


def test_what_was_not_tested_is_said_and_why(logs: Path) -> None:
    printed = run("inspect", logs / "empty").stdout
    assert "not tested: there are no events" in printed
    assert "degrees of freedom" not in printed
    assert "p = " not in printed


def test_a_log_that_never_pays_has_no_ctr(tmp_path: Path) -> None:
    shown = ["a", "b"] * 20
    log = ts.EventLog.from_arrays([[1.0]] * 40, [["a", "b"]], [0] * 40, shown, [0] * 40)
    log.write(tmp_path / "log")
    printed = run("inspect", tmp_path / "log").stdout
    assert "none: every payoff is 0" in printed
    assert "0.0000" not in printed


def test_payoffs_that_are_no_clicks_have_no_ctr(tmp_path: Path) -> None:
    shown = ["a", "b"] * 20
    log = ts.EventLog.from_arrays([[1.0]] * 40, [["a", "b"]], [0] * 40, shown, [2.5, -1] * 20)
    log.write(tmp_path / "log")
    printed = run("inspect", tmp_path / "log").stdout
    assert "CTR" not in printed
    assert "mean payoff" in printed


def test_uniform_propensities_are_recorded_ones(tmp_path: Path) -> None:
    shown = ["a", "b"] * 20
    for name, propensity in (("given", [0.5] * 40), ("assumed", None)):
        log = ts.EventLog.from_arrays(
            [[1.0]] * 40, [["a", "b"]], [0] * 40, shown, [0, 1] * 20, propensity=propensity
        )
        log.write(tmp_path / name)
    assert "recorded, 1 / pool size" in run("inspect", tmp_path / "given").stdout
    assert "not recorded; assumed" in run("inspect", tmp_path / "assumed").stdout


def test_survivors_and_mean_weight_are_printed(logs: Path) -> None:
    found = ts.inspect(ts.EventLog.read(logs / "recorded"))
    assert found.rejection is not None
    printed = run("inspect", logs / "recorded").stdout
    assert f"{found.rejection.survivors:,.0f} events, {found.survivors:.2%} of the log" in printed
    assert f"{found.rejection.mean_weight:.4g}, 99.9 % interval" in printed


@pytest.mark.parametrize(
    "arguments", [["inspect", "LOG"], ["--help"], ["--version"], ["replay", "--help"]]
)
def test_what_needs_no_kernel_starts_without_numba(logs: Path, arguments: list[str]) -> None:
    given = [str(logs / "uniform") if each == "LOG" else each for each in arguments]
    program = (
        "import atexit, sys; from topstory.cli import main; "
        "atexit.register(lambda: print('numba' in sys.modules, file=sys.stderr)); "
        f"sys.argv[1:] = {given!r}; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "False", done.stderr


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("events.csv", "topstory import csv {} logs/"),
        ("events.csv.gz", "topstory import csv {} logs/"),
        ("events.jsonl", "topstory import jsonl {} logs/"),
        ("events.parquet", "topstory import parquet {} logs/"),
        ("events.txt", "topstory import"),
    ],
)
def test_a_file_is_told_what_to_run(name: str, command: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("a,b")
    said = run("inspect", tmp_path / name, status=1).stderr
    assert "it is a file, not the folder of a log" in said
    assert command.format(tmp_path / name) in said
