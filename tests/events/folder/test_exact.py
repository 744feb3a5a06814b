"""Contexts and payoffs to the last bit: kept in the folder, by slices and by concatenation."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from topstory.events import EventLog
from topstory.events.folder.append import Appender

RANDOM = np.random.default_rng(0)
USERS = np.column_stack([RANDOM.random((40, 2)), np.ones(40)])
PAYOFF = RANDOM.normal(size=40)


def made(**changed: Any) -> EventLog:
    values: dict[str, Any] = {
        "users": USERS,
        "pools": [["a", "b"]],
        "pool": np.zeros(40, int),
        "shown": ["a", "b"] * 20,
        "payoff": PAYOFF,
        "exact": True,
    }
    return EventLog.from_arrays(**values | changed)


def same(log: EventLog, first: int = 0) -> bool:
    return all(
        event.user.tobytes() == USERS[first + i].tobytes() and event.payoff == PAYOFF[first + i]
        for i, event in enumerate(log)
    )


def test_exact_values_are_those_that_were_given(tmp_path: Path) -> None:
    log = made()
    assert np.asarray(log.users).dtype == log.payoff.dtype == np.float32
    assert same(log)
    log.write(tmp_path / "log")
    again = EventLog.read(tmp_path / "log")
    assert same(again)
    assert np.array_equal(np.asarray(again.users), np.asarray(log.users))
    assert same(again[7:20], 7)
    assert same(EventLog.concat([again[:10], again[10:]]))
    (tmp_path / "appended").mkdir()
    with Appender(tmp_path / "appended") as appender:
        appender.append(log[:13])
        appender.append(log[13:])
        appender.finish()
    assert same(EventLog.read(tmp_path / "appended"))
    assert not same(made(exact=False))


def test_where_a_log_is_not_exact_its_concatenation_is_not(tmp_path: Path) -> None:
    assert EventLog.concat([made(), made(exact=False)]).exact is None
    with Appender(tmp_path) as appender:
        appender.append(made())
        with pytest.raises(ValueError, match="exact is True in the first"):
            appender.append(made(exact=False))


def test_sparse_contexts_are_exact_anyway() -> None:
    assert made(users=sparse.eye(40, 41, format="csr")).exact is None


@pytest.mark.parametrize("column", ["user_exact", "payoff_exact"])
def test_exact_values_that_are_not_those_of_the_log_are_refused(
    tmp_path: Path, column: str
) -> None:
    for name, log in (("log", made()), ("other", made(users=USERS * 2, payoff=PAYOFF * 2))):
        log.write(tmp_path / name)
    path, other = (next((tmp_path / name / "events").iterdir()) for name in ("log", "other"))
    table, wrong = pq.read_table(path), pq.read_table(other)
    place = table.column_names.index(column)
    pq.write_table(table.set_column(place, table.field(place), wrong.column(place)), path)
    with pytest.raises(ValueError, match=f"row 0: {column} .* is not what"):
        EventLog.read(tmp_path / "log")


def test_only_dense_contexts_can_be_exact(tmp_path: Path) -> None:
    made(users=sparse.eye(40, 41, format="csr")).write(tmp_path / "log")
    path = tmp_path / "log" / "log.json"
    path.write_text(path.read_text().replace('"timed"', '"exact": true,\n  "timed"'))
    with pytest.raises(ValueError, match="only dense contexts of events can be exact"):
        EventLog.read(tmp_path / "log")
