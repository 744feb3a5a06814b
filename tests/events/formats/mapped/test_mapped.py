"""Exports with columns of their own, imported by a mapping."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from topstory.events import EventLog
from topstory.events.formats.importing import import_log
from topstory.events.formats.mapped.articles import NOT_LISTED, TWICE
from topstory.events.formats.mapped.parser import (
    LISTED_TWICE,
    NO_CANDIDATES,
    NO_PAYOFF,
    NO_SHOWN,
    NO_TIME,
    NONE_LIVE,
    NOT_A_PAYOFF,
    NOT_A_TIME,
    NOT_LIVE,
)
from topstory.events.formats.mapped.reader import SAME_EVENT
from topstory.events.formats.mapped.suggestion import suggest_mapping
from topstory.events.formats.pipeline.validation import (
    BAD_PAYOFF,
    BAD_PROPENSITY,
    SHOWN_NOT_IN_POOL,
)
from topstory.events.formats.source_files import SORTED

ROWS: list[dict[str, Any]] = [
    {"id": "1", "ts": "2026-03-01 10:00:00", "who": "ann", "geo": "DE", "age": "31", "new": "yes",
     "since": "2020-05-01", "likes": "opera;golf", "item": "a", "offered": "a,b", "click": "1"},
    {"id": "2", "ts": "2026-03-01 10:00:01", "who": "bob", "geo": " US", "age": "", "new": "false",
     "since": "", "likes": "", "item": "b", "offered": "a,b", "click": "0"},
    {"id": "3", "ts": "2026-03-01T10:00:02Z", "who": "ann", "geo": "DE", "age": "31", "new": "yes",
     "since": "2020-05-01", "likes": "opera;golf", "item": "c", "offered": "b,c", "click": "0"},
    {"id": "4", "ts": "1772359203", "who": "NULL", "geo": "N/A", "age": "old", "new": "?",
     "since": "then", "likes": "golf", "item": "b", "offered": "b,c", "click": "1"},
]  # fmt: skip
MAPPING: dict[str, Any] = {
    "timestamp": "ts",
    "shown": "item",
    "payoff": "click",
    "candidates": {"column": "offered", "separator": ","},
    "visitor": "who",
    "event": "id",
    "user": {
        "country": {"column": "geo", "kind": "category"},
        "age": "number",
        "new": "boolean",
        "since": "date",
        "likes": {"kind": "categories", "separator": ";"},
    },
}


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    return path


def write(folder: Path, format: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / f"events.{format}"
    if format == "csv":
        return write_csv(path, rows)
    if format == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_every_column_becomes_what_the_mapping_says(format: str, tmp_path: Path) -> None:
    file = write(tmp_path, format, ROWS)
    report = import_log(format, file, tmp_path / "log", map=MAPPING)
    log = EventLog.read(tmp_path / "log")
    assert (report.events, report.skipped) == (4, {})
    assert log.shown.tolist() == ["a", "b", "c", "b"]
    assert log.payoff.tolist() == [1, 0, 0, 1]
    assert [event.pool for event in log] == [("a", "b"), ("a", "b"), ("b", "c"), ("b", "c")]
    assert log.timestamps is not None
    assert np.diff(log.timestamps).astype(int).tolist() == [1_000_000] * 3
    assert log.visitor_number is not None
    assert log.visitor_number.tolist() == [0, 1, 0, -1]
    assert log.profiles is not None
    assert log.visitors is not None
    assert log.visitors.number.tolist() == [0, 1, 0, 2]  # one profile for ann, who came twice
    first, second, third = log.profiles.to_pylist()
    assert first["since"].isoformat() == "2020-05-01T00:00:00+00:00"
    assert (first["country"], first["age"], first["new"]) == ("DE", 31.0, True)
    assert first["likes"] == ["opera", "golf"]
    assert second == {"country": "US", "age": None, "new": False, "since": None, "likes": None}
    assert third == {"country": None, "age": None, "new": None, "since": None, "likes": ["golf"]}


def test_what_cannot_be_read_in_a_profile_is_missing_and_counted(tmp_path: Path) -> None:
    report = import_log("csv", write(tmp_path, "csv", ROWS), tmp_path / "log", map=MAPPING)
    assert {remark: count for remark, count in report.noted.items() if "field" in remark} == {
        "user field 'age' is not a number here: taken as missing": 1,
        "user field 'new' is not a boolean here: taken as missing": 1,
        "user field 'since' is not a date here: taken as missing": 1,
    }
    assert report.first["user field 'age' is not a number here: taken as missing"].line == 5
    mapping = MAPPING | {"user": {"years": {"column": "age", "kind": "number"}}}
    report = import_log("csv", write(tmp_path, "csv", ROWS), tmp_path / "log", map=mapping)
    assert "column 'age': user field 'years' is not a number here: taken as missing" in report.noted


def test_a_visitor_whose_profile_changes_stays_one_visitor(tmp_path: Path) -> None:
    rows = [*ROWS, ROWS[0] | {"id": "5", "geo": "FR", "ts": "2026-03-01 11:00:00"}]
    import_log("csv", write(tmp_path, "csv", rows), tmp_path / "log", map=MAPPING)
    log = EventLog.read(tmp_path / "log")
    assert log.visitor_number is not None
    assert log.visitors is not None
    assert log.visitor_number.tolist() == [0, 1, 0, -1, 0]
    assert log.visitors.number.tolist() == [0, 1, 0, 2, 3]


def test_repeats_of_an_event_are_dropped_and_counted(tmp_path: Path) -> None:
    rows = [*ROWS, ROWS[1], ROWS[1] | {"id": " 2"}, ROWS[3] | {"id": ""}, ROWS[3] | {"id": ""}]
    file = write(tmp_path, "csv", rows)
    report = import_log("csv", [file, file], tmp_path / "log", map=MAPPING)
    # The second file repeats all but the two events without an id.
    assert report.left_out == {SAME_EVENT: 2 + 6}
    assert report.events == 4 + 2 + 2
    assert report.first[SAME_EVENT].line == 6


def test_a_bad_row_does_not_make_the_good_one_with_its_id_a_repeat(tmp_path: Path) -> None:
    rows = [ROWS[0] | {"ts": "soon"}, *ROWS]
    report = import_log("csv", write(tmp_path, "csv", rows), tmp_path / "l", map=MAPPING, max_bad=1)
    assert (report.events, report.left_out) == (4, {})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ts": ""}, NO_TIME),
        ({"ts": "soon"}, NOT_A_TIME),
        ({"ts": "0000-01-01"}, NOT_A_TIME),
        ({"item": "NULL"}, NO_SHOWN),
        ({"item": "z"}, SHOWN_NOT_IN_POOL),
        ({"offered": ""}, NO_CANDIDATES),
        ({"offered": ",,"}, NO_CANDIDATES),
        ({"click": "maybe"}, NOT_A_PAYOFF),
        ({"click": "inf"}, NOT_A_PAYOFF),
        ({"click": "1e300"}, BAD_PAYOFF),
        ({"click": ""}, NO_PAYOFF),
        ({"p": "2"}, BAD_PROPENSITY),
        ({"p": "often"}, BAD_PROPENSITY),
    ],
)
@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_what_is_no_event_is_skipped_with_its_reason_column_and_place(
    format: str, change: dict[str, str], reason: str, tmp_path: Path
) -> None:
    rows = [row | {"p": "0.5"} for row in ROWS]
    rows[2] |= change
    file = write(tmp_path, format, rows)
    mapping = MAPPING | {"propensity": "p"}
    report = import_log(format, file, tmp_path / "log", map=mapping, max_bad=0.5)
    (column,) = change
    reason = f"column {column!r}: {reason}"
    assert (report.events, report.skipped) == (3, {reason: 1})
    assert report.first[reason].line == {"csv": 4, "jsonl": 3, "parquet": 3}[format]
    ids = EventLog.read(tmp_path / "log").article_ids
    assert set(ids) <= {"a", "b", "c"}  # a skipped row leaves nothing behind


def test_an_article_listed_twice_counts_once(tmp_path: Path) -> None:
    rows = [*ROWS, ROWS[0] | {"id": "9", "offered": "a,b,a, ,b"}]
    report = import_log("csv", write(tmp_path, "csv", rows), tmp_path / "log", map=MAPPING)
    assert report.noted[LISTED_TWICE] == 1
    # It is the oldest, and so the second: the log is in time order.
    assert EventLog.read(tmp_path / "log")[1].pool == ("a", "b")


@pytest.mark.parametrize("sort", [True, False])
def test_events_out_of_order_are_sorted_unless_told_not_to(sort: bool, tmp_path: Path) -> None:
    rows = [ROWS[2], ROWS[0], ROWS[3], ROWS[1]]
    file = write(tmp_path, "csv", rows)
    report = import_log("csv", file, tmp_path / "log", map=MAPPING, sort=sort)
    log = EventLog.read(tmp_path / "log")
    shown = ["a", "b", "c", "b"] if sort else ["c", "a", "b", "b"]
    assert log.shown.tolist() == shown
    assert report.noted.get(SORTED, 0) == (2 if sort else 0)
    assert log.profiles is not None
    assert log.visitors is not None
    ages = log.profiles.take(log.visitors.number).column("age").to_pylist()
    assert ages == ([31.0, None, 31.0, None] if sort else [31.0, 31.0, None, None])
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("payoff", "values"),
    [
        ("click", [1, 0, 0, 1]),
        ("dwell > 30", [1, 0, 0, 0]),
        ("click + 3 * bought", [4, 0, 0, 1]),
        ('kind == "sale"', [1, 0, 0, 0]),
        ('(kind == "sale" or kind == "lead") and dwell >= 5', [1, 0, 0, 1]),
        ("-`click` * .5", [-0.5, 0, 0, -0.5]),
    ],
)
def test_a_payoff_is_a_column_or_a_small_expression(
    payoff: str, values: list[float], tmp_path: Path
) -> None:
    extra = [
        {"dwell": "60", "bought": "true", "kind": "sale"},
        {"dwell": "0", "bought": "false", "kind": "lead"},
        {"dwell": "", "bought": "", "kind": ""},
        {"dwell": "5", "bought": "no", "kind": "lead"},
    ]
    rows = [row | more for row, more in zip(ROWS, extra, strict=True)]
    file = write(tmp_path, "csv", rows)
    out = tmp_path / "log"
    import_log("csv", file, out, map=MAPPING, payoff=payoff, missing_payoff=0)
    assert EventLog.read(out).payoff.tolist() == values
    if payoff != "click" and "`" not in payoff:  # without missing_payoff, the third has none
        report = import_log("csv", file, out, map=MAPPING, payoff=payoff, max_bad=1)
        (reason,) = report.skipped
        assert reason in {f"column {name!r}: {NO_PAYOFF}" for name in ("dwell", "bought", "kind")}
        assert reason.split("'")[1] in payoff


@pytest.mark.parametrize(
    "text",
    ["", "click +", "click click", "3 >", "(click", "click)", "__import__('os')", "a..b", "a[0]",
     "click and", 'kind > "a"', '"a" == kind', "1 < 2 < 3", "a % 2", "f(x)", "x" * 3 + "=1"],
)  # fmt: skip
def test_other_expressions_are_refused_with_the_forms_that_are_not(text: str) -> None:
    from topstory.events.formats.mapped.expression import parse

    with pytest.raises(ValueError, match="a payoff is a column, or a few of them"):
        parse(text)


def test_an_expression_cannot_nest_without_end() -> None:
    from topstory.events.formats.mapped.expression import parse

    with pytest.raises(ValueError, match="cannot be read"):
        parse("(" * 100_000 + "x" + ")" * 100_000)


ARTICLES = """\
key,section,tags,words,live_from,live_until,headline
a,news,x;y,100,2026-03-01 09:00,2026-03-01 10:00:01,"One, two
and three"
b,,z,many,2026-03-01 09:30,,Plain
old,news,,,2026-02-01,2026-02-02,Gone
c,sports,,7,2026-03-01 10:00:02,,Last
b,arts,z,8,2026-03-01 09:30,,Corrected
"""
WITH_ARTICLES = MAPPING | {
    "articles": {"file": "articles.csv", "id": "key"},
    "article": {
        "section": "category",
        "tags": {"kind": "categories", "separator": ";"},
        "length": {"column": "words", "kind": "number"},
        "headline": "text",
        "live_from": "date",
    },
}


def dated(tmp_path: Path, mapping: dict[str, Any]) -> Path:
    (tmp_path / "articles.csv").write_text(ARTICLES)
    lines = []

    def table(name: str, values: dict[str, Any]) -> None:
        lines.append(f"[{name}]" if name else "")
        tables = {k: v for k, v in values.items() if isinstance(v, dict)}
        lines.extend(f"{k} = {json.dumps(v)}" for k, v in values.items() if k not in tables)
        for key, value in tables.items():
            table(f"{name}.{key}".strip("."), value)

    table("", mapping)
    path = tmp_path / "mapping.toml"
    path.write_text("\n".join(lines))
    return path


def test_articles_get_the_profiles_of_their_file(tmp_path: Path) -> None:
    mapping = dated(tmp_path, WITH_ARTICLES)
    rows = [*ROWS, ROWS[3] | {"id": "7", "offered": "b,unlisted"}]
    report = import_log("csv", write(tmp_path, "csv", rows), tmp_path / "log", map=mapping)
    log = EventLog.read(tmp_path / "log")
    assert log.article_profiles is not None
    profiles = dict(zip(log.article_ids, log.article_profiles.to_pylist(), strict=True))
    assert set(profiles) == {"a", "b", "c", "old", "unlisted"}
    assert profiles["a"]["headline"] == "One, two\nand three"
    assert profiles["a"]["tags"] == ["x", "y"]
    assert profiles["b"]["section"] == "arts"  # the last row
    assert profiles["b"]["length"] == 8
    assert profiles["c"]["live_from"].isoformat() == "2026-03-01T10:00:02+00:00"
    assert set(profiles["unlisted"].values()) == {None}
    assert (report.noted[TWICE], report.noted[NOT_LISTED]) == (1, 1)


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_articles_come_in_other_formats_too(suffix: str, tmp_path: Path) -> None:
    dated(tmp_path, WITH_ARTICLES)
    from topstory.events.formats.faults import Faults
    from topstory.events.formats.mapped.articles import read_table

    table = read_table(tmp_path / "articles.csv", Faults())
    other = tmp_path / f"articles.{suffix}"
    if suffix == "parquet":
        pq.write_table(table, other)
    else:
        other.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    logs = []
    for name in ("articles.csv", other.name):
        mapping = WITH_ARTICLES | {"articles": {"file": str(tmp_path / name), "id": "key"}}
        import_log("csv", write(tmp_path, "csv", ROWS), tmp_path / "log", map=mapping)
        logs.append(EventLog.read(tmp_path / "log").article_profiles)
    assert logs[0] is not None
    assert logs[1] is not None
    assert logs[0].to_pylist() == logs[1].to_pylist()


def test_candidates_can_be_the_articles_that_were_live(tmp_path: Path) -> None:
    given = {k: v for k, v in WITH_ARTICLES.items() if k != "candidates"}
    given["articles"] = {
        "file": "articles.csv",
        "id": "key",
        "from": "live_from",
        "until": "live_until",
    }
    rows = [
        *ROWS,
        ROWS[0] | {"id": "5", "ts": "2026-03-01 10:00:01"},  # a was withdrawn at that second
        ROWS[0] | {"id": "6", "ts": "2020-03-01 10:00:01"},
    ]
    file = write(tmp_path, "csv", rows)
    report = import_log("csv", file, tmp_path / "log", map=dated(tmp_path, given), max_bad=0.5)
    assert report.skipped == {f"column 'item': {NOT_LIVE}": 1, f"column 'ts': {NONE_LIVE}": 1}
    log = EventLog.read(tmp_path / "log")
    assert [event.pool for event in log] == [("a", "b"), ("b",), ("b", "c"), ("b", "c")]


def test_an_article_without_an_end_can_be_live_for_some_hours(tmp_path: Path) -> None:
    given = {k: v for k, v in WITH_ARTICLES.items() if k != "candidates"}
    given["articles"] = {
        "file": "articles.csv", "id": "key", "from": "live_from", "live_hours": 0.5
    }  # fmt: skip
    file = write(tmp_path, "csv", ROWS[2:])
    report = import_log("csv", file, tmp_path / "log", map=dated(tmp_path, given), max_bad=0.5)
    assert report.skipped == {f"column 'item': {NOT_LIVE}": 1}  # b is gone since 10:00
    assert EventLog.read(tmp_path / "log")[0].pool == ("c",)


@pytest.mark.parametrize(
    ("stamp", "format"),
    [
        ("1772359200", "auto"),
        ("1772359200.0", "auto"),
        ("1772359200000", "auto"),
        ("1772359200000000", "auto"),
        ("1772359200000000000", "auto"),
        ("1772359200000", "ms"),
        ("2026-03-01T11:00:00+01:00", "auto"),
        ("2026-03-01 10:00", "iso"),
        ("01/03/2026 10:00", "%d/%m/%Y %H:%M"),
        ("Mar 1 2026 10AM", "%b %d %Y %I%p"),
        ("2026-03-01 11:00 +0100", "%Y-%m-%d %H:%M %z"),
    ],
)
def test_times_come_in_many_forms(stamp: str, format: str, tmp_path: Path) -> None:
    rows = [row | {"ts": stamp} for row in ROWS]
    options: dict[str, Any] = {"map": MAPPING, "timestamp": {"column": "ts", "format": format}}
    import_log("csv", write(tmp_path, "csv", rows), tmp_path / "log", **options)
    times = EventLog.read(tmp_path / "log").timestamps
    assert times is not None
    assert str(times[0]) == "2026-03-01T10:00:00.000000"


def test_lists_may_be_written_as_json_or_as_python_does(tmp_path: Path) -> None:
    rows = [
        ROWS[0] | {"offered": '["a", "b"]'},
        ROWS[1] | {"offered": "['a', 'b']"},
        ROWS[2] | {"offered": '["b","c"]'},
    ]
    import_log("csv", write(tmp_path, "csv", rows), tmp_path / "log", map=MAPPING)
    pools = [event.pool for event in EventLog.read(tmp_path / "log")]
    assert pools == [("a", "b"), ("a", "b"), ("b", "c")]


def test_typed_columns_of_parquet_are_taken_as_they_are(tmp_path: Path) -> None:
    table = pa.table(
        {
            "ts": pa.array([1, 2], pa.timestamp("ms")),
            "item": pa.array([7.0, 8.0]),  # an integer to which pandas gave a point
            "offered": pa.array([[7, 8], [8]], pa.list_(pa.int64())),
            "click": pa.array([True, False]),
            "age": pa.array([31, None], pa.int16()),
            "new": pa.array([None, False]),
        }
    )
    pq.write_table(table, tmp_path / "events.parquet")
    mapping = {
        "timestamp": "ts", "shown": "item", "payoff": "click", "candidates": "offered",
        "user": {"age": "number", "new": "boolean"},
    }  # fmt: skip
    import_log("parquet", tmp_path / "events.parquet", tmp_path / "log", map=mapping)
    log = EventLog.read(tmp_path / "log")
    assert log.shown.tolist() == ["7", "8"]
    assert log.profiles is not None
    assert log.profiles.to_pylist() == [{"age": 31.0, "new": None}, {"age": None, "new": False}]
    assert log.visitor_number is None  # nobody said who came


def test_recorded_propensities_are_kept_and_blank_ones_are_uniform(tmp_path: Path) -> None:
    rows = [row | {"p": p} for row, p in zip(ROWS, ["0.9", "", "0.2", "2"], strict=True)]
    options: dict[str, Any] = {"map": MAPPING, "propensity": "p", "max_bad": 0.5}
    report = import_log("csv", write(tmp_path, "csv", rows), tmp_path / "log", **options)
    assert report.events == 3
    log = EventLog.read(tmp_path / "log")
    np.testing.assert_allclose(log.propensity, [0.9, 0.5, 0.2], rtol=1e-6)
    assert log.propensities_recorded == 2


def test_a_mapping_without_users_gives_the_constant_alone(tmp_path: Path) -> None:
    mapping = {key: MAPPING[key] for key in ("shown", "payoff", "candidates")}
    import_log("csv", write(tmp_path, "csv", ROWS), tmp_path / "log", map=mapping)
    log = EventLog.read(tmp_path / "log")
    assert (log.visitors, log.times, log.users.shape) == (None, None, (4, 1))


def test_many_blocks_share_their_users_and_articles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the file is cut, the log is the same."""
    rows = [row | {"id": str(i), "ts": str(1772359200 + i)} for i, row in enumerate(ROWS * 60)]
    file = write(tmp_path, "csv", rows)
    import_log("csv", file, tmp_path / "whole", map=MAPPING)
    monkeypatch.setattr("topstory.events.formats.pipeline.lines.BLOCK_BYTES", 700)
    monkeypatch.setattr("topstory.events.formats.pipeline.sources.PIECE_BYTES", 500, raising=False)
    import_log("csv", file, tmp_path / "cut", map=MAPPING)
    whole, cut = (EventLog.read(tmp_path / name) for name in ("whole", "cut"))
    assert whole.profiles is not None
    assert cut.profiles is not None
    assert whole.profiles.to_pylist() == cut.profiles.to_pylist()
    assert whole.visitors is not None
    assert cut.visitors is not None
    assert whole.visitors.number.tolist() == cut.visitors.number.tolist()
    assert len(whole.profiles) == 3
    for a, b in zip(whole, cut, strict=True):
        assert (a.shown, a.pool, a.payoff, a.timestamp) == (b.shown, b.pool, b.payoff, b.timestamp)


