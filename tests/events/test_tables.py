"""A log as a table for other tools, and in a notebook."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from topstory.events import EventLog
from topstory.events.log import check_log
from topstory.events.simulator import TodayModule


def raw() -> EventLog:
    return EventLog.from_arrays(
        None,
        [["a", "b"], ["b"]],
        [0, 1],
        ["a", "b"],
        [1, 0],
        timestamps=[0, 3600],
        visitor=[1, 0],
        visitor_ids=["<ann>", None],
        profiles={"country": ["DE", None], "age": [31, 52]},
        article_profiles={"tags": [["x"], []]},
    )


def test_every_event_is_a_row_with_its_profiles() -> None:
    first, second = raw().to_arrow(pools=True).to_pylist()
    assert first.pop("timestamp").isoformat() == "1970-01-01T00:00:00+00:00"
    assert first == {
        "visitor": None, "shown": "a", "payoff": 1.0, "propensity": 0.5, "pool": 0,
        "candidates": ["a", "b"], "user": [1.0], "user.country": None, "user.age": 52.0,
        "article.tags": ["x"],
    }  # fmt: skip
    assert (second["visitor"], second["user.country"]) == ("<ann>", "DE")


def test_frames_have_the_same_columns() -> None:
    log = TodayModule(seed=0, users=500).random_log(200, raw=True)
    names = log.to_arrow().column_names
    assert list(log.to_pandas().columns) == log.to_polars().columns == names
    assert log.to_pandas()["payoff"].mean() == pytest.approx(log.ctr)


def test_sparse_contexts_are_lists_of_what_is_on() -> None:
    from scipy.sparse import csr_array

    users = csr_array(np.array([[1, 0, 1], [0, 1, 1]]))
    log = EventLog.from_arrays(users, [["a"]], [0, 0], ["a", "a"], [0, 1])
    assert log[1:].to_arrow().column("user").to_pylist() == [[1, 2]]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_missing_library_is_one_sentence(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f"needs {library}: pip install {library}"):
        getattr(raw(), f"to_{library}")()


def test_a_notebook_shows_the_first_events_escaped() -> None:
    log = raw()
    page = log._repr_html_()
    assert "&lt;EventLog: 2 events" in page
    assert "&lt;ann&gt;" in page
    assert "<ann>" not in page
    assert page.count("<tr>") == 1 + 2
    assert len(log.head(1)) == 1


@pytest.mark.parametrize("given", [None, 3, [1], "logs"])
def test_what_is_no_log_is_named(given: Any) -> None:
    with pytest.raises(TypeError, match=r"^evaluation must be an EventLog, got "):
        check_log(given, "evaluation")
