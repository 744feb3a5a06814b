"""A suggested mapping: complete enough to import with, and open about its guesses."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from examples.news_site.export import write_export
from tests.events.formats.mapped.test_mapped import ROWS, write

from topstory.events.formats.importing import import_log
from topstory.events.formats.mapped.suggestion import suggest_mapping


def test_the_suggestion_for_the_example_is_its_mapping(tmp_path: Path) -> None:
    """All but what the columns cannot tell: whether candidates are derived."""
    impressions, articles = write_export(tmp_path, 1_000)
    text = suggest_mapping("csv", impressions, articles)
    found = tomllib.loads(text)
    written = tomllib.loads(Path("examples/news_site/mapping.toml").read_text())
    for each in (written["articles"], found["articles"]):
        each.pop("from", None), each.pop("until", None), each.pop("file")
    del found["article"]["withdrawn_at"]
    assert found == written
    assert f"topstory import csv {impressions} logs/ --map" in text  # what to run, as it is
    assert "# dwell_seconds" in text  # known only after the fact
    (tmp_path / "m.toml").write_text(text)
    report = import_log("csv", impressions, tmp_path / "log", map=tmp_path / "m.toml", max_bad=0.1)
    assert report.events > 900


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_every_column_is_told_by_its_name_or_its_values(format: str, tmp_path: Path) -> None:
    file = write(tmp_path, format, ROWS)
    found = tomllib.loads(suggest_mapping(format, file))
    assert found["timestamp"] == "ts"
    assert found["shown"] == "item"
    assert found["payoff"] == "click"
    assert found["candidates"] == {"column": "offered", "separator": ","}
    assert found["user"]["likes"] == {"kind": "categories", "separator": ";"}
    assert found["user"]["geo"] == "category"


def test_a_column_with_an_odd_name_is_quoted(tmp_path: Path) -> None:
    rows = [row | {'a "b" \\ c': "x"} for row in ROWS]
    found = tomllib.loads(suggest_mapping("csv", write(tmp_path, "csv", rows)))
    assert found["user"]['a "b" \\ c'] == "category"


def test_a_file_without_rows_has_no_mapping(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match="there are no rows in it to make a mapping from"):
        suggest_mapping("csv", tmp_path / "events.csv")
    with pytest.raises(ValueError, match="a mapping is for csv, jsonl, parquet, not for r6a"):
        suggest_mapping("r6a", tmp_path / "events.csv")


def test_decimal_commas_and_ids_are_told(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    rows = [f"{i};{i % 7}.00{i % 10},5{i % 9};{i % 2}" for i in range(300)]
    file.write_text("\n".join(["id;price;clicked", *rows]) + "\n")
    text = suggest_mapping("csv", file)
    found = tomllib.loads(text)
    assert found["decimal"] == ","
    assert found["user"] == {"price": "number"}
    assert '# id = "number"  # 300 different values in the first rows: an id?' in text
