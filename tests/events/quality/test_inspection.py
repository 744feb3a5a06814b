"""A log at a glance."""

from datetime import UTC, date, datetime

import msgspec
import numpy as np
import pytest
from hypothesis import given
from scipy import sparse
from tests.events.making import MAY_FIRST, columns, logs, uniform_log

from topstory.events import EventLog, Inspection, inspect
from topstory.events.quality import inspection


def test_every_number_is_the_one_counted_by_hand() -> None:
    log = EventLog.from_arrays(
        **columns(
            timestamps=MAY_FIRST + np.array([0, 86_400, 86_401]),
            articles={key: [1.0, 2.0] for key in "abcdz"},
        )
    )
    found = inspect(log)
    assert (found.events, found.articles, found.pools, found.dimension) == (3, 5, 2, 2)
    assert found.ctr == pytest.approx(1 / 3)
    assert (found.lowest_payoff, found.highest_payoff, found.binary) == (0, 1, True)
    assert (found.smallest_pool, found.median_pool, found.largest_pool) == (2, 2.5, 3)
    assert found.article_features == 2
    assert not found.sparse
    assert found.timed
    assert [(d.date, d.events, d.ctr) for d in found.days] == [
        (date(2009, 5, 1), 1, 1.0),
        (date(2009, 5, 2), 2, 0.0),
    ]
    by_article = {a.article: a for a in found.by_article}
    assert set(by_article) == set("abcdz")
    assert (by_article["b"].shown, by_article["b"].payoff, by_article["b"].ctr) == (1, 1.0, 1.0)
    assert by_article["d"].first_shown == datetime(2009, 5, 2, 0, 0, 1, tzinfo=UTC)
    assert by_article["d"].last_shown == by_article["d"].first_shown
    never = by_article["z"]
    assert (never.shown, never.ctr, never.first_shown, never.last_shown) == (0, None, None, None)
    assert (found.lowest_propensity, found.highest_propensity) == (None, None)


def test_articles_come_by_times_shown_with_first_and_last_of_unsorted_times() -> None:
    log = EventLog.from_arrays(
        np.ones((4, 1)), [["a", "b"]], [0] * 4, ["a", "b", "b", "b"], [0] * 4, None, [9, 5, 3, 4]
    )
    first = inspect(log).by_article[0]
    assert (first.article, first.shown) == ("b", 3)
    assert first.first_shown == datetime.fromtimestamp(3, UTC)
    assert first.last_shown == datetime.fromtimestamp(5, UTC)


@given(logs())
def test_any_log_can_be_inspected(log: EventLog) -> None:
    found = inspect(log)
    assert found.fit == (found.method in ("replay", "rejection"))
    assert msgspec.json.decode(msgspec.json.encode(found), type=Inspection) == found
    numbers = [check.p_value for check in found.checks if check.p_value is not None]
    assert all(0 <= p <= 1 for p in numbers)


def test_it_survives_json() -> None:
    for log in (
        uniform_log(500, [["a", "b"], ["c"]], timestamps=np.arange(500)),
        EventLog.from_arrays(np.empty((0, 3)), [], [], [], []),
        EventLog.from_arrays(**columns(propensity=[0.1, 0.2, 0.3])),
    ):
        found = inspect(log)
        assert msgspec.json.decode(msgspec.json.encode(found), type=Inspection) == found


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_repeated_contexts_are_counted(kind: str) -> None:
    random = np.random.default_rng(0)
    few = random.integers(0, 2, (1000, 12)).astype(float)
    distinct = len({row.tobytes() for row in few})
    users = sparse.csr_array(few) if kind == "sparse" else few
    log = EventLog.from_arrays(users, [["a"]], np.zeros(1000, int), ["a"] * 1000, np.ones(1000))
    assert inspect(log).duplicate_contexts == pytest.approx(1 - distinct / 1000)


def test_a_negative_zero_is_a_zero() -> None:
    log = EventLog.from_arrays([[0.0], [-0.0]], [["a"]], [0, 0], ["a", "a"], [0, 1])
    assert inspect(log).duplicate_contexts == 0.5


def test_long_logs_are_sampled_for_repeated_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "MAX_COMPARED_CONTEXTS", 100)
    log = uniform_log(1000, [["a", "b"]])
    assert inspect(log).duplicate_contexts == 0


class TestVerdict:
    def test_a_uniform_log_is_fit(self) -> None:
        found = inspect(uniform_log(2000, [["a", "b", "c"]], timestamps=np.arange(2000)))
        assert found.fit
        assert found.method == "replay"
        assert (found.survivors, found.rejection, found.survivor_uniformity) == (None, None, None)
        assert len(found.verdict) == 1
        assert found.verdict[0].startswith("Fit for replay: articles were shown uniformly")

    def test_a_biased_log_is_not_and_the_worst_article_is_named(self) -> None:
        log = EventLog.from_arrays(
            np.ones((1000, 1)),
            [["a", "b"]],
            np.zeros(1000, int),
            ["a"] * 700 + ["b"] * 300,
            np.arange(1000) % 2,
            timestamps=np.arange(1000),
        )
        found = inspect(log)
        assert not found.fit
        assert found.method == "none"
        assert found.verdict[0].startswith(
            "Not fit for replay: what was shown is not uniformly random"
        )
        assert (
            "2 articles stand out; most of all 'a', shown 700 times where 500 were"
            in (found.verdict[1])
        )

    def test_recorded_propensities_make_it_fit_by_rejection_sampling(self) -> None:
        random = np.random.default_rng(0)
        first = random.random(1000) < 0.8
        log = EventLog.from_arrays(
            np.ones((1000, 1)),
            [["a", "b"]],
            np.zeros(1000, int),
            np.where(first, "a", "b"),
            random.random(1000) < 0.1,
            propensity=np.where(first, 0.8, 0.2),
            timestamps=np.arange(1000),
        )
        found = inspect(log)
        assert found.fit
        # The favoured article survives 1 in 4, the other always.
        assert found.survivors == pytest.approx(first.mean() / 4 + (~first).mean())
        assert found.verdict[0].startswith("Fit for replay by rejection sampling")
        assert found.method == "rejection"
        assert f"about 409 of 1,000 events ({found.survivors:.2%}) survive" in found.verdict[0]
        assert found.lowest_propensity == pytest.approx(0.2)
        assert found.highest_propensity == pytest.approx(0.8)

    def test_what_else_to_know_is_said(self) -> None:
        log = EventLog.from_arrays(
            np.ones((60, 1)), [["a", "b"], ["a"]], [0] * 40 + [1] * 20, ["a"] * 60, np.ones(60)
        )
        text = " ".join(inspect(log).verdict)
        assert "1 article was never shown from pools that list them: 'b' in 40 events" in text
        assert "20 events had a pool of a single article" in text
        assert "Every payoff is 1: no policy can differ from another." in text
        assert "The log has no timestamps: intervals are computed over blocks of events" in text

    def test_nothing_to_choose_and_nothing_at_all(self) -> None:
        alone = EventLog.from_arrays(np.ones((2, 1)), [["a"]], [0, 0], ["a", "a"], [0, 1])
        assert "Every pool holds a single article" in " ".join(inspect(alone).verdict)
        empty = inspect(EventLog.from_arrays(np.empty((0, 3)), [], [], [], []))
        assert not empty.fit
        assert empty.verdict == ("Not fit for replay: the log has no events.",)
        assert empty.ctr is None
