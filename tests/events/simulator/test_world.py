"""The simulated world: it holds the facts it claims, and its logs are what replay needs."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import topstory as ts
from topstory.events.simulator import WorldSettings, random_traffic
from topstory.events.simulator.newsroom import Newsroom
from topstory.events.simulator.random_traffic import CHUNK_EVENTS

MAY = "2009-05-03"


class First:
    """Shows the oldest article, whoever comes."""

    def choose(self, user: object, pool: list[str]) -> str:
        return pool[0]

    def learn(self, user: object, article: str, payoff: float) -> None: ...


@pytest.fixture(scope="module")
def world() -> ts.TodayModule:
    return ts.TodayModule(seed=0, users=20_000)


@pytest.fixture(scope="module")
def log(world: ts.TodayModule) -> ts.EventLog:
    return world.random_log(2_000_000, MAY, days=7)


# -- the truth, transcribed --


def chance(world: ts.TodayModule, user: int, article: str, hour: int) -> float:
    """The click model, term by term."""
    have, facts = world.settings, world.newsroom.article(article)
    pi, tau = world.population.groups[user].astype(float), facts.topics
    odds = world.level
    odds += facts.popularity - facts.decay * (hour - facts.born)
    odds += have.daily * np.sin((hour % 24 - 12) * np.pi / 12)
    odds += have.preference * sum(
        pi[g] * world.taste.matrix[g, t] * tau[t] for g in range(5) for t in range(5)
    )
    odds += sum(pi[g] * (facts.appeal[g] + have.group_rates[g]) for g in range(5))
    return float(1 / (1 + np.exp(-odds)))


def test_expected_payoff_is_the_click_model(world: ts.TodayModule) -> None:
    hour = 344_712  # 2009-04-29, 00:00
    pool = [article.id for article in world.newsroom.pool(hour)]
    users = list(range(len(pool)))
    found = world.expected_payoff(users, pool, "2009-04-29T00:30:00")
    wanted = [chance(world, u, a, hour) for u, a in zip(users, pool, strict=True)]
    assert found == pytest.approx(wanted, rel=1e-6)
    window = world.window("2009-04-29")
    assert window.chances(0, world.population.groups[users]).diagonal() == pytest.approx(wanted)


def test_clicks_follow_the_expected_payoff(world: ts.TodayModule, log: ts.EventLog) -> None:
    """Calibrated in every tenth of the expected payoffs: z-scores of ten, at most 4 each."""
    assert log.visitors is not None
    window = world.window(MAY, 7)
    odds = window.intercept[log.pool_offsets[log.pool] + log.position]
    mixes = world.population.groups[log.visitors.number]
    odds = odds + (mixes * window.appeal[log.shown_index]).sum(axis=1)
    expected = 1 / (1 + np.exp(-odds))
    for rows in np.array_split(np.argsort(expected), 10):
        p = expected[rows]
        z = (log.payoff[rows].sum(dtype=float) - p.sum()) / np.sqrt((p * (1 - p)).sum())
        assert abs(z) < 4
    # Some of the log's events one by one, by the model's own words.
    hours = (log.timestamps[:3].astype("M8[h]").astype(int)).tolist()  # type: ignore[index]  # timed
    for i, hour in enumerate(hours):
        user, article = int(log.visitors.number[i]), log[i].shown
        assert expected[i] == pytest.approx(chance(world, user, article, hour), rel=1e-6)


# -- logging --


def test_the_logged_article_is_uniform_given_everything_else(
    world: ts.TodayModule, log: ts.EventLog
) -> None:
    """Chi-square by article, by the visitor's group, by hour of day, and lag one: p > 1e-4 each."""
    assert log.uniformity().p_value > 1e-4
    assert log.visitors is not None
    sizes = log.pool_sizes[log.pool]
    place = (log.position / sizes * 4).astype(int)  # which quarter of the pool, sizes aside
    even = sizes % 4 == 0
    group = world.population.groups.argmax(axis=1)[log.visitors.number]
    hour = log.pool % 24
    for other in (group, hour, log.visitors.number % 7, np.roll(place, 1)):
        table = np.zeros((int(other.max()) + 1, 4))
        np.add.at(table, (other[even], place[even]), 1)
        table = table[table.sum(axis=1) > 0]
        assert stats.chi2_contingency(table).pvalue > 1e-4


