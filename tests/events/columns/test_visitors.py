"""Users who come again, and their raw profiles: with the log wherever it goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from topstory.events import EventLog, inspect
from topstory.events.folder.append import Appender

USERS = [[0.25, 1.0], [0.5, 1.0], [0.75, 1.0]]
PROFILES: dict[str, list[Any]] = {
    "gender": ["f", None, "m"],
    "likes": [["opera", "golf"], [], ["golf"]],
}
ARTICLES = {"topic": [["arts"], ["sport", "money"], []]}


def log(**changes: Any) -> EventLog:
    given: dict[str, Any] = {
        "users": USERS,
        "pools": [["a", "b"], ["b", "c"]],
        "pool": [0, 0, 1, 1, 0],
        "shown": ["a", "b", "c", "b", "a"],
        "payoff": [0, 1, 0, 1, 0],
        "timestamps": [0, 1, 86_400, 86_401, 86_402],
        "visitor": [2, 0, 2, 1, 2],
        "profiles": PROFILES,
        "article_profiles": ARTICLES,
    }
    return EventLog.from_arrays(**(given | changes))


def same(one: EventLog, other: EventLog) -> None:
    assert np.array_equal(np.asarray(one.users), np.asarray(other.users))
    assert one.visitors is not None
    assert other.visitors is not None
    for mine, yours in ((one.visitors, other.visitors),):
        assert np.array_equal(mine.number, yours.number)
        assert np.array_equal(mine.contexts, yours.contexts)
    for found, wanted in (
        (one.profiles, other.profiles),
        (one.article_profiles, other.article_profiles),
    ):
        assert found is not None
        assert wanted is not None
        assert found.to_pydict() == wanted.to_pydict()


def test_an_event_has_the_context_of_its_visitor() -> None:
    assert log().users[:, 0].tolist() == [0.75, 0.25, 0.75, 0.5, 0.75]  # type: ignore[index]  # dense here
    assert log(users=None).users.tolist() == [[1.0]] * 5  # type: ignore[union-attr]  # dense


def test_a_folder_keeps_visitors_and_profiles(tmp_path: Path) -> None:
    log().write(tmp_path / "log")
    same(EventLog.read(tmp_path / "log"), log())
    events = pq.read_table(tmp_path / "log" / "events")
    assert "user" not in events.column_names
    assert events["visitor"].to_pylist() == [2, 0, 2, 1, 2]
    log()[1:3].write(tmp_path / "log")
    same(EventLog.read(tmp_path / "log"), log()[1:3])


def test_a_log_written_bit_by_bit_keeps_them_too(tmp_path: Path) -> None:
    whole = log()
    with Appender(tmp_path) as appender:
        appender.append(whole[:2])
        appender.append(whole[2:])
        appender.finish()
    same(EventLog.read(tmp_path), whole)


def test_batches_of_two_populations_are_refused(tmp_path: Path) -> None:
    with Appender(tmp_path) as appender:
        appender.append(log())
        with pytest.raises(ValueError, match="tables of users differ"):
            appender.append(log())


def test_parts_of_one_log_go_on_sharing_its_users() -> None:
    whole = log()
    again = EventLog.concat([whole[:2], whole[2:]])
    same(again, whole)
    assert again.visitors is not None
    assert whole.visitors is not None
    assert again.visitors.contexts is whole.visitors.contexts


def test_logs_of_two_populations_are_numbered_on() -> None:
    both = EventLog.concat([log(), log(shown=["b", "b", "c", "b", "a"])])
    assert both.visitors is not None
    assert both.visitors.number.tolist() == [2, 0, 2, 1, 2, 5, 3, 5, 4, 5]
    assert both.profiles is not None
    assert both.profiles["likes"].to_pylist() == PROFILES["likes"] * 2
    assert both.article_profiles is not None
    assert both.article_profiles.to_pydict() == ARTICLES
    # A log that does not know its visitors makes the whole not know them.
    assert (
        EventLog.concat([log(), log(users=np.ones((5, 2)), visitor=None, profiles=None)]).visitors
        is None
    )


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table])
def test_profiles_come_from_any_table(table: Any) -> None:
    same(log(profiles=table(PROFILES)), log())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"visitor": [2, 0, 3, 1, 2]}, "row 2: visitor 3; there are 3 users"),
        ({"visitor": [2, 0, -1, 1, 2]}, "row 2: visitor -1"),
        ({"visitor": [0.5] * 5}, "visitor must be whole numbers"),
        ({"visitor": None, "users": np.ones((5, 1))}, "profiles need visitor"),
        ({"users": None, "profiles": None}, "needs the users' contexts"),
        ({"profiles": {"age": [[1], [2], []]}}, "column 'age' is list<item: int64>"),
        ({"profiles": {"age": ["1", "2"]}}, "a row for each of the 3, got 2"),
        ({"profiles": {"user": ["1", "2", "3"]}}, "column 'user' must have a name of its own"),
        ({"profiles": {"x": [["1"], [None], []]}}, "a null in a list"),
        ({"profiles": 7}, "must be a table of Arrow, pandas or polars"),
        ({"article_profiles": {"x": ["1"]}}, "article_profiles must have a row for each of the 3"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        log(**changes)


def test_a_damaged_folder_is_named(tmp_path: Path) -> None:
    log().write(tmp_path)
    users = pq.read_table(tmp_path / "users.parquet")
    pq.write_table(users.slice(0, 2), tmp_path / "users.parquet")
    with pytest.raises(ValueError, match="it has 2 rows, but"):
        EventLog.read(tmp_path)
    pq.write_table(users.drop_columns(["likes"]), tmp_path / "users.parquet")
    with pytest.raises(ValueError, match="there is no column 'likes'"):
        EventLog.read(tmp_path)
    pq.write_table(users, tmp_path / "users.parquet")
    (file,) = (tmp_path / "events").glob("1970-01-01*")
    events = pq.read_table(file)
    column = pa.array([2, 9], pa.int32())
    at = events.schema.get_field_index("visitor")
    pq.write_table(events.set_column(at, events.schema.field(at), column), file)
    with pytest.raises(ValueError, match="row 1: visitor 9; there are 3 users"):
        EventLog.read(tmp_path)


def test_a_visitor_whose_profile_changed_is_one_visitor_in_memory_and_on_disk(
    tmp_path: Path,
) -> None:
    log = EventLog.from_arrays(
        None,
        [["a", "b"]],
        [0] * 5,
        ["a", "b", "a", "b", "a"],
        [1, 0, 0, 1, 0],
        visitor=[0, 1, 2, 0, 3],
        profiles={"device": ["phone", "desk", "desk", "phone"]},
        visitor_ids=["ann", "bob", "ann", None],
    )
    log.write(tmp_path / "log")
    for each in (log, EventLog.read(tmp_path / "log")):
        assert each.visitor_number is not None
        assert each.visitor_number.tolist() == [0, 1, 0, 0, -1]
        assert inspect(each).visitors == 2
        assert inspect(each).unidentified == 1
    twice = EventLog.concat([log, EventLog.read(tmp_path / "log")])
    assert twice.visitor_number is not None
    assert twice.visitor_number.tolist() == [0, 1, 0, 0, -1] * 2
    nobody = EventLog.from_arrays(
        [[1.0]] * 2, [["a"]], [0] * 2, ["a"] * 2, [1, 0], visitor=[0, 1], visitor_ids=[None] * 2
    )
    assert nobody.visitor_number is None


def test_visitor_ids_are_one_per_user() -> None:
    parts: dict[str, Any] = {"pools": [["a"]], "pool": [0], "shown": ["a"], "payoff": [1]}
    parts |= {"users": [[1.0]] * 2, "visitor": [1]}
    with pytest.raises(ValueError, match="visitor_ids must have a row for each of the 2, got 1"):
        EventLog.from_arrays(**parts, visitor_ids=["ann"])
    del parts["visitor"]
    with pytest.raises(ValueError, match="visitor_ids need visitor"):
        EventLog.from_arrays(**parts, visitor_ids=["ann"])
