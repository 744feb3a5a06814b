"""`topstory export` writes what `export` writes, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.running import answer, run

import topstory as ts
from topstory.events.formats.exporting import export
from topstory.events.formats.registry import WRITERS


@pytest.mark.parametrize("to", ["dsjson", "jsonl"])
@pytest.mark.parametrize("name", ["uniform", "recorded", "empty"])
def test_the_file_is_the_librarys(logs: Path, tmp_path: Path, to: str, name: str) -> None:
    report = answer("export", logs / name, tmp_path / "ours", "--to", to)
    log = ts.EventLog.read(logs / name)
    theirs = export(log, to, tmp_path / "theirs")
    assert report["events"] == len(log)
    assert report["to"] == to
    assert [Path(path).read_bytes() for path in report["files"]] == [p.read_bytes() for p in theirs]


def test_without_json_it_prints_a_sentence(logs: Path, tmp_path: Path) -> None:
    printed = run("export", logs / "plain", tmp_path / "week.npz", "--to", "obp").stdout
    assert printed.split() == f"Wrote 4,000 events to {tmp_path / 'week.npz'}".split()


def test_an_unknown_format_is_wrong_usage(logs: Path, tmp_path: Path) -> None:
    wrong = run("export", logs / "plain", tmp_path / "x", "--to", "xml", status=2)
    for name in WRITERS:
        assert name in wrong.stderr


def test_a_place_that_cannot_be_is_one_sentence(logs: Path, tmp_path: Path) -> None:
    failed = run("export", logs / "plain", tmp_path, "--to", "dsjson", status=1)
    assert failed.stderr.count("\n") == 1
    assert "it is a folder" in failed.stderr
