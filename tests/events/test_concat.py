"""Logs one after the other."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.events.making import columns, logs, same, same_events, uniform_log

from topstory.events import EventLog


@given(logs(), st.integers(0, 12))
def test_a_log_cut_in_two_and_put_together_is_the_same_log(log: EventLog, cut: int) -> None:
    assert same(EventLog.concat([log[:cut], log[cut:]]), log)


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("described", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@settings(max_examples=12)  # of each of the eight kinds
@given(data=st.data())
def test_the_events_are_those_of_the_logs_in_order(
    timed: bool, described: bool, sparse: bool, data: st.DataObject
) -> None:
    some = logs(dimension=3, timed=timed, described=described, sparse_users=sparse)
    first, second, third = data.draw(some), data.draw(some), data.draw(some)
    together = EventLog.concat([first, second, third])
    cut, end = len(first), len(first) + len(second)
    assert same_events(together[:cut], first)
    assert same_events(together[cut:end], second)
    assert same_events(together[end:], third)
    again = EventLog.concat([EventLog.concat([first, second]), third])
    assert same_events(again, together)
    assert again.article_ids == together.article_ids
    assert set(together.articles) == {*first.articles, *second.articles, *third.articles}
    distinct = {tuple(pool) for log in (first, second, third) for pool in log.pools}
    assert {tuple(pool) for pool in together.pools} == distinct


def test_identical_pools_are_united_and_articles_renumbered() -> None:
    first = EventLog.from_arrays(**columns(pools=[["a", "b"], ["b", "c", "d"]]))
    second = EventLog.from_arrays(**columns(pools=[["b", "a"], ["b", "c", "d"]]))
    together = EventLog.concat([first, second])
    assert together.pools == [["a", "b"], ["b", "c", "d"], ["b", "a"]]
    assert together.pool.tolist() == [0, 0, 1, 2, 2, 1]
    assert together.shown.tolist() == ["b", "a", "d"] * 2


def test_propensities_are_filled_in_where_only_some_logs_record_them() -> None:
    uniform = EventLog.from_arrays(**columns())
    recorded = EventLog.from_arrays(**columns(propensity=[0.9, 0.1, 0.2]))
    together = EventLog.concat([uniform, recorded]).recorded_propensity
    assert together is not None
    assert together.tolist() == pytest.approx([1 / 2, 1 / 2, 1 / 3, 0.9, 0.1, 0.2])


def test_an_empty_log_without_articles_changes_nothing() -> None:
    log = EventLog.from_arrays(**columns(articles={key: [1.0] for key in "abcd"}))
    empty = EventLog.from_arrays(np.empty((0, 2)), [], [], [], [])
    assert same(EventLog.concat([empty, log]), log)
    assert same(EventLog.concat([log, empty]), log)


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ({}, {"users": np.ones((3, 3))}, r"contexts differ in length: \[2, 3\]"),
        ({}, {"timestamps": [1, 2, 3]}, r"some logs have timestamps and some have none"),
        ({}, {"articles": {key: [1.0] for key in "abcd"}}, r"some logs have article features and"),
        (
            {"articles": {key: [1.0] for key in "abcd"}},
            {"articles": {key: [float(key == "c")] for key in "dcba"} | {"d": [1.0]}},
            r"article 'b' has features \[0.0\] in log 1 but \[1.0\] before it",
        ),
        (
            {"articles": {key: [1.0] for key in "abcd"}},
            {"articles": {key: [1.0, 2.0] for key in "abcd"}},
            r"log 1 has 2 article features, but those before it have 1",
        ),
    ],
)
def test_logs_that_do_not_go_together_are_refused(
    one: dict[str, Any], other: dict[str, Any], message: str
) -> None:
    pair = [EventLog.from_arrays(**columns(**changes)) for changes in (one, other)]
    with pytest.raises(ValueError, match=message):
        EventLog.concat(pair)


def test_nothing_to_concatenate_is_an_error() -> None:
    with pytest.raises(ValueError, match="pass at least one log"):
        EventLog.concat([])


def test_dense_and_sparse_contexts_do_not_mix() -> None:
    from scipy import sparse

    dense = EventLog.from_arrays(**columns())
    binary = EventLog.from_arrays(**columns(users=sparse.csr_array(np.ones((3, 2)))))
    with pytest.raises(ValueError, match="some logs have dense contexts and some sparse"):
        EventLog.concat([dense, binary])


def test_days_that_were_logged_apart_make_one_log() -> None:
    parts = [
        uniform_log(
            50, [[f"{day}", f"{day + 1}"]], seed=day, timestamps=day * 86_400 + np.arange(50)
        )
        for day in range(5)
    ]
    together = EventLog.concat(parts)
    assert same_events(together.between(86_400, 2 * 86_400), parts[1])
    assert together.times is not None
    assert together.times.ticks.dtype == np.uint32
