"""The plain layout: the same events from JSON lines, CSV and Parquet, and every mistake named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from tests.events.formats.whole_logs import assert_same_choices, assert_same_users, whole

from topstory.events import EventLog, SparseContexts
from topstory.events.formats.faults import BadRow, Faults
from topstory.events.formats.importing import import_log
from topstory.events.formats.pipeline.lines import LineBlock

POOLS = [["sports", "politics"], ["politics", "arts", "science"]]
EVENTS: list[dict[str, Any]] = [
    {
        "timestamp": f"2024-05-01T00:00:0{i}.25Z",
        "user": [0.1 * i, -1e-20 * i, 1.0],
        "pool": POOLS[i % 2],
        "shown": "politics",
        "payoff": i / 3,
        "propensity": 0.3 + i / 10,
    }
    for i in range(5)
]
FORMATS = ["jsonl", "csv", "parquet"]


def write(path: Path, format: str, events: list[dict[str, Any]]) -> Path:
    """The events as a user would write them."""
    path = path.with_suffix(f".{format}")
    if format == "jsonl":
        path.write_bytes(b"\n".join(map(msgspec.json.encode, events)))
    elif format == "parquet":
        pd.DataFrame(events).to_parquet(path)
    else:
        lists = {"user": lambda user: "|".join(map(repr, user)), "pool": "|".join}
        rows = [
            {k: lists[k](v) if isinstance(v, list) else v for k, v in e.items()} for e in events
        ]
        pd.DataFrame(rows).to_csv(path, index=False)
    return path


def direct(events: list[dict[str, Any]]) -> EventLog:
    times = [np.datetime64(event["timestamp"].removesuffix("Z")) for event in events]
    return EventLog.from_arrays(
        [event["user"] for event in events],
        [event["pool"] for event in events],
        list(range(len(events))),
        [event["shown"] for event in events],
        [event["payoff"] for event in events],
        timestamps=np.array(times),
        propensity=[event["propensity"] for event in events],
    )


@pytest.mark.parametrize("format", FORMATS)
def test_every_kind_of_file_gives_the_same_log(tmp_path: Path, format: str) -> None:
    log = whole(format, write(tmp_path / "events", format, EVENTS))
    assert_same_choices(log, direct(EVENTS))
    assert_same_users(log, direct(EVENTS))
    assert log.pools == POOLS


@pytest.mark.parametrize("format", FORMATS)
def test_named_columns_are_the_user(tmp_path: Path, format: str) -> None:
    events = [
        {"user_age": 0.5, "user_new": i % 2, "pool": POOLS[0], "shown": "sports", "payoff": 1}
        for i in range(3)
    ]
    path = write(tmp_path / "events", format, events)
    log = whole(format, path, constant="yes")
    assert np.asarray(log.users).tolist() == [[0.5, i % 2, 1.0] for i in range(3)]
    assert log.timestamps is None
    assert log.recorded_propensity is None


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", FORMATS)
def test_articles_have_the_features_of_their_file(tmp_path: Path, format: str, kind: str) -> None:
    features = {"arts": [0.1, 1.0], "politics": [0.2, 1.0], "science": [0.3, 1.0],
                "sports": [0.4, 1.0], "never shown": [0.5, 1.0]}  # fmt: skip
    if kind == "csv":
        table = pd.DataFrame([(key, *row) for key, row in features.items()])
        table.columns = pd.Index(["article", "length", "constant"])
        table.to_csv(tmp_path / "articles.csv", index=False)
    else:
        rows = [{"article": key, "features": row} for key, row in features.items()]
        write(tmp_path / "articles", kind, rows)
    path = write(tmp_path / "events", format, EVENTS)
    log = whole(format, path, articles=str(tmp_path / f"articles.{kind}"))
    assert {key: row.tolist() for key, row in log.articles.items() if row is not None} == features
    assert_same_choices(log, direct(EVENTS))


@pytest.mark.parametrize("format", FORMATS)
def test_what_has_no_propensity_was_chosen_uniformly(tmp_path: Path, format: str) -> None:
    events = [dict(event) for event in EVENTS]
    events[3]["propensity"] = None
    log = whole(format, write(tmp_path / "events", format, events))
    assert log.propensity[3] == np.float32(1 / 3)
    assert log.propensity[2] == np.float32(0.5)


@pytest.mark.parametrize("format", FORMATS)
def test_times_may_be_unix_seconds(tmp_path: Path, format: str) -> None:
    events = [{**event, "timestamp": 1.5 + i} for i, event in enumerate(EVENTS)]
    log = whole(format, write(tmp_path / "events", format, events))
    assert log.times is not None
    assert log.times.microseconds().tolist() == [1_500_000 + 1_000_000 * i for i in range(5)]


def test_sparse_users_stay_sparse(tmp_path: Path) -> None:
    events = [{**event, "user": {"on": [5, 0], "dimension": 6}} for event in EVENTS]
    log = whole("jsonl", write(tmp_path / "events", "jsonl", events))
    assert isinstance(log.users, SparseContexts)
    assert log.users.indices.tolist() == [0, 5] * 5
    assert log.dimension == 6


CHANGES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("the shown article is not in the pool", {"shown": "weather"}, FORMATS),
    ("the payoff is not a finite number", {"payoff": 1e99}, FORMATS),
    ("the propensity is outside (0, 1]", {"propensity": 0.0}, FORMATS),
    ("the propensity is outside (0, 1]", {"propensity": 1.5}, FORMATS),
    ("a user feature is not a finite number", {"user": [1e99, 0.0, 1.0]}, FORMATS),
    ("the user has another number of features than the first one", {"user": [1.0, 1.0]}, FORMATS),
    ("the pool lists an article twice", {"pool": ["politics", "politics"]}, FORMATS),
    ("the pool is empty", {"pool": []}, FORMATS),
    ("the timestamp is outside the years 1 to 9999", {"timestamp": "soon"}, ["csv", "parquet"]),
    ("not an event: Invalid RFC3339 encoded datetime - at `$.timestamp`",
     {"timestamp": "soon"}, ["jsonl"]),
    ("the payoff is not a finite number", {"payoff": "much"}, ["csv"]),
    ("a user feature is not a finite number", {"user": ["x", 0.0, 1.0]}, ["csv"]),
    ("not an event: Expected `bool | float`, got `str` - at `$.payoff`",
     {"payoff": "much"}, ["jsonl"]),
    ("not an event: Expected `float`, got `str` - at `$.user[…]`",
     {"user": [0.0, "x", 1.0]}, ["jsonl"]),
    ("there is no timestamp, though the first event has one", {"timestamp": None}, ["jsonl"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("format", "reason", "change"),
    [(format, reason, change) for reason, change, formats in CHANGES for format in formats],
)
def test_a_bad_row_is_counted_by_its_reason(
    tmp_path: Path, format: str, reason: str, change: dict[str, Any]
) -> None:
    events = [dict(event) for event in EVENTS]
    events[3] |= change
    path, faults = write(tmp_path / "events", format, events), Faults()
    log = whole(format, path, faults=faults)
    good = [*EVENTS[:3], EVENTS[4]]
    assert_same_choices(log, direct(good))
    assert faults.counts == {reason: 1}
    assert faults.first[reason].line == (5 if format == "csv" else 4)
    with pytest.raises(BadRow, match=r"events\.\w+:[45]: "):
        whole(format, path)


LATE: list[dict[str, Any]] = [
    {"propensity": 7.0}, {"payoff": 1e99}, {"user": [1e99, 0.0, 1.0]}, {"shown": "nowhere"},
]  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("change", LATE, ids=str)
def test_a_refused_row_leaves_no_article_and_no_pool(
    tmp_path: Path, format: str, change: dict[str, Any]
) -> None:
    bad = {**EVENTS[0], "pool": ["only here", "sports"], "shown": "sports", **change}
    faults = Faults()
    path = write(tmp_path / "events", format, [EVENTS[0], bad, *EVENTS[1:]])
    log = whole(format, path, faults=faults)
    assert faults.bad == 1
    assert log.pools == POOLS
    assert "only here" not in log.articles
    assert_same_choices(log, direct(EVENTS))


@pytest.mark.parametrize("change", LATE, ids=str)
def test_a_refused_line_decides_nothing_for_those_after_it(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    first = {k: v for k, v in EVENTS[0].items() if k != "timestamp"}
    bad = {**first, "user": [0.5], **change}
    path = write(tmp_path / "events", "jsonl", [bad, *EVENTS])
    log = whole("jsonl", path, faults=Faults())
    assert (log.dimension, len(log), log.times is not None) == (3, 5, True)


def test_ids_with_commas_and_quotes_come_through_csv(tmp_path: Path) -> None:
    events = [{**event, "pool": ['a, "b"', "c"], "shown": 'a, "b"'} for event in EVENTS]
    log = whole("csv", write(tmp_path / "events", "csv", events))
    assert log.shown.tolist() == ['a, "b"'] * 5


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_missing_column_is_named(tmp_path: Path, format: str) -> None:
    events = [{k: v for k, v in event.items() if k != "shown"} for event in EVENTS]
    with pytest.raises(ValueError, match=r"events\.\w+: there is no column 'shown'"):
        whole(format, write(tmp_path / "events", format, events))


BROKEN = [
    ("a.jsonl", '{"article": "a"}\n{"article": "a"}', r"a\.jsonl:2: article 'a' is listed twice"),
    ("a.jsonl", '{"article": "a"}\n[', r"a\.jsonl:2: not an article"),
    ("a.csv", "article,x\na,1\nb,much", r"a\.csv:3: article 'b': .*features are numbers"),
    ("a.csv", "id,x\na,1", r"a\.csv:1: there is no column 'article'"),
    ("a.csv", "article,x\na", r"a\.csv:2: 1 fields, but the header has 2"),
    ("a.parquet", "PAR1", r"a\.parquet: damaged, or not a Parquet file"),
    ("a.txt", "", r"a\.txt: articles come as \.jsonl, \.csv or \.parquet"),
]


@pytest.mark.parametrize(("name", "text", "words"), BROKEN)
def test_a_mistake_in_the_articles_file_is_named(
    tmp_path: Path, name: str, text: str, words: str
) -> None:
    path = write(tmp_path / "events", "jsonl", EVENTS)
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=words):
        whole("jsonl", path, articles=str(tmp_path / name))


def test_an_article_unknown_to_the_articles_file_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("article,x\nsports,1\npolitics,1\n")
    faults = Faults()
    path = write(tmp_path / "events", "csv", EVENTS)
    assert len(whole("csv", path, faults=faults, articles=tmp_path / "a.csv")) == 3
    reason = "the pool lists an article that the articles file does not have"
    assert faults.counts == {reason: 2}


@pytest.mark.parametrize("bad", [500, 4000])
def test_a_string_in_a_number_column_names_it_and_costs_no_more_than_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: int
) -> None:
    """Each bad row used to split the whole block into lines again."""
    split: list[int] = []
    lines = LineBlock.lines

    def counted(block: LineBlock) -> list[bytes]:
        split.append(1)
        return lines(block)

    monkeypatch.setattr(LineBlock, "lines", counted)
    rows = ["a|b,a,0,34"] * bad + ["a|b,b,1,young"] * bad
    (tmp_path / "log.csv").write_text("\n".join(["pool,shown,payoff,user_age", *rows]))
    report = import_log("csv", tmp_path / "log.csv", tmp_path / "log", max_bad=0.6)
    (reason,) = report.skipped
    assert report.skipped[reason] == bad
    assert "user_age is not a finite number" in reason
    assert "a mapping takes strings" in reason
    assert report.first[reason].line == bad + 2
    assert report.first[reason].text == "a|b,b,1,young"
    assert len(split) <= 2


def test_a_string_in_a_number_field_of_json_names_it(tmp_path: Path) -> None:
    event = {"pool": ["a", "b"], "shown": "a", "payoff": 0, "user_age": "young"}
    (tmp_path / "log.jsonl").write_text(json.dumps(event))
    with pytest.raises(ValueError, match=r"user_age is not a finite number.*a mapping takes strin"):
        import_log("jsonl", tmp_path / "log.jsonl", tmp_path / "log")


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_rows_without_a_pool_are_noticed_at_the_first(tmp_path: Path, format: str) -> None:
    rows = {
        "csv": "pool,shown,payoff,user_age\n" + ",a,0,0.5\n" * 1_000_000,
        "jsonl": json.dumps({"shown": "a", "payoff": 0, "user_age": 0.5}) + "\n",
    }
    text = rows[format] * (1 if format == "csv" else 200_000)
    (tmp_path / "log").write_text(text)
    read = 0

    def follow(more: int) -> None:
        nonlocal read
        read += more

    line = 2 if format == "csv" else 1
    with pytest.raises(ValueError, match=rf"pool.*first at .*log:{line}:"):
        import_log(format, tmp_path / "log", tmp_path / "out", progress=follow)
    assert read < 0.9 * len(text)