def test_a_randomised_policy_logs_its_propensities(world: ts.TodayModule) -> None:
    """Articles are shown as often as the recorded propensities say: |z| < 4."""
    policy = ts.policy("egreedy", epsilon=0.4, seed=1)
    first = world.newsroom.pool(344_928)[0].id  # of 2009-05-08
    policy.learn([1.0] * 6, first, 1.0)
    logged = world.logged_by(policy, 5000, "2009-05-08", days=1 / 24)
    assert logged.recorded_propensity is not None
    size = len(logged[0].pool)
    favourite = logged.shown == first
    assert set(np.unique(logged.recorded_propensity[favourite]).round(6)) == {
        np.float32(0.6 + 0.4 / size).round(6)
    }
    expected = 0.6 + 0.4 / size
    z = (favourite.mean() - expected) / np.sqrt(expected * (1 - expected) / len(logged))
    assert abs(z) < 4
    assert logged.ctr > 0


def test_same_seed_same_numbers(world: ts.TodayModule, tmp_path: Path) -> None:
    events = CHUNK_EVENTS + 12_345
    whole = world.random_log(events, MAY, seed=3)
    world.write_log(tmp_path / "one", events, MAY, seed=3)
    again = ts.EventLog.read(tmp_path / "one")
    for one in (again, ts.TodayModule(seed=0, users=20_000).random_log(events, MAY, seed=3)):
        assert one.visitors is not None
        assert whole.visitors is not None
        assert np.array_equal(one.users, whole.users)  # type: ignore[arg-type]  # dense
        assert np.array_equal(one.position, whole.position)
        assert np.array_equal(one.payoff, whole.payoff)
        assert np.array_equal(one.visitors.number, whole.visitors.number)
        assert one.timestamps is not None
        assert np.array_equal(one.timestamps, whole.timestamps)  # type: ignore[arg-type]  # timed
    assert not np.array_equal(whole.payoff, world.random_log(events, MAY, seed=4).payoff)


@pytest.mark.parametrize("kind", ["folder", "raw", "r6a"])
def test_same_seed_same_bytes_whatever_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    kinds: dict[str, dict[str, Any]] = {
        "folder": {},
        "raw": {"raw": True},
        "r6a": {"format": "r6a"},
    }
    monkeypatch.setattr(random_traffic, "CHUNK_EVENTS", 20_000)
    for cores in (1, 3):
        monkeypatch.setattr(os, "cpu_count", lambda: cores)  # noqa: B023  # called within this turn
        world = ts.TodayModule(seed=0, users=5_000)
        world.write_log(tmp_path / str(cores), 72_345, MAY, seed=3, **kinds[kind])
    one, three = (
        {path.relative_to(root): path.read_bytes() for path in files(root)}
        for root in (tmp_path / "1", tmp_path / "3")
    )
    assert one
    assert one == three


def files(root: Path) -> list[Path]:
    return [root] if root.is_file() else [path for path in root.rglob("*") if path.is_file()]


def test_windows_that_overlap_agree() -> None:
    one, other = ts.TodayModule(users=100), ts.TodayModule(users=100)
    week, day = one.window("2009-05-01", 7), other.window("2009-05-04", 1)
    for hour in range(24):
        later = 72 + hour
        assert {
            week.ids[a] for a in week.members[week.offsets[later] : week.offsets[later + 1]]
        } == {day.ids[a] for a in day.members[day.offsets[hour] : day.offsets[hour + 1]]}
    assert np.array_equal(
        week.chances(72, one.population.groups), day.chances(0, other.population.groups)
    )


