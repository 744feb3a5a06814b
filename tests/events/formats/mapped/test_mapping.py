"""Mistakes in a mapping: each is one sentence that names the key and what to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.events.formats.mapped.test_mapped import MAPPING, ROWS, write

from topstory.events import EventLog
from topstory.events.formats.importing import import_log

WITHOUT: Any = object()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shwon": "item"}, "there is no setting 'shwon': do you mean 'shown'?"),
        ({"xyz": "item"}, "there is no setting 'xyz'; it takes shown, payoff, timestamp"),
        ({"shown": WITHOUT}, "shown is missing: say which column is the article that was shown"),
        ({"payoff": WITHOUT}, "payoff is missing: say which column is what it paid"),
        ({"payoff": "click +"}, "payoff: 'click +' ends where a column or a number should come"),
        ({"candidates": WITHOUT}, "candidates is missing, and without it nobody knows what could"),
        ({"shown": "itme"}, "there is no column 'itme', which the mapping names; it has id, ts"),
        ({"shown": "itme"}, "do you mean 'item'?"),
        ({"user": {"age": "float"}}, "[user] age: the kind is one of category, categories, number"),
        ({"user": {"user": "number"}}, "a field cannot be called 'user'; name it otherwise"),
        ({"user": {"age": {"kind": "number", "clumn": "x"}}}, "unknown field `clumn`"),
        ({"user": "age"}, "[user] must be fields with their kinds, got 'age'"),
        ({"article": {"section": "category"}}, "[article] has fields, but there is no [articles]"),
        ({"articles": {"file": "none.csv"}}, "none.csv: there is no such file of articles"),
        ({"timestamp": {"column": "ts", "format": "seconds"}}, "the format is auto, iso, s, ms"),
        ({"user": {"since": {"kind": "date", "format": "D"}}}, "the format is auto, iso, s, ms"),
        ({"sort": "maybe"}, "sort"),
        ({"missing_payoff": "none"}, "missing_payoff"),
    ],
)
def test_a_mistake_is_named(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    mapping = {k: v for k, v in {**MAPPING, **change}.items() if v is not WITHOUT}
    with pytest.raises((ValueError, OSError), match=re.escape(message)):
        import_log("csv", write(tmp_path, "csv", ROWS), tmp_path / "log", map=mapping)
    assert [path.name for path in tmp_path.iterdir()] == ["events.csv"]


def test_a_column_that_no_line_of_json_has_is_an_error(tmp_path: Path) -> None:
    file = write(tmp_path, "jsonl", ROWS)
    options: dict[str, Any] = {"user.height": "number"}
    with pytest.raises(ValueError, match="there is no column 'height', which the mapping names"):
        import_log("jsonl", file, tmp_path / "log", map=MAPPING, **options)


def test_a_column_that_some_lines_of_json_have_is_missing_elsewhere(tmp_path: Path) -> None:
    rows = [ROWS[0], ROWS[1] | {"height": 180}, ROWS[2], ROWS[3] | {"height": "tall"}]
    file = write(tmp_path, "jsonl", rows)
    file.write_text(file.read_text() + "not json\n\n")
    options: dict[str, Any] = {"user.height": "number", "max_bad": 0.5}
    report = import_log("jsonl", file, tmp_path / "log", map=MAPPING, **options)
    assert report.skipped == {"not a JSON object": 1}
    profiles = EventLog.read(tmp_path / "log").profiles
    assert profiles is not None
    assert profiles.column("height").to_pylist() == [None, 180.0, None]


def test_settings_go_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mapping.toml"
    path.write_text(
        'shown = "x"\npayoff = "click"\ncandidates = "offered"\n[user]\nage = "number"\n'
    )
    options: dict[str, Any] = {"shown": "item", "candidates.separator": ",", "user.new": "boolean"}
    import_log("csv", write(tmp_path, "csv", ROWS), tmp_path / "log", map=path, **options)
    log = EventLog.read(tmp_path / "log")
    assert log.profiles is not None
    assert log.profiles.column_names == ["age", "new"]
    assert log.shown.tolist() == ["a", "b", "c", "b"]


def test_no_file_is_needed(tmp_path: Path) -> None:
    options: dict[str, Any] = {"shown": "item", "payoff": "click", "candidates": "offered"}
    options["candidates.separator"] = ","
    report = import_log("csv", write(tmp_path, "csv", ROWS), tmp_path / "log", **options)
    assert report.events == 4


def test_a_mapping_that_is_no_toml(tmp_path: Path) -> None:
    file, path = write(tmp_path, "csv", ROWS), tmp_path / "mapping.toml"
    with pytest.raises(FileNotFoundError, match=r"there is no such mapping; .*--suggest"):
        import_log("csv", file, tmp_path / "log", map=path)
    path.write_text("shown: item")
    with pytest.raises(ValueError, match=r"mapping\.toml: not a TOML file: Expected '='"):
        import_log("csv", file, tmp_path / "log", map=path)
