"""Parts of a log."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.events.making import MAY_FIRST, columns, logs, same, uniform_log

from topstory.events import Event, EventLog, SparseContexts

HOUR = 3600


def days(count: int) -> EventLog:
    return uniform_log(
        24 * count, [["a", "b"], ["b", "c"]], timestamps=MAY_FIRST + np.arange(24 * count) * HOUR
    )


@given(logs(), st.data())
def test_a_slice_holds_the_same_events_as_a_list_would(log: EventLog, data: st.DataObject) -> None:
    rows = data.draw(st.slices(len(log)))
    events, part = list(log), log[rows]
    assert len(part) == len(events[rows])
    for event, expected in zip(part, events[rows], strict=True):
        assert event.user.tobytes() == expected.user.tobytes()
        assert event.pool == expected.pool
        assert (event.shown, event.payoff) == (expected.shown, expected.payoff)
        assert (event.timestamp, event.propensity) == (expected.timestamp, expected.propensity)


@given(logs(), st.data())
def test_a_mask_and_its_row_numbers_pick_the_same(log: EventLog, data: st.DataObject) -> None:
    mask = data.draw(st.lists(st.booleans(), min_size=len(log), max_size=len(log)))
    rows = [row for row, wanted in enumerate(mask) if wanted]
    assert same(log[np.array(mask, bool)], log[np.array(rows, int)])
    assert same(log[np.array(rows, int) - len(log)], log[np.array(rows, int)])


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_in_one_piece_are_views_and_share_the_tables(sparse: bool) -> None:
    log = days(2)
    if sparse:
        indptr = np.arange(len(log) + 1)
        users = SparseContexts(indptr, np.zeros(len(log), np.int32), 1)
        log = EventLog.from_arrays(users, log.pools, log.pool, log.shown, log.payoff)
    part = log[10:20]
    assert part.pool_table is log.pool_table
    assert part.article_table is log.article_table
    whole, mine = log.users, part.users
    if isinstance(whole, SparseContexts) and isinstance(mine, SparseContexts):
        assert np.shares_memory(whole.indices, mine.indices)
    else:
        assert np.shares_memory(np.asarray(whole), np.asarray(mine))
    for name in ("pool", "position", "payoff"):
        assert np.shares_memory(getattr(part, name), getattr(log, name))
    for name in ("pool", "position", "payoff"):
        assert getattr(log[::2], name).flags.c_contiguous


def test_an_int_gives_an_event() -> None:
    log = EventLog.from_arrays(**columns(timestamps=[1, 2.5, 3], propensity=[0.25, 0.5, 0.75]))
    event = log[-2]
    assert isinstance(event, Event)
    assert event.user.tolist() == pytest.approx([0.7, 1.0])
    assert event.user.dtype == np.float64
    assert (event.pool, event.shown, event.payoff) == (("a", "b"), "a", 0.0)
    assert event.propensity == 0.5
    assert event.timestamp == datetime(1970, 1, 1, 0, 0, 2, 500_000, tzinfo=UTC)
    assert log[np.int64(1)].shown == "a"
    with pytest.raises(AttributeError):
        # Ignored: the mistake under test.
        event.shown = "b"  # type: ignore[misc]


@pytest.mark.parametrize(
    "rows", [3, -4, [5], np.array([True]), np.array([0.5]), "a", np.zeros((1, 1), int)], ids=repr
)
def test_rows_outside_the_log_are_an_index_error(rows: Any) -> None:
    with pytest.raises(IndexError):
        EventLog.from_arrays(**columns())[rows]


def test_between_is_half_open() -> None:
    log = days(3)
    part = log.between("2009-05-02", "2009-05-03")
    assert same(part, log[24:48])
    assert np.shares_memory(part.payoff, log.payoff)
    assert same(log.between(None, datetime(2009, 5, 2, tzinfo=UTC)), log[:24])
    assert same(log.between(np.datetime64("2009-05-02T23:00:01")), log[48:])
    assert same(log.between(MAY_FIRST + 1, MAY_FIRST + HOUR), log[:0])
    assert same(log.between("2030-01-01"), log[:0])
    assert same(log.between("1900-01-01", "2030-01-01"), log)


@given(logs(timed=True), st.integers(-3, 3), st.integers(-3, 3))
def test_between_picks_what_a_comparison_of_timestamps_picks(
    log: EventLog, before: int, after: int
) -> None:
    assert log.timestamps is not None
    middle = log.timestamps[len(log) // 2] if len(log) else np.datetime64(0, "us")
    start, end = middle + np.timedelta64(before, "ms"), middle + np.timedelta64(after, "us")
    try:
        part = log.between(start, end)
    except ValueError:  # nudged beyond the years 1 to 9999
        assert abs(middle.astype(np.int64)) > 6e16
        return
    assert same(part, log[(start <= log.timestamps) & (log.timestamps < end)])


def test_between_finds_events_that_are_out_of_order() -> None:
    log = EventLog.from_arrays(**columns(timestamps=[30, 10, 20]))
    assert log.between(20, 40).shown.tolist() == ["b", "d"]


def test_between_needs_timestamps() -> None:
    with pytest.raises(ValueError, match=r"this log has no timestamps; take rows with log\["):
        EventLog.from_arrays(**columns()).between("2009-05-01")