SHOP = """\ufeffsku;zeit;kunde;stadt;alter;angebot;umsatz
104;2026-01-10T01:00:00+01:00;7;東京;40,5;100,104;1.234,50
100;2026-01-10T01:00:40+01:00;8;"Rome; Italy";;100,104;0,00
100;2026-01-10T01:01:00+01:00;8;Köln;31;100,104;
"""
ITEMS = '\ufeffsku;price;title\n100;"12,5";"red; ""warm"" hats 🎩"\n104;1.200,00;Schuhe\n'


def test_semicolons_decimal_commas_and_zones_are_read_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text(SHOP, "utf-8")
    (tmp_path / "items.csv").write_text(ITEMS, "utf-8")
    mapping = {
        "timestamp": "zeit",
        "shown": "sku",
        "payoff": "umsatz",
        "missing_payoff": 0,
        "candidates": {"column": "angebot", "separator": ","},
        "visitor": "kunde",
        "decimal": ",",
        "user": {"stadt": "category", "alter": "number"},
        "articles": {"file": str(tmp_path / "items.csv"), "id": "sku"},
        "article": {"price": "number", "title": "text"},
    }
    report = import_log("csv", tmp_path / "shop.csv", tmp_path / "log", map=mapping)
    log = EventLog.read(tmp_path / "log")
    assert (report.skipped, report.noted) == ({}, {})
    assert log.payoff.tolist() == [1234.5, 0, 0]
    assert log.timestamps is not None
    assert str(log.timestamps[0]) == "2026-01-10T00:00:00.000000"
    assert log.profiles is not None
    assert log.profiles.column("stadt").to_pylist() == ["東京", "Rome; Italy", "Köln"]
    assert log.profiles.column("alter").to_pylist() == [40.5, None, 31]
    assert log.article_profiles is not None
    assert log.article_profiles.to_pylist() == [
        {"price": 12.5, "title": 'red; "warm" hats 🎩'},
        {"price": 1200.0, "title": "Schuhe"},
    ]
    with pytest.raises(ValueError, match="decimal"):
        import_log("csv", tmp_path / "shop.csv", tmp_path / "log", map=mapping | {"decimal": "'"})


