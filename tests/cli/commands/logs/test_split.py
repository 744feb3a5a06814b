"""`topstory split`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import EVENTS
from tests.cli.running import answer, run, words

from topstory.events import EventLog


def test_the_parts_are_logs(logs: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    report = answer("split", logs / "uniform", first, second, "--at", "80%")
    assert [part["events"] for part in report["parts"]] == [EVENTS * 8 // 10, EVENTS * 2 // 10]
    whole = EventLog.read(logs / "uniform")
    assert EventLog.concat([EventLog.read(first), EventLog.read(second)]).shown.tolist() == (
        whole.shown.tolist()
    )
    printed = run("split", logs / "uniform", first, second, "--at", "2009-05-01T12:00").stdout
    assert printed.count("Wrote ") == 2


def test_nothing_is_written_if_a_part_cannot_be(logs: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    second.mkdir()
    (second / "mine").write_text("x")
    said = run("split", logs / "uniform", first, second, "--at", 0.5, status=1).stderr
    assert "it is not empty and not a topstory log" in said
    assert not first.exists()
    run("split", logs / "uniform", first, first, "--at", 0.5, status=2)
    said = words(run("split", logs / "uniform", first, second, status=2).stderr)
    assert "--at" in said