def test_raw_logs_hold_profiles_and_no_truth(world: ts.TodayModule, tmp_path: Path) -> None:
    world.write_log(tmp_path, 1000, MAY, raw=True)
    log = ts.EventLog.read(tmp_path)
    assert log.dimension == 1
    assert log.features is None
    assert log.profiles is not None
    assert log.profiles.column_names == ["gender", "age", "location", "behaviours"]
    assert len(log.profiles) == 20_000
    assert log.profiles.slice(5, 1).to_pylist() == [world.population.profile(5)]
    assert log.article_profiles is not None
    assert log.article_profiles.column_names == ["url_categories", "editor_categories"]
    facts = world.newsroom.article(log.article_ids[0])
    assert log.article_profiles["url_categories"][0].as_py() == list(facts.url_categories)
    # The same visits with the truth for contexts.
    true = world.random_log(1000, MAY)
    assert np.array_equal(true.payoff, log.payoff)
    assert true.dimension == 6


# -- live --


def test_visits_settle_every_click_beforehand(world: ts.TodayModule) -> None:
    log = world.random_log(300, MAY, seed=5)
    for event, visit in zip(log, world.visits(300, MAY, seed=5), strict=True):
        assert visit.pool == event.pool
        assert visit.timestamp == event.timestamp
        assert visit.user.tolist() == event.user.tolist()
        assert visit.payoff(event.shown) == event.payoff
        assert visit.payoff(event.shown) == event.payoff  # asking again changes nothing
    visit = next(islice(world.visits(300, MAY), 7, None))
    known = world.population.profile(visit.visitor)
    assert visit.profile == {name: value for name, value in known.items() if value}
    assert visit.chances == pytest.approx(
        world.expected_payoff([visit.visitor] * len(visit.pool), list(visit.pool), visit.timestamp)
    )


def test_live_and_replayed_policies_agree(world: ts.TodayModule) -> None:
    """Theorem 1 on the whole world: means of 12 runs each differ by less than 4 standard errors."""
    live, replayed, gains = [], [], []
    for seed in range(12):
        policy = ts.policy("ucb", alpha=0.2, seed=seed)
        played = world.live(policy, 1500, MAY, days=0.5, seed=seed)
        live.append(played.ctr)
        log = world.random_log(1500 * 20, MAY, days=0.5, seed=100 + seed)
        replayed.append(ts.replay(ts.policy("ucb", alpha=0.2, seed=seed), log).learning.ctr)
        gains.append(played.expected - played.random)
        assert played.expected < played.best
        assert played.regret == pytest.approx(1500 * (played.best - played.expected))
    assert np.mean(gains) > 0  # it learns something, even from 1,500 trials
    spread = np.sqrt(np.var(live, ddof=1) / 12 + np.var(replayed, ddof=1) / 12)
    assert abs(np.mean(live) - np.mean(replayed)) < 4 * spread


def test_a_policy_of_ones_own_plays_too(world: ts.TodayModule) -> None:
    played = world.live(First(), 50, MAY)
    assert played.trials == 50
    assert played.deployed is None
    greedy = world.live(ts.policy("egreedy", epsilon=1.0), 3000, MAY, deployment=True)
    assert greedy.deployed is not None
    assert greedy.deployed > greedy.random


# -- the facts of the paper and of Yahoo's data, within stated tolerances --


def test_the_newsroom_is_like_yahoos() -> None:
    """Yahoo's ten days: 271 articles, 39 to 51 a day, 18 to 28 new, a life of some 18 hours."""
    newsroom, start = Newsroom(WorldSettings(), seed=0), 344_000
    hours: Counter[str] = Counter()
    days: list[set[str]] = []
    for day in range(31):
        pools = [newsroom.pool(start + day * 24 + hour) for hour in range(24)]
        assert all(18 <= len(pool) <= 23 for pool in pools)
        hours.update(article.id for pool in pools for article in pool)
        days.append({article.id for pool in pools for article in pool})
    ten_days = [len(set().union(*days[first : first + 10])) for first in (0, 10, 20)]
    assert np.mean(ten_days) == pytest.approx(271, rel=0.1)
    assert np.mean(list(hours.values())) == pytest.approx(18, abs=3)
    # Yahoo's ten days had 39 to 51; the extremes of a month lie further apart.
    assert 34 <= min(map(len, days)) <= max(map(len, days)) <= 56
    new = [len(today - yesterday) for yesterday, today in pairwise(days)]
    assert np.mean(new) == pytest.approx(24, abs=1.5)
    assert np.mean([18 <= count <= 28 for count in new]) > 0.8


