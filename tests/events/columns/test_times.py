"""Timestamps are kept exactly, in as little space as that takes."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.events.making import MAY_FIRST, columns, moments

from topstory.events import EventLog
from topstory.events.columns.times import Times, parse_time, timestamps_as_microseconds


@given(st.lists(moments))
def test_times_come_back_exactly(micros: list[int]) -> None:
    given_times = np.array(micros, np.int64)
    times = Times.from_microseconds(given_times)
    assert times.microseconds().tolist() == micros
    assert (times.ticks.dtype == np.uint32) == (times.unit > 1)


@pytest.mark.parametrize(
    ("micros", "unit"),
    [
        ([0, 2**32 * 1_000_000 - 1_000_000], 1_000_000),
        ([7, 1_000_007], 1_000_000),  # whole seconds apart, if not on the second
        ([0, 1_000], 1_000),
        ([0, (2**32 - 1) * 1_000], 1_000),
        ([0, 2**32 * 1_000 + 1_000], 1),
        ([0, 2**32 * 1_000_000], 1),
        ([0, 1], 1),
    ],
)
def test_the_coarsest_exact_unit_is_taken(micros: list[int], unit: int) -> None:
    assert Times.from_microseconds(np.array(micros)).unit == unit


@pytest.mark.parametrize(
    "timestamps",
    [
        [MAY_FIRST, MAY_FIRST + 1, MAY_FIRST + 2],
        np.array([MAY_FIRST, MAY_FIRST + 1, MAY_FIRST + 2], np.uint32),
        [float(MAY_FIRST), MAY_FIRST + 1.0, MAY_FIRST + 2.0],
        np.array(["2009-05-01T00:00:00", "2009-05-01T00:00:01", "2009-05-01T00:00:02"], "M8[s]"),
        np.array(["2009-05-01T00:00:00", "2009-05-01T00:00:01", "2009-05-01T00:00:02"], "M8[ns]"),
    ],
    ids=["int", "uint32", "float", "M8[s]", "M8[ns]"],
)
def test_seconds_and_datetime64_mean_the_same(timestamps: object) -> None:
    log = EventLog.from_arrays(**columns(timestamps=timestamps))
    assert log.timestamps is not None
    assert log.timestamps.dtype == "M8[us]"
    assert log.timestamps.astype(str).tolist() == [
        f"2009-05-01T00:00:0{second}.000000" for second in range(3)
    ]
    assert log[2].timestamp == datetime(2009, 5, 1, 0, 0, 2, tzinfo=UTC)


def test_an_untimed_log_has_no_timestamps() -> None:
    log = EventLog.from_arrays(**columns())
    assert log.timestamps is None
    assert log[0].timestamp is None


def test_days_and_years_convert() -> None:
    assert timestamps_as_microseconds(np.array(["2009-05-01"], "M8[D]"), 1).tolist() == [
        MAY_FIRST * 10**6
    ]
    assert timestamps_as_microseconds(np.array(["1971"], "M8[Y]"), 1).tolist() == [
        365 * 86_400 * 10**6
    ]


@pytest.mark.parametrize(
    "bad",
    [
        np.array([10**17]),
        np.array([2**63], np.uint64),
        np.array([1e300]),
        np.array([np.inf]),
        np.array([2**62]).view("M8[s]"),
        np.array(["12000"], "M8[Y]"),
    ],
)
def test_times_beyond_the_year_9999_are_refused(bad: object) -> None:
    with pytest.raises(ValueError, match=r"row 0: timestamp .* is outside the years 1 to 9999"):
        timestamps_as_microseconds(bad, 1)


def test_a_time_may_be_given_in_many_forms() -> None:
    noon = MAY_FIRST * 10**6 + 43_200 * 10**6
    for value in (
        datetime(2009, 5, 1, 12),
        datetime(2009, 5, 1, 12, tzinfo=UTC),
        datetime(2009, 5, 1, 14, tzinfo=timezone(timedelta(hours=2))),
        np.datetime64("2009-05-01T12"),
        "2009-05-01T12:00",
        "2009-05-01T12:00:00Z",
        "2009-05-01T14:00:00+02:00",
        MAY_FIRST + 43_200,
        MAY_FIRST + 43_200.0,
        np.int64(MAY_FIRST + 43_200),
    ):
        assert parse_time(value) == noon


@pytest.mark.parametrize("bad", ["soon", None, True, [1], np.datetime64("NaT"), float("nan")])
def test_what_is_not_a_time_is_refused(bad: object) -> None:
    with pytest.raises(ValueError, match=r"not a time: .*; pass a datetime"):
        # Ignored: the mistake under test.
        parse_time(bad)  # type: ignore[arg-type]


def test_a_date_is_its_midnight() -> None:
    assert parse_time(date(2009, 5, 1)) == MAY_FIRST * 10**6