@pytest.mark.parametrize("broken", [False, True])
def test_values_within_objects_are_columns(broken: bool, tmp_path: Path) -> None:
    """Arrow reads the file, or, where a line is broken, Python does: the log is the same."""
    rows = [
        {"user": {"id": 7, "at": {"city": "Rome"}}, "item": 1, "offered": [1, 2], "paid": 1},
        {"user": {"id": 8, "at": None}, "item": 2, "offered": [1, 2], "paid": 0},
        {"user": None, "item": 2, "offered": [1, 2], "paid": 0},
    ]
    file = tmp_path / "events.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"user"\n' * broken)
    mapping = {
        "shown": "item",
        "payoff": "paid",
        "candidates": "offered",
        "visitor": "user.id",
        "user": {"city": {"column": "user.at.city", "kind": "category"}},
    }
    report = import_log("jsonl", file, tmp_path / "log", map=mapping, max_bad=0.5)
    log = EventLog.read(tmp_path / "log")
    assert len(log) == 3
    assert sum(report.skipped.values()) == broken
    assert log.profiles is not None
    assert log.profiles.column("city").to_pylist() == ["Rome", None, None]
    suggested = suggest_mapping("jsonl", file)
    assert 'visitor = "user.id"' in suggested
    assert '"user.at.city" = "category"' in suggested


