"""Typed profiles: categories, lists of them, numbers, booleans, dates and text."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import topstory as ts
from topstory.events.columns.profiles import TYPES, as_profiles, profile_kinds
from topstory.events.folder.append import Appender
from topstory.studies.logs.summaries import fingerprint

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MIXED: dict[str, list[Any]] = {
    "country": ["nl", None, "de"],
    "likes": [["opera", "golf"], None, []],
    "age": [31.5, None, -2.0],
    "subscriber": [True, None, False],
    "since": [NOON, None, datetime(1969, 1, 1, tzinfo=UTC)],
    "note": ["Gale in the north", None, ""],
}
KINDS = {
    "country": "category",
    "likes": "categories",
    "age": "number",
    "subscriber": "boolean",
    "since": "date",
    "note": "text",
}


def log(profiles: Any = None, **changes: Any) -> ts.EventLog:
    given: dict[str, Any] = {
        "users": None,
        "pools": [["a", "b", "c"]],
        "pool": [0, 0, 0, 0],
        "shown": ["a", "b", "c", "b"],
        "payoff": [0, 1, 0, 1],
        "visitor": [2, 0, 1, 2],
        "profiles": MIXED if profiles is None else profiles,
        "article_profiles": MIXED,
        "text": ["note"],
    }
    return ts.EventLog.from_arrays(**(given | changes))


def values(log: ts.EventLog) -> tuple[Any, Any]:
    assert log.profiles is not None
    assert log.article_profiles is not None
    return log.profiles.to_pydict(), log.article_profiles.to_pydict()


def kinds(log: ts.EventLog) -> tuple[Any, Any]:
    assert log.profiles is not None
    assert log.article_profiles is not None
    return profile_kinds(log.profiles), profile_kinds(log.article_profiles)


def test_each_kind_has_its_type_and_what_is_missing_stays_missing() -> None:
    table = as_profiles("profiles", MIXED, text=["note"])
    assert profile_kinds(table) == KINDS
    assert [field.type for field in table.schema] == [TYPES[kind] for kind in TYPES]  # in order
    assert table.to_pydict() == MIXED
    assert [column.null_count for column in table.columns] == [1] * 6


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_any_table_will_do(made: Any) -> None:
    table = as_profiles("profiles", made(MIXED), text=["note"])
    assert profile_kinds(table) == KINDS
    assert table.to_pydict() == MIXED


def test_a_list_of_dicts_may_lack_fields() -> None:
    rows = [{name: MIXED[name][0] for name in MIXED}, {"age": 4}]
    table = as_profiles("profiles", rows, text=["note"])
    assert table["age"].to_pylist() == [31.5, 4.0]
    assert table["subscriber"].to_pylist() == [True, None]


def test_text_stays_text_when_a_table_is_given_again() -> None:
    table = as_profiles("profiles", MIXED, text=["note"])
    for again in (table, table.slice(1), pa.concat_tables([table, table]), table.select(["note"])):
        assert profile_kinds(as_profiles("profiles", again))["note"] == "text"
    assert as_profiles("profiles", table).equals(table)


def test_kinds_are_enforced_and_given_to_columns_without_values() -> None:
    nothing = {name: [None] for name in KINDS}
    assert profile_kinds(as_profiles("profiles", nothing, kinds=KINDS)) == KINDS
    with pytest.raises(ValueError, match="column 'age' must hold number, but it is string"):
        as_profiles("profiles", {"age": ["31"]}, kinds={"age": "number"})
    with pytest.raises(ValueError, match="no kind is called 'float'"):
        as_profiles("profiles", {"age": [31]}, kinds={"age": "float"})


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        ([1, None, 3], [1.0, None, 3.0]),
        (np.array([1.0, np.nan, -0.5]), [1.0, None, -0.5]),
        (pa.array([1.0, float("nan"), None]), [1.0, None, None]),
        (pa.array([Decimal("1.25"), None]), [1.25, None]),
        (pa.array([3, None], pa.uint8()), [3.0, None]),
    ],
)
def test_numbers_are_float64_and_nan_is_missing(column: Any, wanted: list[Any]) -> None:
    made = as_profiles("profiles", {"x": column})["x"]
    assert made.type == pa.float64()
    assert made.to_pylist() == wanted


@pytest.mark.parametrize(
    "column",
    [
        [date(2026, 3, 1)],
        pa.array([datetime(2026, 3, 1)], pa.timestamp("ns")),
        pa.array([datetime(2026, 3, 1)], pa.timestamp("s")),
        pa.array([datetime(2026, 3, 1)]).cast(pa.timestamp("us", "UTC")),
        pa.array(["2026-03-01T01:00:00+01:00"]).cast(pa.timestamp("us", "Europe/Amsterdam")),
        np.array(["2026-03-01"], "M8[D]"),
    ],
)
def test_dates_are_points_in_time(column: Any) -> None:
    made = as_profiles("profiles", {"x": column})["x"]
    assert made.type == pa.timestamp("us", "UTC")
    assert made.to_pylist() == [datetime(2026, 3, 1, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, float("inf")], "column 'x', row 1: inf; a number must be finite, or missing"),
        ([2**60 + 1], "integers beyond 2\\^53.*give them as strings"),
        ([[1, 2]], "column 'x' is list<item: int64>; a profile holds categories"),
        ([{"a": 1}], "column 'x' is struct<a: int64>; a profile holds"),
        (pa.array([300_000_000_000], pa.timestamp("s")), "a date outside the years 1 to 9999"),
        (pa.array([2**62], pa.timestamp("s")), "a date outside the years 1 to 9999"),
    ],
)
def test_what_no_field_can_hold_is_refused_by_name(column: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_profiles("profiles", {"x": column})


def test_text_must_name_a_field() -> None:
    with pytest.raises(ValueError, match="text: there is no field 'title' in profiles"):
        log(text=["title"])
    with pytest.raises(ValueError, match="text must be a list of fields, got the string 'note'"):
        log(text="note")


def test_a_folder_keeps_every_kind(tmp_path: Path) -> None:
    log().write(tmp_path)
    again = ts.EventLog.read(tmp_path)
    assert values(again) == values(log()) == (MIXED, MIXED)
    assert kinds(again) == (KINDS, KINDS)
    contents = json.loads((tmp_path / "log.json").read_text())
    assert contents["user_profile_kinds"] == contents["article_profile_kinds"] == KINDS
    again[1:3].write(tmp_path)
    assert kinds(ts.EventLog.read(tmp_path)) == (KINDS, KINDS)
    assert fingerprint(again) == fingerprint(log())


def test_every_kind_counts_in_the_fingerprint() -> None:
    before = fingerprint(log())
    for name in MIXED:
        changed = MIXED | {name: [*MIXED[name][1:], MIXED[name][0]]}
        assert fingerprint(log(changed)) != before


def test_folders_without_kinds_are_read_as_before(tmp_path: Path) -> None:
    """Earlier releases wrote no kinds, and other tools write plain strings: categories."""
    log({"country": ["nl", None, "de"], "likes": MIXED["likes"]}, text=()).write(tmp_path)
    contents = json.loads((tmp_path / "log.json").read_text())
    del contents["user_profile_kinds"], contents["article_profile_kinds"]
    (tmp_path / "log.json").write_text(json.dumps(contents))
    users = pq.read_table(tmp_path / "users.parquet")
    at = users.schema.get_field_index("country")
    plain = users.set_column(at, "country", users["country"].cast(pa.string()))
    pq.write_table(plain.replace_schema_metadata(None), tmp_path / "users.parquet")
    assert kinds(ts.EventLog.read(tmp_path))[0] == {"country": "category", "likes": "categories"}


def test_kinds_that_contradict_the_files_are_refused(tmp_path: Path) -> None:
    log().write(tmp_path)
    contents = json.loads((tmp_path / "log.json").read_text())
    damaged = contents | {"user_profile_kinds": KINDS | {"age": "category"}}
    (tmp_path / "log.json").write_text(json.dumps(damaged))
    with pytest.raises(ValueError, match="column 'age' must hold category, but it is double"):
        ts.EventLog.read(tmp_path)
    damaged = contents | {"user_profile_kinds": {"age": "number"}}
    (tmp_path / "log.json").write_text(json.dumps(damaged))
    with pytest.raises(ValueError, match="a profile's fields differ from those with a kind"):
        ts.EventLog.read(tmp_path)


def test_logs_are_joined_and_appended_with_every_kind(tmp_path: Path) -> None:
    both = ts.EventLog.concat([log(), log()])
    assert values(both) == ({name: column * 2 for name, column in MIXED.items()}, MIXED)
    assert kinds(both) == (KINDS, KINDS)
    whole = log()
    with Appender(tmp_path) as appender:
        appender.append(whole[:2])
        appender.append(whole[2:])
        appender.finish()
    again = ts.EventLog.read(tmp_path)
    assert values(again) == (MIXED, MIXED)
    assert kinds(again) == (KINDS, KINDS)


def test_a_profile_may_have_a_field_called_timestamp(tmp_path: Path) -> None:
    log({"timestamp": ["early", "late", None], "visitor": ["new", None, "new"]}, text=()).write(
        tmp_path
    )
    assert values(ts.EventLog.read(tmp_path))[0]["timestamp"] == ["early", "late", None]
