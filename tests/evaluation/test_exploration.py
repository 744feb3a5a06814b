"""What exploring costs, and what both buckets earn together."""

from __future__ import annotations

import numpy as np
import pytest
from tests.worlds import world

import topstory as ts
from topstory.evaluation import (
    Bucket,
    MeanBucket,
    Result,
    exploration_cost,
    mean_relative_ctr,
    total_bucket,
)
from topstory.evaluation.blocks import Blocks


@pytest.fixture(scope="module")
def runs() -> list[Result]:
    log = world(seed=1).log(20_000, [list(range(6))], np.random.default_rng(3), hourly=False)
    return [ts.replay(ts.policy("egreedy", epsilon=1.0, seed=s), log, seed=s) for s in range(3)]


def test_the_total_is_the_mix_of_both_buckets(runs: list[Result]) -> None:
    for share in (0.0, 0.25, 1.0):
        total = total_bucket(runs[0].deployment, runs[0].learning, share)
        for name in ("ctr", "relative_ctr", "weighted_ctr"):
            deployed, learned = (getattr(b, name) for b in (runs[0].deployment, runs[0].learning))
            assert getattr(total, name) == pytest.approx((1 - share) * deployed + share * learned)
    alone = total_bucket(runs[0].deployment, runs[0].learning, 0.0)
    assert alone.relative_interval == pytest.approx(runs[0].deployment.relative_interval)


def test_exploring_costs_the_share_that_learns_times_the_difference(runs: list[Result]) -> None:
    deployed, learned = (
        MeanBucket(tuple(getattr(r, b) for r in runs)) for b in ("deployment", "learning")
    )
    found = exploration_cost(deployed.runs, learned.runs, 0.2)
    assert found.clicks.value == pytest.approx(20_000 * (deployed.ctr - learned.ctr))
    assert found.clicks.interval.low < found.clicks.value < found.clicks.interval.high


def test_the_interval_of_the_cost_covers_it() -> None:
    """In 92 to 98 % of 300 made-up runs, whose buckets are known: 95 % fails that in 1 of 50."""
    random = np.random.default_rng(2)
    covered = 0
    for _ in range(300):
        runs = []
        for _ in range(3):
            luck = np.exp(random.normal(0, 0.03))
            sums = [
                np.column_stack([np.full(50, 400.0), clicks, np.full(50, 400.0), clicks])
                for rate in (0.06, 0.05)
                for clicks in [random.binomial(400, rate * luck, 50)]
            ]
            runs.append([Bucket(each, sums[0], Blocks(50, 1, None), True) for each in sums])
        found = exploration_cost([r[0] for r in runs], [r[1] for r in runs], 0.1).clicks
        covered += found.interval.low <= 100 <= found.interval.high
    assert 0.92 <= covered / 300 <= 0.99


def test_a_share_of_traffic_is_between_0_and_1(runs: list[Result]) -> None:
    for share in (-0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="learning_share must be between 0 and 1"):
            total_bucket(runs[0].deployment, runs[0].learning, share)


def test_nothing_shown_is_no_total() -> None:
    log = world(seed=1).log(50, [list(range(6))], np.random.default_rng(3), hourly=False)
    result = ts.replay(ts.policy("ucb"), log)
    found = result.learning
    none = Bucket(0 * found.sums, found.log_sums, found.blocks, found.binary)
    assert np.isnan(mean_relative_ctr([total_bucket(none, found)]).value)