def test_text_that_is_not_utf8_is_read_by_its_encoding_and_never_lost_in_silence(
    tmp_path: Path,
) -> None:
    rows = [row | {"who": "Zoë", "geo": "España"} for row in ROWS]
    file = write_csv(tmp_path / "events.csv", rows)
    file.write_bytes(file.read_text("utf-8").encode("cp1252"))
    report = import_log("csv", file, tmp_path / "lost", map=MAPPING)
    assert [remark for remark in report.noted if "UTF-8" in remark] == [
        "column 'geo': user field 'country' is not in UTF-8 (set encoding, such as "
        '"cp1252") here: taken as missing',
        "column 'who': the visitor is not in UTF-8 here, so it is unknown: set the file's encoding",
    ]
    report = import_log("csv", file, tmp_path / "log", map=MAPPING, encoding="cp1252")
    assert not [remark for remark in report.noted if "UTF-8" in remark]
    log = EventLog.read(tmp_path / "log")
    assert log.profiles is not None
    assert set(log.profiles.column("country").to_pylist()) == {"España"}
    assert log.visitors is not None
    assert log.visitors.ids is not None
    assert set(log.visitors.ids.to_pylist()) == {"Zoë"}


def test_an_encoding_is_one_that_can_be_read_line_by_line(tmp_path: Path) -> None:
    file = write(tmp_path, "csv", ROWS)
    for encoding, says in (
        ("latin-9000", "encoding: no encoding is called 'latin-9000'; usual ones are"),
        ("utf-16", "encoding: must be one in which a line ends with one byte"),
    ):
        with pytest.raises(ValueError, match=says):
            import_log("csv", file, tmp_path / "log", map=MAPPING, encoding=encoding)
    lines = write(tmp_path, "jsonl", ROWS)
    with pytest.raises(ValueError, match="encoding is for CSV files without a query, got 'cp1252'"):
        import_log("jsonl", lines, tmp_path / "log", map=MAPPING, encoding="cp1252")
    file.write_bytes("größe,b\n1,2\n".encode("cp1252"))
    with pytest.raises(
        ValueError, match=r"events.csv:1: the names of its columns are not in UTF-8"
    ):
        import_log("csv", file, tmp_path / "log", map=MAPPING)
    assert not (tmp_path / "log").exists()
