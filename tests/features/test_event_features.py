"""Features that change with the event: from what was known then, and the same wherever computed."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.features.worlds import little_log

import topstory as ts
from topstory.events import EventLog
from topstory.events.folder.contents import read_contents
from topstory.features.event.declared import MAX_LENGTH, EventFeatures
from topstory.features.event.seen_articles import SeenArticles

HOUR = 3_600_000_000
ALL = ("hour_of_day", "weekday", "position", "age_hours", "seen_before")
FRIDAY = 1241136000  # 2009-05-01, 00:00 UTC


def dated_log(events: int = 2_000, **changes: Any) -> EventLog:
    """`little_log` with times, slots and publication times."""
    random = np.random.default_rng(1)
    seconds = np.sort(random.integers(0, 20 * 86_400, events))
    published = [
        np.datetime64(FRIDAY - 3_600 * hours, "s").astype("M8[us]").item()
        for hours in (0, 5, 30, 100, 400, -48)
    ]
    tags = [["stage"] if i % 2 else ["sport", "ball"] for i in range(6)]
    given: dict[str, Any] = {
        "timestamps": FRIDAY + seconds,
        "article_profiles": {"tags": tags, "published": published},
        "decisions": {"slot": random.integers(12, size=events)},
    }
    return little_log(**(given | changes))


def builder(**parameters: Any) -> ts.FeatureBuilder:
    given: dict[str, Any] = {"method": "direct", "support": 0.0, "engine": "serial", "event": ALL}
    return ts.FeatureBuilder(**given | parameters)


def test_every_number_is_the_formula_s() -> None:
    log = dated_log()
    made = builder().fit(log).apply(log)
    assert made.varying is not None
    assert (made.event_numbers, made.varying.width) == (8, 2)
    scale = MAX_LENGTH / math.sqrt(len(ALL))
    seen: dict[tuple[int, str], int] = {}
    assert log.timestamps is not None
    assert log.article_profiles is not None
    assert log.visitors is not None
    assert log.decisions is not None
    dates: list[Any] = log.article_profiles.column("published").to_pylist()
    for t in range(0, 600):
        at = log.timestamps[t].item()
        minute = at.hour * 60 + at.minute
        x = made.contexts(t)  # (K, d)
        event = x[0, -9:-3] / scale
        turn, week = 2 * math.pi * minute / 1440, 2 * math.pi * at.weekday() / 7
        weekday = np.array([math.sin(week), math.cos(week), at.weekday() >= 5]) / math.sqrt(2)
        slot = math.log1p(min(log.decisions.column("slot")[t].as_py(), 9)) / math.log1p(9)
        wanted = [math.sin(turn), math.cos(turn), *weekday, slot]
        np.testing.assert_allclose(event, wanted, atol=1e-6)
        who = int(log.visitors.number[t])
        for place, article in enumerate(log.pools[0]):
            hours = (at.replace(tzinfo=dates[place].tzinfo) - dates[place]).total_seconds() / 3600
            age = math.log1p(min(max(hours, 0), 14 * 24)) / math.log1p(14 * 24)
            often = math.log1p(min(seen.get((who, article), 0), 10)) / math.log1p(10)
            np.testing.assert_allclose(x[place, -3:-1] / scale, [age, often], atol=2e-3)
        assert (made.context(t) == x[int(log.position[t])]).all()
        shown = str(log.shown[t]) if t < 1 else log.article_ids[log.pool_members[log.position[t]]]
        seen[who, shown] = seen.get((who, shown), 0) + 1


def test_what_comes_later_changes_no_number() -> None:
    log = dated_log()
    fitted = builder().fit(log)
    whole, part = fitted.apply(log), fitted.apply(log[:700])
    assert (np.asarray(whole.users)[:700] == part.users).all()
    for t in range(0, 700, 50):
        assert (whole.contexts(t) == part.contexts(t)).all()


def test_contexts_are_no_longer_than_a_service_accepts() -> None:
    log = dated_log()
    for method in ("direct", "clusters"):
        made = builder(method=method, clusters=2).fit(log).apply(log)
        longest = max(float(np.linalg.norm(made.contexts(t), axis=1).max()) for t in range(500))
        assert longest <= 1.5


def test_one_event_has_the_bits_that_it_has_among_many() -> None:
    declared = EventFeatures.of(ALL, timezone="America/New_York")
    random = np.random.default_rng(0)
    at, slot = random.integers(0, 2 * 10**15, 300), random.integers(20, size=300)
    published, seen = at - random.integers(-HOUR, 900 * HOUR, 300), random.integers(20, size=300)
    many, pairs = declared.of_events(at, slot), declared.of_pairs(at, published, seen)
    for i in range(300):
        assert (declared.of_event(int(at[i]), int(slot[i])) == many[i]).all()
        alone = declared.of_articles(int(at[i]), [int(published[i])], [int(seen[i])])
        assert (alone[0] == pairs[i]).all()


X, F = ("hour_of_day", "age_hours"), ("weekday", "seen_before")  # some in x, the others in f


def test_numbers_in_f_are_those_that_they_are_in_x_and_come_last() -> None:
    log = dated_log()
    whole = builder(event=(*X, *F)).fit(log).apply(log)
    parted = builder(event=X, event_in_f=F).fit(log)
    made = parted.apply(log)
    assert parted.event_.columns[-4:] == parted.event_.feature_columns
    assert made.varying is not None
    assert (made.event_numbers, made.varying.width, made.event_features) == (7, 5, 4)
    hour, week, age, seen = slice(-8, -6), slice(-6, -3), slice(-3, -2), slice(-2, -1)
    for t in range(0, len(log), 40):
        one, other = whole.contexts(t), made.contexts(t)
        rest = slice(None, -8)
        wanted = [one[:, part] for part in (rest, hour, age, week, seen, slice(-1, None))]
        assert (other == np.concatenate(wanted, axis=1)).all()
        assert (made.context(t) == other[int(log.position[t])]).all()


def test_one_event_has_the_same_numbers_in_f_as_among_many() -> None:
    declared = EventFeatures.of((), timezone="America/New_York", in_f=ALL)
    random = np.random.default_rng(0)
    at, slot = random.integers(0, 2 * 10**15, 300), random.integers(20, size=300)
    published, seen = at - random.integers(-HOUR, 900 * HOUR, 300), random.integers(20, size=300)
    pairs = declared.of_pairs(at, published, seen, slot)
    assert (declared.per_event, declared.per_article, pairs.shape) == (0, 8, (300, 8))
    for i in range(300):
        known = (int(at[i]), [int(published[i])], [int(seen[i])], int(slot[i]))
        assert (declared.of_articles(*known)[0] == pairs[i]).all()


def test_hours_are_those_of_the_time_zone() -> None:
    summer, winter = 1246406400, 1230768000  # midnights in UTC
    berlin = EventFeatures.of(["hour_of_day"], timezone="Europe/Berlin")
    utc = EventFeatures.of(["hour_of_day"])
    for second, ahead in ((summer, 2), (winter, 1)):
        there = berlin.of_event(second * 10**6)
        assert (there == utc.of_event((second + 3600 * ahead) * 10**6)).all()


def test_seen_articles_are_bounded_and_the_last_ones() -> None:
    seen = SeenArticles(max_shows=3, max_visitors=2)
    for article in "abcd":
        seen.note("ann", article)
    assert set(seen.counts("ann")) == {"b", "c", "d"}
    seen.note("bob", "a")
    seen.note("ann", "d")
    seen.note("eve", "a")  # bob came longest ago
    assert [visitor for visitor, _ in seen] == ["ann", "eve"]


@pytest.mark.parametrize("in_f", [(), F])
def test_a_log_with_event_features_is_stored_and_cut_and_joined(
    in_f: tuple[str, ...], tmp_path: Path
) -> None:
    log = dated_log()
    x = [name for name in ALL if name not in in_f]
    made = builder(event=x, event_in_f=in_f).fit(log).apply(log)
    made.write(tmp_path / "log")
    assert read_contents(tmp_path / "log").version == (3 if in_f else 2)
    again = EventLog.read(tmp_path / "log")
    some = np.array([5, 3, 1500, 3])
    for one, other in (
        (again, made),
        (made[100:300], made[100:300]),
        (EventLog.concat([made[:700], made[700:]]), made),
        (EventLog.concat([made[some], made[1:3]]), made[np.array([5, 3, 1500, 3, 1, 2])]),
    ):
        assert (one.event_numbers, one.event_features) == (8, 4 if in_f else 0)
        for t in range(0, len(one), max(1, len(one) // 20)):
            assert (one.contexts(t) == other.contexts(t)).all()
    made[some].write(tmp_path / "some")
    assert (EventLog.read(tmp_path / "some").contexts(2) == made.contexts(1500)).all()
    assert made.visitor_number is not None
    assert log.visitors is not None
    assert (np.bincount(made.visitor_number) == np.bincount(log.visitors.number)).all()


def test_logs_whose_numbers_are_in_x_and_in_f_are_no_one_log() -> None:
    log = dated_log()[:200]
    one, other = (
        replace(builder(event=x, event_in_f=f).fit(log).apply(log), feature_model=None)
        for x, f in ((ALL, ()), (X, ("weekday", "position", "seen_before")))
    )
    with pytest.raises(ValueError, match=r"numbers are of the event: \[8\].*articles are \[0, 5\]"):
        EventLog.concat([one, other])


@pytest.mark.parametrize("in_f", [(), F])
def test_a_stored_builder_has_the_same_events_and_identity(
    in_f: tuple[str, ...], tmp_path: Path
) -> None:
    log = dated_log()
    x = [name for name in ALL if name not in in_f]
    fitted = builder(timezone="Europe/Berlin", event=x, event_in_f=in_f).fit(log)
    fitted.save(tmp_path / "model")
    again = ts.FeatureBuilder.load(tmp_path / "model")
    assert again.event_ == fitted.event_
    assert again.event_.published == "published"
    assert again.identity == fitted.identity
    names = {builder(event=event).fit(log).identity for event in ((), ALL, ALL[:2], ["age_hours"])}
    assert len(names | {fitted.identity}) == 5
    row = {"tags": ["stage"], "published": "2009-05-01"}
    assert (again.article(row) == again.article({"tags": ["stage"]})).all()


@pytest.mark.parametrize(
    ("changes", "parameters", "message"),
    [
        ({}, {"event": ["age"]}, "no feature 'age'; choose from hour_of_day, weekday"),
        ({}, {"event": "age_hours"}, "event must be a list of names"),
        ({}, {"event_in_f": "age_hours"}, "event_in_f must be a list of names"),
        ({}, {"event_in_f": ["age"]}, "event_in_f: there is no feature 'age'; choose from"),
        ({}, {"event_in_f": ["weekday"]}, "event_in_f: weekday is in event, too; .* x or f"),
        ({"decisions": None}, {"event": [], "event_in_f": ["position"]}, "needs the slot"),
        ({}, {"timezone": "Mars"}, "timezone must be a name such as UTC"),
        ({"timestamps": None}, {}, "hour_of_day needs timestamps.*import --map"),
        ({"decisions": None}, {}, "position needs the slot"),
        ({"visitor_ids": [None] * 40}, {}, "seen_before needs to know who came again.*--map"),
        (
            {"article_profiles": {"tags": [["a"], ["b"]] * 3}},
            {},
            "age_hours needs publication times, and the articles have no date; topstory import",
        ),
        ({}, {"published": "tags"}, "no date called 'tags'; their dates are: published"),
    ],
)
def test_what_a_log_lacks_is_said_with_what_to_do(
    changes: dict[str, Any], parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        builder(**parameters).fit(dated_log(**changes))


def test_profiles_cannot_be_kept() -> None:
    log = dated_log()
    with pytest.raises(ValueError, match="keep the raw log"):
        builder().fit(log).apply(log, keep_profiles=True)
