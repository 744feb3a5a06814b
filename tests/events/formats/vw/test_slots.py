"""Examples with several decisions, ccb and slates: an event for each slot, in both formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.events.formats.whole_logs import whole

from topstory.events import EventLog
from topstory.events.formats.faults import Faults
from topstory.events.formats.vw.encodings import HashEncoding
from topstory.events.formats.vw.identical_actions import MERGED
from topstory.events.formats.vw.slots import (
    NO_COST,
    NO_LABEL,
    ONE_COST,
    TOO_MANY,
    UNKNOWN_POOL,
    UNLABELLED,
)

CCB = """\
ccb shared |User age:0.5
ccb action a|Topic news
ccb action b|Topic sports
ccb action c|Topic film
ccb slot 1:-1:0.5,0:0.25,2:0.25 |Place top
ccb slot 2:0:0.8 |Place side
"""
SLATES = """\
slates shared -2 |User age:0.5
slates action 0 a|Topic news
slates action 0 b|Topic sports
slates action 1 c|Topic film
slates action 1 d|Topic food
slates slot 1:0.7 |Place top
slates slot 0:0.4,1:0.6 |Place side
"""
MULTI = [{"id": each, "Topic": {topic: 1}} for each, topic in zip("abcd", "nsft", strict=True)]


def ccb_line(outcomes: Any, **context: Any) -> dict[str, Any]:
    return {
        "Timestamp": "2020-01-01T00:00:00Z",
        "c": {
            "User": {"age": 0.5},
            "_multi": MULTI[:3],
            "_slots": [{"_id": "x", "Place": {"top": 1}}, {"_id": "y", "Place": {"side": 1}}],
            **context,
        },
        "_outcomes": outcomes,
    }


TWO = [
    {"_label_cost": -1, "_id": "x", "_a": [1, 0, 2], "_p": [0.5, 0.25, 0.25], "_o": []},
    {"_label_cost": 0, "_id": "y", "_a": [2, 0], "_p": [0.8, 0.2], "_o": []},
]


def log_of(folder: Path, *given: str | dict[str, Any], faults: Faults | None = None) -> EventLog:
    texts = [
        each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in given
    ]
    path = folder / "events"
    path.write_text("\n".join(texts) + "\n")
    return whole("vw" if isinstance(given[0], str) else "dsjson", path, faults=faults)


def told(log: EventLog) -> list[tuple[tuple[str, ...], str, float, float]]:
    return [(e.pool, e.shown, e.payoff, round(e.propensity, 6)) for e in log]


@pytest.mark.parametrize("example", [CCB, ccb_line(TWO)])
def test_a_slot_of_ccb_shows_what_no_slot_before_it_shows(
    tmp_path: Path, example: str | dict[str, Any]
) -> None:
    log = log_of(tmp_path, example)
    assert told(log) == [(("a", "b", "c"), "b", 1.0, 0.5), (("a", "c"), "c", 0.0, 0.8)]


def test_a_slot_s_features_join_those_of_the_user(tmp_path: Path) -> None:
    encoding = HashEncoding(32)
    for example in (CCB, ccb_line(TWO)):
        log = log_of(tmp_path, example)
        for number, place in enumerate(("top", "side")):
            named = [("User^age", 0.5), (f"Place^{place}", 1.0), (f"slot={number}", 1.0)]
            [wanted] = encoding.users([encoding.user(named)])
            assert log[number].user.tolist() == wanted.tolist()


def test_slots_of_slates_have_actions_of_their_own_and_one_cost(tmp_path: Path) -> None:
    slots = [{"Place": {"top": 1}}, {"Place": {"side": 1}}]
    multi = [{**each, "_slot_id": i // 2} for i, each in enumerate(MULTI)]
    line = ccb_line([{"_a": 1, "_p": 0.7}, {"_a": [0, 1], "_p": [0.4, 0.6]}], _multi=multi)
    line = {**line, "_label_cost": -2, "c": {**line["c"], "_slots": slots}}
    for example in (SLATES, line):
        faults = Faults()
        log = log_of(tmp_path, example, faults=faults)
        assert told(log) == [(("a", "b"), "b", 2.0, 0.7), (("c", "d"), "c", 2.0, 0.4)]
        assert faults.notes == {ONE_COST: 1}


def test_only_the_included_actions_are_in_the_pool(tmp_path: Path) -> None:
    example = CCB.replace("2:0:0.8 |", "2:0:0.8 2 |").replace("1:-1:0.5,0:0.25,2:0.25", "1:-1:0.5")
    wanted = [(("a", "b", "c"), "b", 1.0, 0.5), (("c",), "c", 0.0, 0.8)]
    assert told(log_of(tmp_path, example)) == wanted
    line = ccb_line([{**TWO[0], "_a": [1], "_p": [0.5]}, {**TWO[1], "_a": [2], "_p": [0.8]}])
    line["c"]["_slots"][1]["_inc"] = [2]
    assert told(log_of(tmp_path, line)) == wanted


def test_a_slot_without_a_label_is_left_out(tmp_path: Path) -> None:
    faults = Faults()
    example = CCB.replace("slot 1:-1:0.5,0:0.25,2:0.25", "slot").replace("2:0:0.8", "2:0:0.8,0:0.2")
    assert told(log_of(tmp_path, example, faults=faults)) == [(("a", "c"), "c", 0.0, 0.8)]
    assert faults.notes == {UNLABELLED: 1}


def test_identical_actions_are_merged(tmp_path: Path) -> None:
    faults = Faults()
    example = CCB.replace("c|Topic film", "a|Topic news")
    log = log_of(tmp_path, example, faults=faults)
    assert told(log) == [(("a", "b"), "b", 1.0, 0.5), (("a",), "a", 0.0, 0.8)]
    assert MERGED in faults.notes


TWICE = "a slot names an action twice, or one that a slot before it shows"
NOT_THERE = "a slot names an action that it does not have"
BAD: list[tuple[str, str | dict[str, Any]]] = [
    (UNKNOWN_POOL, CCB.replace("slot 1:-1:0.5,0:0.25,2:0.25", "slot")),
    (TWICE, CCB.replace("2:0:0.8", "1:0:0.8,0:0.2")),
    ("the shown article is not in the pool", CCB.replace("2:0:0.8", "1:0:0.8")),
    (NOT_THERE, CCB.replace("2:0:0.8", "3:0:0.8")),
    (NOT_THERE, CCB.replace("2:0:0.8", "-1:0:0.8")),
    (NOT_THERE, SLATES.replace("slot 1:0.7", "slot 2:0.7")),
    (NO_COST, SLATES.replace("shared -2", "shared")),
    (TOO_MANY, CCB + "ccb slot |\n" * 1100),
    (TOO_MANY, CCB.replace("age:0.5", "x " * 600_000)),
    (NO_LABEL, CCB.partition("ccb slot")[0]),
    ("the propensity is outside (0, 1]", CCB.replace("2:0:0.8", "2:0:1.8")),
    ("the payoff is not a finite number", CCB.replace("2:0:0.8", "2:nan:0.8")),
    ("the label is none of ccb: see docs/guides/importing.md", CCB.replace("2:0:0.8", "2:0")),
    ("the label is none of slates: see docs/guides/importing.md", SLATES.replace("on 1 c", "on c")),
    ("a line of the example does not begin with ccb", CCB.replace("ccb action c", "c")),
    ("there are not as many _outcomes as _slots", ccb_line(TWO[:1])),
    ("a slot has no cost: nothing says what it paid", ccb_line([TWO[0], {"_a": [2], "_p": [1.0]}])),
    ("a slot needs a probability for each action that it names",
     ccb_line([TWO[0], {**TWO[1], "_p": [0.8]}])),
    ("_slots is not a list", ccb_line(TWO, _slots=3)),
    ("a slot is not an object", ccb_line(TWO, _slots=[1, 2])),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "bad"), BAD)
def test_a_bad_example_is_counted_by_its_reason_and_leaves_no_event(
    tmp_path: Path, reason: str, bad: str | dict[str, Any]
) -> None:
    faults = Faults()
    good = CCB if isinstance(bad, str) else ccb_line(TWO)
    assert len(log_of(tmp_path, good, bad, good, faults=faults)) == 4
    assert faults.counts == {reason: 1}
