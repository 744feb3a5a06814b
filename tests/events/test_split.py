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


def test_each_part_has_its_own_users_and_articles_only() -> None:
    """What is fitted on one is what is fitted on a log of its events, made from scratch."""
    pools, pool = [["a", "b"], ["c", "b"], ["d", "e"]], [0, 1, 0, 2, 1, 2]
    people: dict[str, list[Any]] = {
        "city": ["Rome", None, "Oslo", "Bonn"],
        "likes": [["x"], ["y", "x"], [], ["z"]],
        "age": [31.0, 44.0, None, 52.0],
    }
    facts: dict[str, list[Any]] = {
        "title": ["Rain", "Snow", "Sun", "Fog", "Hail"],
        "new": [True, False] * 2 + [None],
    }

    def made(rows: slice) -> EventLog:
        users, articles = ([0, 1, 2], [0, 1, 2]) if rows.start is None else ([0, 3], [1, 2, 3, 4])
        number = [0, 1, 2, 0, 3, 0][rows]
        names = [pools[p] for p in sorted(set(pool[rows]))]
        every = sorted(set(pool[rows]))
        return EventLog.from_arrays(
            None,
            names,
            [every.index(p) for p in pool[rows]],
            ["a", "b", "b", "d", "c", "e"][rows],
            [0, 1, 0, 1, 1, 0][rows],
            articles={"abcde"[i]: None for i in articles},
            timestamps=np.arange(6)[rows],
            visitor=[users.index(i) for i in number],
            profiles={key: [column[i] for i in users] for key, column in people.items()},
            article_profiles={key: [column[i] for i in articles] for key, column in facts.items()},
            visitor_ids=[["ann", "bob", None, "eve"][i] for i in users],
            text=["title"],
        )

    parts = made_whole(pools, pool, people, facts).split(0.5)
    for part, fresh in zip(parts, (made(slice(None, 3)), made(slice(3, None))), strict=True):
        assert part.pools == fresh.pools
        assert part.pool.tolist() == fresh.pool.tolist()
        assert part.shown.tolist() == fresh.shown.tolist()
        assert part.article_ids == fresh.article_ids
        assert part.profiles is not None
        assert fresh.profiles is not None
        assert part.profiles.schema.equals(fresh.profiles.schema)
        assert part.profiles.to_pylist() == fresh.profiles.to_pylist()
        assert part.article_profiles is not None
        assert fresh.article_profiles is not None
        assert part.article_profiles.to_pylist() == fresh.article_profiles.to_pylist()
        assert part.visitors is not None
        assert fresh.visitors is not None
        assert part.visitors.ids.to_pylist() == fresh.visitors.ids.to_pylist()
        assert part.visitors.ids.dictionary.to_pylist() == fresh.visitors.ids.dictionary.to_pylist()
        assert part.visitors.number.tolist() == fresh.visitors.number.tolist()


def made_whole(pools: Any, pool: Any, people: Any, facts: Any) -> EventLog:
    return EventLog.from_arrays(
        None,
        pools,
        pool,
        ["a", "b", "b", "d", "c", "e"],
        [0, 1, 0, 1, 1, 0],
        articles=dict.fromkeys("abcde"),
        timestamps=np.arange(6),
        visitor=[0, 1, 2, 0, 3, 0],
        profiles=people,
        article_profiles=facts,
        visitor_ids=["ann", "bob", None, "eve"],
        text=["title"],
    )