def test_click_rates_are_like_the_papers(world: ts.TodayModule, log: ts.EventLog) -> None:
    assert log.ctr == pytest.approx(0.035, abs=0.004)
    assert log.visitors is not None
    shown = np.bincount(log.shown_index)
    rates = np.bincount(log.shown_index, log.payoff) / np.maximum(shown, 1)
    often = rates[shown > 5000]
    assert 0.01 < np.quantile(often, 0.05) < 0.03
    assert 0.045 < np.quantile(often, 0.95) < 0.07
    group = world.population.groups.argmax(axis=1)[log.visitors.number]
    by_group = np.bincount(group, log.payoff) / np.bincount(group)
    assert by_group.min() < 0.022
    assert by_group.max() > 0.045


def test_users_come_again_and_some_often(log: ts.EventLog) -> None:
    assert log.visitors is not None
    visits = np.sort(np.bincount(log.visitors.number, minlength=20_000))[::-1]
    assert visits[:200].sum() / len(log) == pytest.approx(0.1, abs=0.01)  # the keenest 1 %
    assert np.median(visits) < visits.mean()


def test_the_ceilings_are_the_papers_table() -> None:
    """Means over four worlds of two weeks; one week's omniscient alone varies by 0.1."""
    found = [
        asdict(ts.TodayModule(seed, users=5000).ceilings(week, 7, users=400))
        for seed in range(4)
        for week in ("2009-05-03", "2009-06-07")
    ]
    mean = {name: np.mean([each[name] for each in found]) for name in found[0]}
    assert mean["random"] == pytest.approx(0.035, abs=0.002)
    assert mean["omniscient"] == pytest.approx(1.6, abs=0.08)
    assert mean["omniscient"] <= mean["context_free"] < mean["segmented"]
    assert mean["disjoint"] == pytest.approx(1.90, abs=0.08)
    assert mean["shared"] < mean["disjoint"] < mean["oracle"]


# -- what is wrong is named --


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"users": 0}, "users must be a whole number >= 1, got 0"),
        ({"users": 99999999999}, "users must be at most 2147483647, got 99999999999"),
        ({"users": float("nan")}, "users must be a whole number >= 1, got nan"),
        ({"users": 1.5}, "users must be a whole number >= 1, got 1.5"),
        ({"ctr": 0.0}, "ctr must lie between 0 and 1"),
        ({"female": (0.5, 0.5)}, "female must have 5 numbers"),
        ({"pool": (25, 19)}, "pool must be two sizes"),
        ({"births": -1}, "births must be >= 0"),
        ({"popularity": float("nan")}, "popularity must be a finite number"),
    ],
)
def test_settings_are_checked(changes: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ts.TodayModule(**changes)  # type: ignore[arg-type]  # wrong on purpose


def test_arguments_are_checked(world: ts.TodayModule) -> None:
    with pytest.raises(ValueError, match="events must be a whole number"):
        world.random_log(0)
    with pytest.raises(ValueError, match="days must be more than 0"):
        world.random_log(10, days=0)
    with pytest.raises(ValueError, match="start must be a whole hour"):
        world.random_log(10, "2009-05-01T00:30:00")
    with pytest.raises(KeyError, match="no article 'x'"):
        world.expected_payoff([0], "x", MAY)
    with pytest.raises(ValueError, match="2 users need as many articles"):
        world.expected_payoff([0, 1], ["x"], MAY)
    with pytest.raises(ValueError, match="propensity None"):
        world.logged_by(First(), 10)
