"""Cutting a log in two."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from topstory.events import EventLog

DAY = 86_400


def log(timed: bool = True) -> EventLog:
    return EventLog.from_arrays(
        np.ones((10, 1)),
        [["a", "b"]],
        [0] * 10,
        ["a", "b"] * 5,
        np.arange(10),
        timestamps=np.arange(10) * DAY // 2 if timed else None,
    )


@pytest.mark.parametrize("at", [0.8, "1970-01-05", np.datetime64("1970-01-05"), 4.0 * DAY])
def test_both_parts_together_are_the_log(at: Any) -> None:
    first, second = log().split(at)
    assert first.payoff.tolist() == list(range(8))
    assert second.payoff.tolist() == [8, 9]


def test_by_time_events_out_of_order_go_where_they_belong() -> None:
    first, second = log()[::-1].split("1970-01-05")
    assert first.payoff.tolist() == list(range(7, -1, -1))
    assert second.payoff.tolist() == [9, 8]


@pytest.mark.parametrize(
    ("at", "timed", "message"),
    [
        (0, True, "at must be a share between 0 and 1, such as 0.8, or a time, got 0"),
        (1.0, True, "at must be a share between 0 and 1"),
        (-3, True, "at must be a share between 0 and 1"),
        ("later", True, "not a time: 'later'"),
        ("2026-01-01", False, "this log has no timestamps: split it by a share"),
        ("2026-01-01", True, "all 10 events of the log, which is from 1970-01-01 to 1970-01-05"),
        (0.01, True, "are after 0.01 of the events"),
    ],
)
def test_a_cut_that_cannot_be_made_says_why(at: Any, timed: bool, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        log(timed).split(at)
