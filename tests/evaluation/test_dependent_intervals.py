"""Intervals of replays hold where visitors return, and where hours depend on one another.

Each situation is simulated, and 95 % intervals must hold the truth in 92 to 98 % of 2,000 runs
(`long`; standard error 0.5 %). The suite makes 300 runs (1.3 %), and allows for one percent more on
both sides. The seeds and settings are not those that the rule of `evaluation.dependence` was made
with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

import topstory as ts
from topstory.evaluation.blocks import HOUR, Blocks
from topstory.evaluation.replays.run import Outcome, Run
from topstory.evaluation.result import Bucket
from topstory.evaluation.uncertainty.repeats import mean_lift
from topstory.evaluation.uncertainty.simultaneous import simultaneous_lifts
from topstory.evaluation.visitor_groups import GROUPS, VisitorGroups, _scatter
from topstory.kernels.compilation import Floats

RUNS, LONG_RUNS = 300, 2_000
LOW, HIGH = 0.91, 0.99
LONG_LOW, LONG_HIGH = 0.92, 0.98


class Kept(NamedTuple):
    """The events that a replay retains."""

    hour: np.ndarray[tuple[int], np.dtype[np.int64]]
    visitor: np.ndarray[tuple[int], np.dtype[np.int64]]
    click: Floats


def bucket(kept: Kept, hours: int) -> Bucket:
    """Its sums, as a replay of a log that knows its visitors makes them."""
    groups = VisitorGroups(_scatter(kept.visitor, GROUPS), hours)
    cells = groups.cells(kept.hour.astype(np.int32), 0)
    columns = [np.bincount(cells, each, minlength=groups.count) for each in (None, kept.click) * 2]
    sums, visitors = groups.folded(np.column_stack(columns).astype(float))
    return Bucket(sums, sums, Blocks(hours, HOUR, 0), True, visitors, visitors)


def hourly(random: np.random.Generator, hours: int, fade: float, spread: float) -> Floats:
    """Effects of hours on the logit, AR(1) with this spread."""
    found = np.empty(hours)
    found[0] = random.normal()
    for t in range(1, hours):
        found[t] = fade * found[t - 1] + (1 - fade**2) ** 0.5 * random.normal()
    return spread * found


def click(random: np.random.Generator, odds: Floats) -> Floats:
    return (random.random(len(odds)) < 1 / (1 + np.exp(-odds))).astype(float)


def unknown_visitors(random: np.random.Generator, odds: Floats, trials: int = 60) -> Bucket:
    """A bucket with so many trials an hour, at these log-odds, of visitors who never return."""
    clicks = random.binomial(trials, 1 / (1 + np.exp(-odds))).astype(float)
    sums = np.column_stack([np.full(len(odds), float(trials)), clicks] * 2)
    return Bucket(sums, sums, Blocks(len(odds), HOUR, 0), True)


def covered(
    one: Callable[[np.random.Generator], bool | None], runs: int, least: float = 0.5
) -> float:
    """The share of intervals that hold, of those that there are: most of them must be."""
    found = [one(np.random.default_rng([77, seed])) for seed in range(runs)]
    known = [each for each in found if each is not None]
    assert len(known) > least * runs
    return float(np.mean(known))


def returning(visitors: int, events: int = 4_000) -> Callable[[np.random.Generator], bool | None]:
    """Visitors whose own click rates differ by 1 on the logit; the truth is over all visitors."""
    own = np.random.default_rng(1).normal(size=2_000_000)
    truth = float((1 / (1 + np.exp(3 - own))).mean())

    def one(random: np.random.Generator) -> bool | None:
        taste = random.normal(size=visitors)
        visitor = random.integers(visitors, size=events)
        hour = np.sort(random.integers(48, size=events))
        found = bucket(Kept(hour, visitor, click(random, taste[visitor] - 3)), 48)
        low, high = found.interval
        return low <= truth <= high

    return one


@pytest.mark.parametrize("visitors", [200, 1_000, 5_000])
def test_a_ctr_of_returning_visitors(visitors: int) -> None:
    assert LOW <= covered(returning(visitors), RUNS) <= HIGH


@pytest.mark.long
@pytest.mark.parametrize("visitors", [200, 1_000, 5_000])
def test_a_ctr_of_returning_visitors_at_full_size(visitors: int) -> None:
    assert LONG_LOW <= covered(returning(visitors, 20_000), LONG_RUNS) <= LONG_HIGH


def changing(fade: float, hours: int) -> Callable[[np.random.Generator], bool | None]:
    """Rates that change by the hour; the truth is over all hours that could be."""
    draws = np.random.default_rng(1).normal(size=2_000_000)
    truth = float((1 / (1 + np.exp(3 - 0.4 * draws))).mean())

    def one(random: np.random.Generator) -> bool | None:
        found = unknown_visitors(random, hourly(random, hours, fade, 0.4) - 3)
        low, high = found.interval
        assert (low != low) == found.too_short
        return None if found.too_short else low <= truth <= high

    return one


CHANGING = [(0.0, 168), (0.5, 168), (0.8, 168), (0.9, 168), (0.95, 168), (0.95, 1_000)]


@pytest.mark.parametrize(("fade", "hours"), CHANGING)
def test_a_ctr_whose_hours_depend_on_one_another(fade: float, hours: int) -> None:
    assert LOW <= covered(changing(fade, hours), RUNS) <= HIGH


@pytest.mark.long
@pytest.mark.parametrize(("fade", "hours"), CHANGING)
def test_a_ctr_whose_hours_depend_at_full_size(fade: float, hours: int) -> None:
    assert LONG_LOW <= covered(changing(fade, hours), LONG_RUNS) <= LONG_HIGH


def test_a_log_too_short_for_its_dependence_has_no_interval() -> None:
    """A week of a rate that takes weeks to change says nothing of other days."""
    random, silent = np.random.default_rng(5), 0
    for _ in range(50):
        found = unknown_visitors(random, hourly(random, 168, 0.995, 1.0) - 2, 4_000)
        silent += found.too_short
        assert np.isnan(found.interval).all() == found.too_short
        assert (found.days_needed is None) == (not found.too_short)
        assert not found.too_short or (found.days_needed or 0) > 7
    assert silent > 25


def in_its_hours(fade: float, hours: int) -> Callable[[np.random.Generator], bool | None]:
    """A log of a few days: the truth is over its own hours."""

    def one(random: np.random.Generator) -> bool | None:
        odds = hourly(random, hours, fade, 0.4) - 3
        found = unknown_visitors(random, odds)
        assert found.these_hours
        assert found.days_needed is not None
        assert found.days_needed >= 7
        low, high = found.interval
        truth = float((1 / (1 + np.exp(-odds))).mean())
        return None if found.too_short else low <= truth <= high

    return one


SHORT = [(0.5, 24), (0.9, 24), (0.95, 48), (0.8, 72), (0.95, 72), (0.9, 120)]


@pytest.mark.parametrize(("fade", "hours"), SHORT)
def test_an_interval_of_a_few_days_is_about_their_own_hours(fade: float, hours: int) -> None:
    """It counts what differs between hours as chance, so it is a little too wide."""
    assert LOW <= covered(in_its_hours(fade, hours), RUNS) <= 1


@pytest.mark.parametrize("hours", [24, 48, 72, 120])
def test_independent_visits_of_a_few_days_have_an_interval(hours: int) -> None:
    """Hours have no effect: the interval is given in 95 % or more, and holds for all hours."""

    def one(random: np.random.Generator) -> bool | None:
        found = unknown_visitors(random, np.full(hours, -3.0))
        low, high = found.interval
        return None if found.too_short else low <= 1 / (1 + np.exp(3)) <= high

    assert LOW <= covered(one, RUNS, least=0.95) <= HIGH


def test_a_lift_of_a_few_days_is_about_their_own_hours() -> None:
    def one(random: np.random.Generator) -> bool | None:
        odds = [hourly(random, 48, 0.95, 0.4) - 3 for _ in range(2)]
        ours, theirs = (1 / (1 + np.exp(-each)) for each in odds)
        low, high = mean_lift(*([unknown_visitors(random, each)] for each in odds)).interval
        return None if low != low else low <= ours.mean() / theirs.mean() - 1 <= high

    assert LOW <= covered(one, RUNS, least=0.9) <= 1


def lifted(fade: float, hours: int) -> Callable[[np.random.Generator], bool | None]:
    """Two policies as good as each other, each with effects of its own that last."""

    def one(random: np.random.Generator) -> bool | None:
        ours, theirs = (
            unknown_visitors(random, hourly(random, hours, fade, 0.4) - 3) for _ in range(2)
        )
        low, high = mean_lift([ours], [theirs]).interval
        return None if low != low else low <= 0 <= high

    return one


LIFTED = [(0.0, 168), (0.5, 168), (0.8, 168), (0.9, 168), (0.95, 168), (0.95, 600)]


@pytest.mark.parametrize(("fade", "hours"), LIFTED)
def test_a_lift_whose_hours_depend_on_one_another(fade: float, hours: int) -> None:
    assert LOW <= covered(lifted(fade, hours), RUNS) <= HIGH


@pytest.mark.long
@pytest.mark.parametrize(("fade", "hours"), LIFTED)
def test_a_lift_whose_hours_depend_at_full_size(fade: float, hours: int) -> None:
    assert LONG_LOW <= covered(lifted(fade, hours), LONG_RUNS) <= LONG_HIGH


def test_a_lift_that_changes_too_slowly_has_no_interval_and_is_not_sure() -> None:
    """Three of four: two policies whose own rates take weeks to change, in ten days."""
    silent = 0
    for seed in range(20):
        random = np.random.default_rng([9, seed])
        runs = [
            [unknown_visitors(random, hourly(random, 240, 0.999, 3.0), 20_000)] for _ in range(2)
        ]
        value, (low, high) = mean_lift(*runs)
        claim = simultaneous_lifts({"a": runs[0], "b": runs[1]})["a", "b"]
        assert np.isfinite(value)
        assert (low != low) == (high != high) == claim.too_short
        assert not (claim.too_short and claim.sure)
        silent += claim.too_short
    assert silent >= 5


def test_a_policy_that_learns_is_not_taken_for_hours_that_depend() -> None:
    """Its rate rises from 5 to 15 %, in a log whose own rate stays where it is."""
    random, trials = np.random.default_rng(6), np.full(200, 100.0)
    sums, log_sums = (
        np.column_stack([trials, random.binomial(100, rate, 200).astype(float)] * 2)
        for rate in (np.linspace(0.05, 0.15, 200), 0.05)
    )
    found = Bucket(sums, log_sums, Blocks(200, HOUR, 0), True)
    assert not found.too_short
    low, high = found.interval
    assert 0.01 < high - low < 0.02  # independent trials: 0.0083; with the trend as noise: 0.0117


def test_claims_of_a_study_allow_for_returning_visitors() -> None:
    """The same visitors in both buckets: one likes what a shows, another what b shows."""
    random = np.random.default_rng(3)
    wrong = wrong_alone = 0
    for _ in range(150):
        buckets = []
        for _ in range(2):
            taste, visitor = random.normal(size=60), random.integers(60, size=3_000)
            hour = np.sort(random.integers(48, size=3_000))
            buckets.append(bucket(Kept(hour, visitor, click(random, taste[visitor] - 2)), 48))
        runs = {"a": [buckets[0]], "b": [buckets[1]]}
        alone = {
            name: [Bucket(each.sums, each.log_sums, each.blocks, True) for each in some]
            for name, some in runs.items()
        }
        wrong += simultaneous_lifts(runs)["a", "b"].sure
        wrong_alone += simultaneous_lifts(alone)["a", "b"].sure
    assert wrong_alone > 30
    assert wrong <= 15  # 5 % are 7.5, with a standard error of 2.7


def test_a_replay_knows_its_visitors_and_an_outcome_keeps_them() -> None:
    random = np.random.default_rng(0)
    events = 3_000
    visitor = random.integers(40, size=events)
    log = ts.EventLog.from_arrays(
        np.ones((40, 1)),
        [["a", "b"]],
        np.zeros(events, int),
        random.choice(["a", "b"], size=events),
        click(random, random.normal(size=40)[visitor] * 2 - 1),
        visitor=visitor,
        timestamps=np.arange(events) * 60,
    )
    found = ts.replay(ts.policy("egreedy", epsilon=0.1), log)
    kept = found.deployment
    assert kept.visitors is not None
    assert kept.log_visitors is not None
    np.testing.assert_allclose(kept.visitors.groups.sum(axis=0), kept.sums.sum(axis=0))
    np.testing.assert_allclose(kept.visitors.cells.sum(axis=0), kept.sums.sum(axis=0))
    np.testing.assert_allclose(kept.log_visitors.groups.sum(axis=0), kept.log_sums.sum(axis=0))
    alone = Bucket(kept.sums, kept.log_sums, kept.blocks, True)
    assert np.ptp(kept.interval) > 1.5 * np.ptp(alone.interval)
    again = Outcome.of(Run.of("egreedy", {}, 1.0, 0), found).bucket("deployment")
    assert (again.interval, again.relative_interval) == (kept.interval, kept.relative_interval)
    once = ts.EventLog.from_arrays(
        np.ones((events, 1)), [["a", "b"]], log.pool, log.shown, log.payoff
    )
    assert ts.replay(ts.policy("egreedy", epsilon=0.1), once).deployment.visitors is None
