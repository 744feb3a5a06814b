"""What will hurt is said by `inspect`, and nothing else is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from topstory.events import EventLog, inspect
from topstory.events.simulator import TodayModule

EVENTS = 2_000


def log(users: Any = None, payoff: Any = None, **given: Any) -> EventLog:
    random = np.random.default_rng(0)
    return EventLog.from_arrays(
        np.ones((EVENTS, 1)) if users is None else users,
        [["a", "b"]],
        np.zeros(EVENTS, int),
        random.choice(["a", "b"], EVENTS),
        random.random(EVENTS) < 0.2 if payoff is None else payoff,
        **given,
    )


def contexts(*columns: Any) -> Any:
    return np.column_stack([np.broadcast_to(column, EVENTS) for column in columns])


RANDOM = np.random.default_rng(1)
GROUPS = np.eye(3)[RANDOM.integers(3, size=EVENTS)]
CROWD = {"visitor": np.where(RANDOM.random(EVENTS) < 0.92, 0, RANDOM.integers(4000, size=EVENTS))}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"users": RANDOM.random((EVENTS, 2))}, "No feature of the contexts is constant"),
        ({"users": contexts(RANDOM.random(EVENTS) * 500, 1)}, "Context feature 0 goes from"),
        ({"payoff": RANDOM.random(EVENTS) * 30}, "not 0 or 1"),
        ({"users": np.column_stack([GROUPS, GROUPS, np.ones(EVENTS)])}, "up to 2 ones each"),
        ({"users": np.ones((4000, 1)), **CROWD}, "visitors made 9"),
    ],
)
def test_what_hurts_is_told(given: dict[str, Any], words: str) -> None:
    (told,) = inspect(log(**given)).warnings
    assert words in told


def test_losses_are_told() -> None:
    told, _ = inspect(log(payoff=RANDOM.random(EVENTS) - 2)).warnings
    assert "The mean payoff is -1." in told
    assert "Add a constant to every payoff" in told


def test_repeats_are_counted_where_visitors_are_known() -> None:
    times, visitor = np.arange(EVENTS), np.arange(EVENTS) % 500
    once = log(np.ones((500, 1)), timestamps=times, visitor=visitor)
    assert (inspect(once).repeats, inspect(once).warnings) == (0, ())
    twice = EventLog.concat([once, once[:40]])
    found = inspect(twice)
    assert found.repeats == 40
    assert "40 events repeat another of the same visitor" in found.warnings[0]
    assert inspect(log()).repeats is None


def test_a_log_as_it_should_be_gives_no_warning() -> None:
    for raw in (False, True):
        assert inspect(TodayModule(seed=0, users=2_000).random_log(5_000, raw=raw)).warnings == ()
    assert inspect(log(np.column_stack([GROUPS, np.ones(EVENTS)]))).warnings == ()
    assert inspect(log()[:0]).warnings == ()


def test_every_field_is_described() -> None:
    made = EventLog.from_arrays(
        None,
        [["a", "b"]],
        [0] * 4,
        ["a", "b", "a", "b"],
        [0, 1, 0, 0],
        visitor=[0, 1, 0, 0],
        profiles={
            "age": [31, None],
            "new": [True, False],
            "since": np.array(["2020-01-01", "2021-01-01"], "M8[us]"),
            "likes": [["golf", "opera"], ["golf"]],
            "title": [None, "Doctor of nothing"],
            "empty": [None, None],
        },
        article_profiles={"section": ["news", None]},
        text=["title"],
    )
    found = {field.name: field for field in inspect(made).fields}
    assert [(f.side, f.kind) for f in found.values()] == [
        ("user", "number"), ("user", "boolean"), ("user", "date"), ("user", "categories"),
        ("user", "text"), ("user", "category"), ("article", "category"),
    ]  # fmt: skip
    age, since, likes = found["age"], found["since"], found["likes"]
    assert (age.missing, age.lowest, age.median, age.highest, age.distinct) == (0.25, 31, 31, 31, 1)
    assert (since.earliest, since.latest) == (
        "2020-01-01T00:00:00+00:00",
        "2021-01-01T00:00:00+00:00",
    )
    assert [(each.value, each.share) for each in likes.common] == [("golf", 1.0), ("opera", 0.75)]
    assert (found["title"].missing, found["title"].distinct, found["title"].common) == (0.75, 1, ())
    assert (found["empty"].missing, found["empty"].distinct) == (1.0, 0)
    assert (found["section"].missing, found["new"].common[0].value) == (0.5, "true")
