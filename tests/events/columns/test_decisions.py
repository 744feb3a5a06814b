"""The columns that a service records beside its events: kept by everything that carries events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.events.making import columns, uniform_log

from topstory.events import EventLog, inspect
from topstory.events.columns.decisions import COLUMNS
from topstory.events.folder.append import Appender

RECORDED: dict[str, list[Any]] = {
    "decision": [7, 9, 12],
    "request": ["r-1", None, "r-3"],
    "visitor": ["ann", None, "ann"],
    "bucket": ["learning", "uniform", "learning"],
    "bucket_propensity": [1.0, 0.5, None],
    "mixture_propensity": [0.7, 0.5, 0.2],
    "model_version": [6, 6, 10],
    "slot": [0, 0, 0],
}


def log() -> EventLog:
    return EventLog.from_arrays(**columns(decisions=RECORDED))


def recorded(log: EventLog) -> Any:
    assert log.decisions is not None
    return log.decisions.to_pydict()


def test_every_column_survives_the_folder_to_the_bit(tmp_path: Path) -> None:
    assert set(RECORDED) == set(COLUMNS)
    log().write(tmp_path / "log")
    again = EventLog.read(tmp_path / "log")
    assert recorded(again) == RECORDED
    assert json.loads((tmp_path / "log/log.json").read_text())["decisions"] == list(COLUMNS)
    numbers = again.visitor_number
    assert numbers is not None
    assert numbers.tolist() == [0, -1, 0]


def test_slices_masks_and_rows_take_their_own_values() -> None:
    for rows in (slice(1, None), slice(None, None, 2), [2, 0], np.array([True, False, True])):
        picked = np.arange(3)[rows]
        expected = {name: [values[i] for i in picked] for name, values in RECORDED.items()}
        assert recorded(log()[rows]) == expected
    assert recorded(log()[:0]) == {name: [] for name in RECORDED}


def test_logs_one_after_the_other_keep_what_each_of_them_has() -> None:
    plain = EventLog.from_arrays(**columns())
    part = EventLog.from_arrays(**columns(decisions={"bucket": ["deployment", None, "learning"]}))
    joined = EventLog.concat([log(), plain, part])
    found = recorded(joined)
    assert found["bucket"] == [*RECORDED["bucket"], *[None] * 3, "deployment", None, "learning"]
    assert found["visitor"] == ["ann", None, "ann", *[None] * 6]
    numbers = joined.visitor_number
    assert numbers is not None
    assert numbers.tolist() == [0, -1, 0, *[-1] * 6]
    assert EventLog.concat([plain, plain]).decisions is None


def test_batches_are_appended_with_their_columns(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    with Appender(tmp_path / "log") as appender:
        for _ in range(3):
            appender.append(log())
        with pytest.raises(ValueError, match=r"decisions is .* in the first and \(\) in a later"):
            appender.append(EventLog.from_arrays(**columns()))
        appender.finish()
    again = EventLog.read(tmp_path / "log")
    assert recorded(again) == {name: values * 3 for name, values in RECORDED.items()}


def test_a_warehouse_reads_and_joins_them(tmp_path: Path) -> None:
    log().write(tmp_path / "log")
    files = f"'{tmp_path}/log/events/*.parquet'"
    query = f"select bucket, count(*), avg(payoff) from {files} group by bucket order by bucket"
    warehouse = duckdb.connect()
    assert warehouse.execute(query).fetchall() == [("learning", 2, 0.5), ("uniform", 1, 0.0)]
    orders = pa.table({"decision": pa.array([9, 12]), "revenue": [5.0, 7.0]})
    warehouse.register("orders", orders)
    query = f"select bucket, revenue from {files} join orders using (decision) order by revenue"
    assert warehouse.execute(query).fetchall() == [("uniform", 5.0), ("learning", 7.0)]


def test_inspect_says_the_buckets_their_shares_and_how_many_came() -> None:
    found = inspect(log())
    assert [(each.bucket, each.events, each.ctr) for each in found.buckets] == [
        ("learning", 2, 0.5),
        ("uniform", 1, 0.0),
    ]
    assert sum(each.share for each in found.buckets) == pytest.approx(1.0)
    assert (found.visitors, found.unidentified) == (1, 1)
    plain = inspect(uniform_log(10, [["a", "b"]]))
    assert (plain.buckets, plain.visitors, plain.unidentified) == ((), None, 0)


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        ({"buckets": ["a"] * 3}, "there is no column 'buckets'; choose from decision, request"),
        ({"bucket": ["a"] * 2}, "column 'bucket' has 2 values for 3 events"),
        ({"bucket": [1, 2, 3]}, "column 'bucket' must be string: it holds int64"),
        ({"slot": [0, -1, 0]}, "row 1: slot -1 is negative"),
        ({"mixture_propensity": [1, 0.5, 0]}, r"row 2: mixture_propensity 0.0 is outside \(0, 1\]"),
        ({"mixture_propensity": [1, 0.5, float("inf")]}, "row 2: mixture_propensity inf"),
        ({"decision": ["a", "b", "c"]}, "column 'decision' must be int64"),
    ],
)
def test_a_wrong_column_is_refused_with_its_name(decisions: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EventLog.from_arrays(**columns(decisions=decisions))


def test_a_folder_whose_columns_are_wrong_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    log().write(folder)
    contents = json.loads((folder / "log.json").read_text())
    (folder / "log.json").write_text(json.dumps(contents | {"decisions": ["secrets"]}))
    with pytest.raises(ValueError, match="the columns of decisions are secrets; there can be"):
        EventLog.read(folder)
    (folder / "log.json").write_text(json.dumps(contents))
    (file,) = (folder / "events").iterdir()
    table = pq.read_table(file)
    place = table.column_names.index("bucket_propensity")
    bad = table.set_column(place, "bucket_propensity", pa.array([1.0, 2.0, None]))
    pq.write_table(bad, file)
    with pytest.raises(ValueError, match=r"row 1: bucket_propensity 2.0 is outside \(0, 1\]"):
        EventLog.read(folder)


def test_a_log_with_a_table_of_users_has_no_second_visitor() -> None:
    given = columns(users=[[0.2, 1.0], [0.7, 1.0]], visitor=[0, 1, 0])
    with pytest.raises(ValueError, match="the argument visitor= says who came"):
        EventLog.from_arrays(**given, decisions={"visitor": ["a", "b", "a"]})
    numbers = EventLog.from_arrays(**given, decisions={"slot": [0, 1, 2]}).visitor_number
    assert numbers is not None
    assert numbers.tolist() == [0, 1, 0]
