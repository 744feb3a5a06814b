"""The result of a query, imported like a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.events.formats.mapped.test_mapped import MAPPING, ROWS, write

from topstory.events import EventLog
from topstory.events.formats.importing import import_log
from topstory.events.formats.mapped.query import REJECTED


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_the_files_are_the_table_events(format: str, tmp_path: Path) -> None:
    path = tmp_path / "it's here"
    path.mkdir()
    file = write(path, format, ROWS)
    query = "select *, click::int * 2 as worth from events where who is distinct from 'bob'"
    report = import_log(
        format, [file, file], tmp_path / "log", map=MAPPING, query=query, payoff="worth"
    )
    assert (report.events, sum(report.left_out.values())) == (3, 3)  # each file has them once
    assert EventLog.read(tmp_path / "log").payoff.tolist() == [2, 0, 2]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select * from impressions", "Table with name impressions does not exist"),
        ("selec", "the query failed: Parser Error"),
        ("select who from events", "query: there is no column 'item', which the mapping names"),
        ("select * from events where false", "there are no events in it"),
        ("select * from ROWS", "does not exist"),
    ],
)
def test_a_query_that_fails_is_one_sentence(query: str, message: str, tmp_path: Path) -> None:
    file = write(tmp_path, "csv", ROWS)
    with pytest.raises(ValueError, match=message):
        import_log("csv", file, tmp_path / "log", map=MAPPING, query=query)
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_rows_that_cannot_be_read_are_counted(separator: str, tmp_path: Path) -> None:
    names = list(ROWS[0])
    lines = [separator.join(names)]
    lines += [separator.join(row[name].replace(",", "|") for name in names) for row in ROWS]
    lines[2] = lines[2][:9]
    lines = [line.replace("opera;golf", "opera/golf") for line in lines]
    file = tmp_path / "events.csv"
    file.write_text("\n".join(lines) + "\n")
    mapping = MAPPING | {"candidates": "offered"}
    query = "select * from events"
    report = import_log("csv", file, tmp_path / "log", map=mapping, query=query, max_bad=0.5)
    assert (report.events, report.skipped) == (3, {REJECTED: 1})
    assert report.first[REJECTED].line == 3
