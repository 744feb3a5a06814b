"""Decision-service JSON: what Vowpal Wabbit would learn from comes in, the rest is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.events.formats.whole_logs import whole

from topstory.events import EventLog
from topstory.events.formats.faults import BadRow, Faults
from topstory.events.formats.pipeline.descriptions import CHANGED_FEATURES
from topstory.events.formats.registry import reader
from topstory.events.formats.vw.dsjson import BAD_PDROP, CONTRADICTION
from topstory.events.formats.vw.encodings import FeatureHasher
from topstory.events.formats.vw.identical_actions import MERGED, MERGED_UNKNOWN, SAME_ID
from topstory.events.formats.vw.named_features import named_features
from topstory.events.formats.vw.slots import NO_LABEL


def line(**changes: Any) -> dict[str, Any]:
    """An event as Azure Personalizer logs it; a change to `...` takes the field away."""
    event: dict[str, Any] = {
        "_label_cost": -1.0,
        "_label_probability": 0.85,
        "_label_Action": 2,
        "_labelIndex": 1,
        "o": [{"v": 1.0, "EventId": "13118d9b", "ActionTaken": False}],
        "Timestamp": "2021-02-04T16:31:29.2460000Z",
        "Version": "1",
        "EventId": "13118d9b",
        "a": [2, 1],
        "c": {
            "FromUrl": [{"timeofday": "Afternoon", "weather": "Sunny", "name": "Cathy"}],
            "_multi": [
                {"_tag": "Cappucino", "i": {"constant": 1, "id": "Cappucino"},
                 "j": [{"type": "hot", "origin": "kenya"}]},
                {"_tag": "Cold brew", "i": {"constant": 1, "id": "Cold brew"},
                 "j": [{"type": "cold", "origin": "brazil"}]},
            ],
        },
        "p": [0.85, 0.15],
        "VWState": {"m": "N/A"},
        "_original_label_cost": -1.0,
    }  # fmt: skip
    event.update(changes)
    return {name: value for name, value in event.items() if value is not ...}


def log_of(
    folder: Path, *lines: dict[str, Any] | bytes, faults: Faults | None = None, **options: Any
) -> EventLog:
    path = folder / "events.dsjson"
    texts = [each if isinstance(each, bytes) else msgspec.json.encode(each) for each in lines]
    path.write_bytes(b"\n".join(texts))
    return whole("dsjson", path, faults=faults, **options)


def test_an_event_is_its_label_its_actions_and_its_time(tmp_path: Path) -> None:
    event = log_of(tmp_path, line())[0]
    assert event.pool == ("Cappucino", "Cold brew")
    assert event.shown == "Cold brew"
    assert event.payoff == 1.0
    assert event.propensity == pytest.approx(0.85)
    assert event.timestamp is not None
    assert event.timestamp.isoformat() == "2021-02-04T16:31:29.246000+00:00"


def test_features_are_hashed_by_name_with_the_constant_last(tmp_path: Path) -> None:
    log, hashing = log_of(tmp_path, line(), dimensions="8"), FeatureHasher(8)
    names = ["FromUrl^timeofday=Afternoon", "FromUrl^weather=Sunny", "FromUrl^name=Cathy"]
    expected = hashing.vectors([hashing.places([(name, 1.0) for name in names])])
    np.testing.assert_array_equal(log.users, expected)
    article = [("i^constant", 1.0), ("j^type=hot", 1.0), ("j^origin=kenya", 1.0)]
    expected = hashing.vectors([hashing.places(article)])
    np.testing.assert_array_equal(log.articles["Cappucino"], expected[0])
    assert log.dimension == 8


def test_hashing_keeps_inner_products_on_average() -> None:
    random = np.random.default_rng(0)
    values = [(f"feature {i}", float(random.normal())) for i in range(20)]
    one, other = dict(values[:15]), dict(values[5:])
    wanted = sum(one[name] * other[name] for name in one.keys() & other.keys())
    found = []
    for salt in range(2000):  # other names are another draw of the hash
        hashing = FeatureHasher(9)
        rows = [hashing.places([(f"{salt} {n}", v) for n, v in each.items()])
                for each in (one, other)]  # fmt: skip
        x, y = hashing.vectors(rows)[:, :-1].astype(float)
        found.append(x @ y)
    # 4 standard errors are passed once in 16,000 times; the names, and so the draws, are fixed.
    assert abs(np.mean(found) - wanted) < 4 * np.std(found) / 2000**0.5


def test_names_follow_vowpal_wabbits_rules() -> None:
    value = {"n": {"f": 2, "t": True, "no": False, "nil": None, "_x": 1}, "_text": "a b", "s": "v"}
    assert named_features(value) == [("n^f", 2.0), ("n^t", 1.0), ("a", 1.0), ("b", 1.0), ("s=v", 1)]


def test_the_probability_may_come_from_the_ranking(tmp_path: Path) -> None:
    log = log_of(tmp_path, line(_label_probability=..., a=[1, 2], p=[0.3, 0.7]))
    assert log[0].propensity == pytest.approx(0.7)


def test_the_index_of_the_label_will_do(tmp_path: Path) -> None:
    assert log_of(tmp_path, line(_label_Action=...))[0].shown == "Cold brew"


def test_lines_not_to_be_learned_from_are_left_out_and_counted(tmp_path: Path) -> None:
    faults = Faults(strict=True)
    log = log_of(tmp_path, line(), line(_skipLearn=True), faults=faults)
    assert len(log) == 1
    assert faults.omissions == {"_skipLearn is true": 1}
    assert (faults.notes, faults.counts) == ({}, {})


def test_pdrop_is_reported(tmp_path: Path) -> None:
    faults = Faults(strict=True)
    assert len(log_of(tmp_path, line(pdrop=0.5), line(pdrop=0), faults=faults)) == 2
    assert list(faults.notes.values()) == [1]
    assert "pdrop" in next(iter(faults.notes))


def multi(*actions: Any) -> dict[str, Any]:
    return {"u": 1, "_multi": list(actions)}


BAD: list[tuple[str, dict[str, Any] | bytes]] = [
    ("not valid JSON", b'{"c": '),
    ("not valid JSON", b'{"c": {"u": "\xff", "_multi": [{"id": "a"}]}, "_label_cost": 0, '
        b'"_label_Action": 1, "_label_probability": 1, "Timestamp": "2021-02-04T16:31:29Z"}'),
    ("not a decision: Object missing required field `c`", b"{}"),
    ("not a decision: Expected `object`, got `array`", b"[1]"),
    ("not a decision: Expected `float | null`, got `str` - at `$._label_cost`",
     line(_label_cost="free")),
    ("not a decision: Expected `int`, got `str` - at `$.a[…]`", line(a=[1, "2"])),
    ("not a decision: Invalid RFC3339 encoded datetime - at `$.Timestamp`", line(Timestamp="now")),
    ("there is no _label_cost: nothing says what it paid", line(_label_cost=...)),
    ("there is no _label_Action: nothing says what was chosen",
     line(_label_Action=..., _labelIndex=...)),
    ("there is no _label_probability, nor p of the chosen action",
     line(_label_probability=..., p=[])),
    ("the propensity is outside (0, 1]", line(_label_probability=0)),
    ("the shown article is not in the pool", line(_label_Action=3)),
    ("the shown article is not in the pool", line(_label_Action=0)),
    ("there is no _multi: nothing says what could be shown", line(c={"u": 1})),
    ("_multi is not a list of actions", line(c={"_multi": 3})),
    ("an action is not an object", line(c=multi(1, 2))),
    (NO_LABEL, line(c={**multi({"id": "a"}), "_slots": []})),
    (SAME_ID, line(c=multi({"id": "a"}, {"id": "a", "x": 1}))),
    ("the pool is empty", line(c=multi())),
    (BAD_PDROP, line(pdrop=1)),
    (BAD_PDROP, line(pdrop=-0.1)),
    ("there is no Timestamp, though lines before it have one", line(Timestamp=...)),
    ("a user feature is not a finite number",
     line(c={**multi({"id": "a"}, {"id": "b"}), "u": 1e99})),
    ("its JSON is nested too deeply", b'{"c": ' + b"[" * 100_000),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "bad"), BAD)
def test_a_bad_line_is_counted_by_its_reason(
    tmp_path: Path, reason: str, bad: dict[str, Any] | bytes
) -> None:
    faults = Faults()
    log = log_of(tmp_path, line(), b"", bad, line(), faults=faults)
    assert len(log) == 2
    assert faults.counts == {reason: 1}
    assert faults.first[reason].line == 3
    with pytest.raises(BadRow, match=r"events\.dsjson:3: "):
        log_of(tmp_path, line(), b"", bad, line())


def test_the_first_bad_line_is_the_one_a_strict_import_names(tmp_path: Path) -> None:
    with pytest.raises(BadRow, match=r":2: the propensity"):
        log_of(tmp_path, line(), line(_label_probability=7), b"{")


def test_ids_are_found_where_they_are_said_to_be(tmp_path: Path) -> None:
    actions = multi({"n": {"key": 7}, "id": "x"}, {"n": {"key": 8}, "id": "y"})
    assert log_of(tmp_path, line(c=actions))[0].pool == ("x", "y")
    assert log_of(tmp_path, line(c=actions), id="n.key")[0].pool == ("7", "8")
    hashed = log_of(tmp_path, line(c=actions), id="hash")[0].pool
    assert hashed == ("id=x n^key:7", "id=y n^key:8")


def test_actions_that_differ_in_the_last_digit_have_different_ids(tmp_path: Path) -> None:
    actions = multi({"x": 0.1234567}, {"x": 0.1234568}, {"x": 12345678}, {"x": 12345679})
    log = log_of(tmp_path, line(c=actions), id="hash")
    assert log[0].pool == ("x:0.1234567", "x:0.1234568", "x:12345678", "x:12345679")


def test_an_action_keeps_the_features_it_came_with(tmp_path: Path) -> None:
    faults = Faults()
    first, later = multi({"id": "a", "x": 1}, {"id": "b"}), multi({"id": "a", "x": 2}, {"id": "b"})
    log = log_of(tmp_path, line(c=first), line(c=later), faults=faults)
    hashing = FeatureHasher(32)
    expected = hashing.vectors([hashing.places([("x", 1.0)])])[0]
    np.testing.assert_array_equal(log.articles["a"], expected)
    assert list(faults.notes.values()) == [1]


def test_changed_features_are_noted_once_an_event(tmp_path: Path) -> None:
    faults = Faults()
    first, later = [multi({"id": "a", "x": x}, {"id": "b", "x": x}) for x in (1, 2)]
    log_of(tmp_path, line(c=first), *[line(c=later)] * 3, line(c=first), faults=faults)
    assert faults.notes == {CHANGED_FEATURES: 3}
    assert (faults.first[CHANGED_FEATURES].line, faults.first[CHANGED_FEATURES].text) == (2, "a")


@pytest.mark.parametrize("lacking", ["_label_cost", "_label_probability", "Timestamp", "u"])
def test_a_refused_line_describes_no_action(tmp_path: Path, lacking: str) -> None:
    faults = Faults()
    first = line(c={"u": [1], "_multi": [{"id": "c", "x": [1]}, {"id": "d", "x": [1]}]})
    bad = line(c={"u": [1], "_multi": [{"id": "a", "x": [1]}, {"id": "b", "x": [1]}]}, a=[])
    good = line(c={"u": [1], "_multi": [{"id": "a", "x": [2]}, {"id": "b", "x": [2]}]})
    del (bad["c"] if lacking == "u" else bad)[lacking]
    log = log_of(tmp_path, first, bad, good, faults=faults, features="arrays")
    assert log.articles["a"] is not None
    assert log.articles["a"].tolist() == [2.0]
    assert (faults.bad, faults.notes) == (1, {})


LATE: list[dict[str, Any]] = [
    {"_label_probability": 7}, {"_label_cost": 1e99}, {"_label_Action": 9},
]  # fmt: skip


@pytest.mark.parametrize("features", ["hash", "arrays"])
@pytest.mark.parametrize("change", [*LATE, {"u": [1e99]}], ids=str)
def test_a_line_refused_late_leaves_no_trace(
    tmp_path: Path, features: str, change: dict[str, Any]
) -> None:
    faults = Faults()
    bad = line(**change, Timestamp=...)
    actions = [{"id": "a", "x": [1, 1]}, {"id": "only here", "x": [1, 1]}]
    bad["c"] = {"u": bad.pop("u", [1, 1]), "_multi": actions}
    good = line(c={"u": [1], "_multi": [{"id": "a", "x": [2]}, {"id": "b", "x": [2]}]})
    log = log_of(tmp_path, bad, good, faults=faults, features=features)
    alone = log_of(tmp_path, good, features=features)
    assert (faults.bad, faults.notes) == (1, {})
    assert log.article_ids == ("a", "b")
    np.testing.assert_array_equal(log.features, alone.features)
    assert log.dimension == alone.dimension
    assert log.timestamps is not None


def test_an_action_that_is_unfit_takes_the_others_of_its_line_along(tmp_path: Path) -> None:
    faults = Faults()
    bad = line(c={"u": [1], "_multi": [{"id": "a", "x": [1]}, {"id": "b", "x": [1, 10**400]}]})
    good = line(c={"u": [1], "_multi": [{"id": "a", "x": [2]}, {"id": "b", "x": [2]}]})
    log = log_of(tmp_path, bad, good, faults=faults, features="arrays")
    assert log.features is not None
    assert log.features.tolist() == [[2.0], [2.0]]
    assert (faults.bad, faults.notes) == (1, {})


def test_actions_in_any_order_are_the_same_actions(tmp_path: Path) -> None:
    actions = [{"id": key, "x": i} for i, key in enumerate("abc")]
    orders = [(0, 1, 2), (2, 0, 1), (1, 2, 0), (0, 1, 2)]
    faults = Faults()
    lines = [line(c=multi(*(actions[i] for i in order))) for order in orders]
    log = log_of(tmp_path, *lines, faults=faults)
    assert [event.pool for event in log] == [tuple("abc"[i] for i in order) for order in orders]
    assert log.shown.tolist() == ["b", "a", "c", "b"]
    assert log.article_ids == ("a", "b", "c")
    assert faults.notes == {}


def test_text_that_ends_in_a_bracket_is_no_array(tmp_path: Path) -> None:
    event = line(c={"u": [3], "city": "Rome [0]", "_multi": [{"id": "a", "x": [1], "t": "y]"}]})
    log = log_of(tmp_path, {**event, "_label_Action": 1}, features="arrays")
    assert np.asarray(log.users).tolist() == [[3.0]]
    assert log.features is not None
    assert log.features.tolist() == [[1.0]]


class TestIdenticalActions:
    """The same action listed more than once is one article."""

    @pytest.mark.parametrize("shown", [1, 3])
    @pytest.mark.parametrize("label", [True, False])
    def test_their_probabilities_are_added_up(
        self, tmp_path: Path, shown: int, label: bool
    ) -> None:
        faults = Faults()
        twice = line(
            c=multi({"id": "a", "x": 2}, {"id": "b"}, {"x": 2, "id": "a"}),
            a=[3, 1, 2],
            p=[0.5, 0.3, 0.2],
            _label_Action=shown,
            _labelIndex=shown - 1,
            _label_probability=(0.3 if shown == 1 else 0.5) if label else ...,
        )
        event = log_of(tmp_path, twice, faults=faults)[0]
        assert (event.pool, event.shown) == (("a", "b"), "a")
        assert event.propensity == pytest.approx(0.8)
        assert faults.notes == {MERGED: 1}
        assert not faults.counts

    def test_another_one_was_shown(self, tmp_path: Path) -> None:
        faults = Faults()
        twice = line(c=multi({"id": "a"}, {"id": "b"}, {"id": "a"}), _label_probability=0.2)
        event = log_of(tmp_path, twice, faults=faults)[0]
        assert (event.pool, event.shown) == (("a", "b"), "b")
        assert event.propensity == pytest.approx(0.2)
        assert faults.notes == {MERGED: 1}

    def test_without_p_only_the_shown_one_counts_and_that_is_noted(self, tmp_path: Path) -> None:
        faults = Faults()
        twice = line(
            c=multi({"id": "a"}, {"id": "b"}, {"id": "b"}), a=[], p=[], _label_probability=0.2
        )
        event = log_of(tmp_path, twice, faults=faults)[0]
        assert (event.pool, event.shown) == (("a", "b"), "b")
        assert event.propensity == pytest.approx(0.2)
        assert faults.notes == {MERGED_UNKNOWN: 1}

    def test_actions_without_ids_are_known_by_their_features(self, tmp_path: Path) -> None:
        twice = line(c=multi({"x": 1}, {"y": 1}, {"y": 1}), a=[1, 2, 3], p=[0.2, 0.3, 0.5])
        log = log_of(tmp_path, twice | {"_label_probability": 0.3}, faults=Faults())
        assert len(log[0].pool) == 2
        assert log[0].propensity == pytest.approx(0.8)

    def test_the_shown_one_must_be_listed(self, tmp_path: Path) -> None:
        faults = Faults()
        outside = line(c=multi({"id": "a"}, {"id": "a"}), _label_Action=3, _labelIndex=2)
        assert len(log_of(tmp_path, line(), outside, faults=faults)) == 1
        assert faults.counts == {"the shown article is not in the pool": 1}


def test_labels_that_contradict_each_other_are_noted(tmp_path: Path) -> None:
    faults = Faults()
    log = log_of(
        tmp_path,
        line(),
        line(_label_Action=1),
        line(_labelIndex=...),
        line(_label_Action=...),
        faults=faults,
    )
    assert log.shown.tolist() == ["Cold brew", "Cappucino", "Cold brew", "Cold brew"]
    assert faults.notes == {CONTRADICTION: 1}
    assert faults.first[CONTRADICTION].line == 2


def test_a_refused_line_does_not_decide_whether_there_are_times(tmp_path: Path) -> None:
    bad = line(c=multi({"id": "a"}, {"id": "a", "x": 1}), Timestamp=...)
    assert log_of(tmp_path, bad, line(), faults=Faults()).timestamps is not None


@pytest.mark.parametrize("features", ["hash", "arrays"])
def test_a_file_of_bad_lines_alone_is_counted(tmp_path: Path, features: str) -> None:
    path, faults = tmp_path / "events.dsjson", Faults()
    path.write_bytes(b"{}\n" * 3)
    assert not list(reader("dsjson").read([path], faults, lambda _: None, features=features))
    assert faults.bad == 3


@pytest.mark.parametrize("options", [{"dimensions": 1}, {"dimensions": "x"}, {"features": "raw"}])
def test_wrong_options_say_what_is_right(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"dsjson: (dimensions|features) must be"):
        log_of(tmp_path, line(), **options)
