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
