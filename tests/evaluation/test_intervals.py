"""An interval at 95 % covers the truth in 95 % of runs: 93 to 97 % of 1,000 seeded ones."""

import numpy as np
import pytest
from tests.worlds import world

import topstory as ts
from topstory.evaluation.intervals import rate_interval, ratio_interval

RUNS = 1000
LOW, HIGH = 0.93, 0.97  # a true 95 % fails this in 1 run of 250; 92 % or 98 % in 9 of 10


def test_the_interval_of_a_fixed_policys_ctr_covers_its_truth() -> None:
    place = world(seed=31, kinds=50, articles=3, rate=0.1)
    fixed = ts.policy("egreedy", epsilon=0.0)
    fixed.learn(place.users[0], place.ids[1], 1.0)  # from now on, article 1 has the best estimate
    truth = place.chances[:, 1].mean()
    covered = 0
    for run in range(RUNS):
        log = place.log(2400, [[0, 1, 2]], np.random.default_rng([1, run]), hourly=run % 2 == 0)
        result = ts.replay(fixed, log, size=0.0)
        low, high = result.deployment.interval
        covered += low <= truth <= high
    assert LOW <= covered / RUNS <= HIGH


@pytest.mark.parametrize("blocks", [24, 200])
def test_intervals_cover_when_clicks_come_in_bursts(blocks: int) -> None:
    """Each block has a click rate of its own: trials within it are far from independent."""
    random = np.random.default_rng(blocks)
    covered, naive = 0, 0
    for _ in range(RUNS):
        trials = random.poisson(300, blocks).astype(float)
        clicks = random.binomial(trials.astype(int), random.beta(4, 96, blocks)).astype(float)
        low, high = rate_interval(trials, clicks, True, 0.95)
        covered += low <= 0.04 <= high
        rate, half = clicks.sum() / trials.sum(), 0.0
        half = 1.96 * np.sqrt(rate * (1 - rate) / trials.sum())
        naive += abs(rate - 0.04) <= half
    assert LOW <= covered / RUNS <= HIGH
    assert naive / RUNS < 0.8  # what counting trials as independent would give


def test_intervals_cover_for_few_clicks_and_for_real_payoffs() -> None:
    random = np.random.default_rng(3)
    few, real = 0, 0
    for _ in range(RUNS):
        trials = np.full(100, 8.0)
        low, high = rate_interval(trials, random.binomial(8, 0.01, 100).astype(float), True, 0.95)
        few += low <= 0.01 <= high
        low, high = rate_interval(trials, random.gamma(8 * 0.5, 1.0, 100), False, 0.95)
        real += low <= 0.5 <= high
    assert LOW <= few / RUNS <= 0.98  # eight clicks: whole numbers can't do better
    assert LOW <= real / RUNS <= HIGH


def test_the_interval_of_a_ratio_covers_also_when_the_rates_move_together() -> None:
    random = np.random.default_rng(4)
    covered, paired, apart = 0, 0.0, 0.0
    for _ in range(RUNS):
        weather = random.gamma(4, 1 / 4, 60)  # lifts both policies' clicks in the same hours
        ours = random.poisson(200 * 0.06 * weather).astype(float)
        theirs = random.poisson(200 * 0.05 * weather).astype(float)
        trials = np.full(60, 200.0)
        low, high = ratio_interval(trials, ours, trials, theirs, 0.95)
        covered += low <= 1.2 <= high
        paired += high - low
        low, high = ratio_interval(trials, ours, trials, random.permutation(theirs), 0.95)
        apart += high - low
    assert LOW <= covered / RUNS <= HIGH
    assert paired < 0.7 * apart


def test_nothing_clicked_is_still_an_interval() -> None:
    low, high = rate_interval(np.full(50, 10.0), np.zeros(50), True, 0.95)
    assert low == 0.0
    assert 0.004 < high < 0.012


def test_lift_compares_two_policies_on_the_same_log() -> None:
    place = world(seed=5)
    log = place.log(30_000, [list(range(6))], np.random.default_rng(0), hourly=False)
    better, worse = (ts.replay(ts.policy(name), log) for name in ("linucb-disjoint", "random"))
    found = ts.lift(better, over=worse)
    assert found.value == pytest.approx(better.deployment.ctr / worse.deployment.ctr - 1)
    assert 0 < found.interval.low < found.value < found.interval.high
    nothing = ts.lift(better, over=better, bucket="learning")
    assert nothing.value == nothing.interval.low == nothing.interval.high == 0
    with pytest.raises(ValueError, match="same log"):
        ts.lift(better, over=ts.replay(ts.policy("random"), log[:1000]))
    with pytest.raises(ValueError, match="bucket must be"):
        ts.lift(better, over=worse, bucket="random")
