"""`topstory import`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from examples.news_site.export import write_export
from tests.cli.running import answer, run, words
from tests.events.formats.obd.test_reader import FIXTURE

from topstory.cli.output.progress import PlainLines
from topstory.events.formats.obd.reader import OTHER_POSITION
from topstory.events.formats.source_files import UNORDERED_FILES

LINE = "1317513291 id-2 1 |user 1 11 13 |id-1 |id-2\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "day.txt"
    path.write_text(LINE * 200 + "broken\n")
    return path


def test_it_reports_what_it_read_and_what_it_skipped(file: Path, tmp_path: Path) -> None:
    printed = run("import", "r6b", file, tmp_path / "log").stdout
    assert "Wrote 200 events to" in printed
    assert "201 rows" in printed
    assert "Skipped 1 row: not `time article click" in printed
    assert f"first at {file}:201: broken\n" in printed


def test_the_log_is_there_for_the_other_commands(file: Path, tmp_path: Path) -> None:
    run("import", "r6b", file, file, tmp_path / "log")
    assert answer("inspect", tmp_path / "log")["events"] == 400


def test_json_is_the_report(file: Path, tmp_path: Path) -> None:
    report = answer("import", "r6b", file, tmp_path / "log")
    assert (report["events"], report["rows"]) == (200, 201)
    ((reason, count),) = report["skipped"].items()
    assert count == 1
    assert report["first"][reason] == {"file": str(file), "line": 201, "text": "broken"}


def test_rows_left_out_are_reported(tmp_path: Path) -> None:
    log = FIXTURE / "men.csv"
    printed = run("import", "obd", log, tmp_path / "log", "-o", "position=1").stdout
    others = sum(row.split(",")[3] != "1" for row in log.read_text().splitlines()[1:])
    assert "300 rows" in printed
    assert f"\nLeft out {others} rows: {OTHER_POSITION}\n  first at {log}:" in printed
    report = answer("import", "obd", log, tmp_path / "log", "-o", "position=1")
    assert report["left_out"] == {OTHER_POSITION: others}


def test_a_remark_on_a_file_has_no_line(tmp_path: Path) -> None:
    file = tmp_path / "day.csv"
    file.write_text("timestamp,user,pool,shown,payoff\n1,1,a|b,a,0\n2,1,a|b,a,0\n")
    printed = run("import", "csv", file, file, tmp_path / "log").stdout
    assert f"Kept 1 row: {UNORDERED_FILES}\n  first at {file}\n" in printed


def test_the_work_is_as_much_as_the_files_that_a_pattern_stands_for(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(file, tmp_path / "day2.txt")
    seen: list[tuple[float, float]] = []

    def follow(lines: PlainLines, what: str, done: float, total: float) -> None:
        seen.append((done, total))

    monkeypatch.setattr(PlainLines, "follow", follow)
    run("import", "r6b", tmp_path / "day*.txt", tmp_path / "log")
    size = 2 * file.stat().st_size
    assert seen[-1] == (size, size)
    assert {total for _, total in seen} == {size}


def test_failures_are_one_sentence_and_leave_nothing(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "log"
    assert "day.txt:201: " in run("import", "r6b", file, out, "--strict", status=1).stderr
    assert "1 of 201 rows" in run("import", "r6b", file, out, "--max-bad", 0, status=1).stderr
    assert "no such file" in run("import", "r6b", tmp_path / "none", out, status=1).stderr
    assert "no option 'x'" in run("import", "r6b", file, out, "-o", "x=1", status=1).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["day.txt"]


def test_a_missing_out_says_out(file: Path, tmp_path: Path) -> None:
    said = words(run("import", "r6b", file, status=2).stderr)
    assert "for OUT: it is missing: name the folder for the log after the file" in said
    said = words(run("import", "r6b", file, file, status=2).stderr)
    assert "for OUT:" in said
    assert "is a file, and the last argument is the folder for the log" in said


def test_a_missing_pool_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "day.csv"
    path.write_text("user,shown,payoff\n" + "1,a,0\n" * 5)
    said = run("import", "csv", path, tmp_path / "log", status=1).stderr
    assert "there is no column 'pool' among the columns that are read" in said
    assert "--suggest" in said
    path.write_text('{"user":[1],"shown":"a","payoff":0}\n' * 5)
    said = run("import", "jsonl", path, tmp_path / "log", status=1).stderr
    assert "there is no field 'pool'" in said
    assert "day.csv:1" in said
    assert "--suggest" in said


def test_strings_are_told_the_route_that_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "day.csv"
    path.write_text("user_age,pool,shown,payoff\n" + "old,a,a,0\n" * 5)
    said = run("import", "csv", path, tmp_path / "log", status=1).stderr
    assert "user_age is not a finite number" in said
    assert "--suggest writes one" in said


def test_a_mapping_is_suggested_and_used(tmp_path: Path) -> None:
    impressions, articles = write_export(tmp_path, 500, bad=0)
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(
        run("import", "csv", impressions, "--suggest", "-o", f"articles={articles}").stdout
    )
    out = tmp_path / "log"
    printed = run("import", "csv", impressions, out, "--map", mapping).stdout
    assert "Wrote 500 events to" in printed
    assert "Left out 2 rows: an event with this id came before" in printed
    report = answer(
        *("import", "csv", impressions, out, "--map", mapping, "-o", "payoff=dwell_seconds > 30"),
        *("-o", "missing_payoff=0", "--query", "select * from events where device <> 'tablet'"),
    )
    assert 300 < report["events"] < 500
    found = answer("inspect", out)
    assert found["visitors"] > 10


def test_wrong_usage_exits_with_2(file: Path, tmp_path: Path) -> None:
    assert "no format is called 'r7'" in words(run("import", "r7", file, tmp_path, status=2).stderr)
    run("import", "r6b", file, status=2)
    run("import", "r6b", file, tmp_path, "--max-bad", 3, status=2)
    assert "NAME=VALUE" in words(run("import", "r6b", file, tmp_path, "-o", "x", status=2).stderr)
