"""Tuning is replay, parameter by parameter; averages over seeds know both kinds of luck."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from tests.worlds import changing_pools, world

import topstory as ts
from topstory.engines import engine
from topstory.evaluation import (
    NotUniformWarning,
    Outcome,
    Run,
    grid_runs,
    mean_lift,
    mean_relative_ctr,
    play_all,
)
from topstory.evaluation.tuning.grids import default_grid, payoff_scale


@pytest.fixture(scope="module")
def log() -> ts.EventLog:
    return world(seed=1).log(6_000, changing_pools(12, 5, 8, seed=2), np.random.default_rng(3))


@pytest.fixture(scope="module")
def clear() -> ts.EventLog:
    """One of four articles is best by far: every exploration finds it, and then only costs."""
    random = np.random.default_rng(5)
    shown = random.integers(4, size=20_000)
    clicked = random.random(20_000) < np.array([0.5, 0.1, 0.1, 0.1])[shown]
    ids = list("abcd")
    return ts.EventLog.from_arrays(
        np.ones((20_000, 1)), [ids], [0] * 20_000, [ids[i] for i in shown], clicked
    )


def test_a_point_is_the_replay_with_that_parameter(log: ts.EventLog) -> None:
    grid: dict[str, Any] = {"grid": [0.1, 1.0], "sizes": [1.0, 0.3], "ridge": 2.0, "repeats": 1}
    tuning = ts.tune("linucb-disjoint", log, seed=4, **grid)
    for point in tuning.points:
        policy = ts.policy("linucb-disjoint", alpha=point.parameter, ridge=2.0, seed=4)
        result = ts.replay(policy, log, size=point.size, seed=4)
        assert point.deployment.value == pytest.approx(result.deployment.relative_ctr, rel=1e-12)
        assert point.learning.interval == pytest.approx(result.learning.relative_interval)
        assert point.outcomes[0].by_article == result.by_article


def test_what_decides_is_the_total_at_the_users_split_unless_a_bucket_is_named(
    clear: ts.EventLog,
) -> None:
    grid = [0.05, 0.2, 0.5, 1.0]
    for share in (0.0, 0.1, 1.0):
        tuning = ts.tune("egreedy", clear, grid=grid, learning_share=share)
        assert tuning.on == "total"
        for point in tuning.points:
            mixed = (1 - share) * point.deployment.value + share * point.learning.value
            assert point.total.value == pytest.approx(mixed, rel=1e-3)
            assert point.exploration.learning_share == share
    same = ts.tune("egreedy", clear, grid=grid, on="learning")
    assert same.best().parameter == tuning.best().parameter == 0.05
    chosen = same.table().filter(same.table()["chosen"])
    assert chosen["epsilon"].to_pylist() == [0.05] * 3


def test_the_recommendation_is_not_the_luckiest_point() -> None:
    """Where every value earns the same, the highest point looks 4 % better; what is expected no."""
    random = np.random.default_rng(0)
    own, expected = [], []
    for _ in range(8):
        shown = random.choice(["a", "b", "c"], 3_000)
        log = ts.EventLog.from_arrays(
            np.ones((3_000, 1)), [["a", "b", "c"]], [0] * 3_000, shown, random.random(3_000) < 0.1
        )
        tuning = ts.tune("ucb", log, engine="serial")
        own.append(tuning.highest().total.value)
        expected.append(tuning.expected().value)
    assert np.mean(own) > 1.03
    assert abs(np.mean(expected) - 1) < 0.03


@pytest.mark.parametrize("on", ["total", "deployment"])
def test_values_that_cannot_be_told_apart_go_to_the_one_that_costs_less_while_learning(
    clear: ts.EventLog, on: str
) -> None:
    tuning = ts.tune("egreedy", clear, grid=[0.05, 0.2, 0.5, 0.8], on=on)
    least, most = tuning.curve()[0], tuning.curve()[-1]
    assert least.deployment.interval.low < most.deployment.value < least.deployment.interval.high
    assert least.learning.interval.low > most.learning.interval.high
    assert tuning.best() is least
    assert tuning.differs() == (on == "total")  # the total knows what learning costs
    assert least.exploration.clicks.value < most.exploration.clicks.value


def test_the_best_at_the_edge_is_said_and_more_values_are_tried(clear: ts.EventLog) -> None:
    given = ts.tune("egreedy", clear, grid=[0.5, 0.8], on="learning")
    assert given.at_edge() == ("epsilon",)
    assert given.widened == ()  # the values were the user's own
    random = np.random.default_rng(1)
    users = np.column_stack([random.normal(0, 0.3, (8_000, 4)), np.ones(8_000)])
    best = (users[:, :4] @ random.normal(0, 1, (4, 5))).argmax(axis=1)
    shown, ids = random.integers(5, size=8_000), list("abcde")
    sharp = ts.EventLog.from_arrays(
        users, [ids], [0] * 8_000, [ids[i] for i in shown], (shown == best).astype(float)
    )
    default = ts.tune("linucb-disjoint", sharp)
    # Payoffs without noise need no prior: the lowest ridge of the default grid is the best of it.
    assert "ridge" in default.widened
    assert 0.1 in {point.parameters["ridge"] for point in default.points}


def test_the_ridge_is_searched_by_default(log: ts.EventLog) -> None:
    tuning = ts.tune("linucb-disjoint", log[:1_000])
    ridges = {point.parameters["ridge"] for point in tuning.points}
    assert ridges >= {1.0, 10.0, 100.0}
    assert {len(point.outcomes) for point in tuning.points} == {20}  # the log is short
    fixed = ts.tune("linucb-disjoint", log, ridge=2.0, grid=[0.1, 0.4], repeats=2)
    assert {point.parameters["ridge"] for point in fixed.points} == {2.0}


def test_small_sizes_are_run_with_three_seeds() -> None:
    runs = grid_runs("ucb", [0.1, 0.2], sizes=[1.0, 0.05], seed=7)
    assert [run.seed for run in runs if run.size == 1.0] == [7, 7]
    assert [run.seed for run in runs if run.size == 0.05] == [7, 8, 9, 7, 8, 9]
    assert len(grid_runs("ucb", [0.1], sizes=[1.0, 0.05], repeats=2)) == 4


def test_ridges_are_searched_with_every_parameter(log: ts.EventLog) -> None:
    tuning = ts.tune("egreedy-disjoint", log, grid=[0.1, 0.2], ridges=[1.0, 10.0], repeats=2)
    assert {tuple(point.parameters.values()) for point in tuning.points} == {
        *((0.1, 1.0), (0.2, 1.0)),
        *((0.1, 10.0), (0.2, 10.0)),
    }


def test_every_engine_gives_the_same_bits(log: ts.EventLog) -> None:
    runs = grid_runs("linucb-disjoint", [0.1, 1.0], sizes=[1.0, 0.05])
    found = [
        {outcome.run: _told(outcome) for outcome in play_all(runs, log, engine(name))}
        for name in ("serial", "local")
    ]
    assert found[0] == found[1]
    assert set(found[0]) == set(runs)


def test_an_outcome_comes_back_from_json_to_the_bit(log: ts.EventLog) -> None:
    outcome = next(play_all([Run.of("ucb", {"alpha": 0.3}, 1.0, 0)], log, engine("serial")))
    again = msgspec.json.decode(msgspec.json.encode(outcome), type=Outcome)
    assert _told(again) == _told(outcome)
    for name in ("deployment", "learning"):
        assert again.bucket(name).interval == outcome.bucket(name).interval


def test_a_warm_policy_is_tuned_with_its_offset(log: ts.EventLog) -> None:
    offset = ts.fit_offset(log[:1000]).table(log.articles)
    point = ts.tune("ucb-warm", log, grid=[0.2], offset=offset, repeats=1).best()
    result = ts.replay(ts.policy("ucb-warm", alpha=0.2, offset=offset), log)
    assert point.deployment.value == pytest.approx(result.deployment.relative_ctr, rel=1e-12)


def test_a_log_that_is_not_uniform_is_reported_once(log: ts.EventLog) -> None:
    skewed = log[np.flatnonzero((log.position == 0) | (np.arange(len(log)) % 3 == 0))]
    with pytest.warns(NotUniformWarning) as reported:
        ts.tune("ucb", skewed, grid=[0.1, 0.2, 0.3], repeats=2)
    assert len(reported) == 1


def test_progress_reaches_the_whole(log: ts.EventLog) -> None:
    reported: list[tuple[float, float]] = []
    ts.tune(
        "ucb", log, grid=[0.1, 0.2], progress=lambda done, total: reported.append((done, total))
    )
    assert reported == [(float(done), 40.0) for done in range(1, 41)]  # 20 seeds


def test_an_average_over_equal_seeds_is_one_of_them(log: ts.EventLog) -> None:
    bucket = ts.replay(ts.policy("ucb"), log).learning
    one, three = mean_relative_ctr([bucket]), mean_relative_ctr([bucket] * 3)
    assert three.value == pytest.approx(one.value)
    # Seeds share the log's clicks: repeating them makes nothing surer.
    assert three.interval == pytest.approx(one.interval, rel=1e-6)
    assert one.interval == pytest.approx(bucket.relative_interval)


def test_luck_of_the_learning_path_widens_the_interval(log: ts.EventLog) -> None:
    """Against the same clicks as one run: what is added is how far the seeds are apart."""
    buckets = [ts.replay(ts.policy("ucb", seed=s), log, size=0.02, seed=s).learning for s in (0, 1)]
    assert buckets[0].ctr != buckets[1].ctr
    sums, logged = (buckets[0].sums + buckets[1].sums, buckets[0].log_sums + buckets[1].log_sums)
    lucky = mean_relative_ctr(buckets)
    plain = mean_relative_ctr([type(buckets[0])(sums, logged, buckets[0].blocks, True)])
    assert lucky.value == pytest.approx(plain.value)
    assert lucky.interval.low < plain.interval.low
    assert lucky.interval.high > plain.interval.high


def test_the_interval_over_seeds_covers_the_truth_and_is_no_wider_than_that_takes() -> None:
    """In 200 made-up cells with both kinds of luck, 95 % intervals miss at most 18 (p < 0.01).

    Nor are they wide: the estimates' own spread is known here, 1.96 of it would do if it were
    known to the interval too, and Student's quantile is 3.2 with three degrees of freedom.
    """
    random = np.random.default_rng(0)
    blocks, trials, missed = 48, 400.0, 0
    values, widths = [], []
    log = ts.replay(ts.policy("random"), world(seed=1).log(100, [[0, 1]], random)).learning
    for _ in range(200):
        base = random.binomial(8000, 0.04, blocks)
        weather = random.normal(0, 0.05, blocks)  # moves a block's clicks for all seeds alike
        buckets = []
        for _ in range(3):
            luck = random.normal(0, 0.04)
            clicks = random.binomial(int(trials), 0.06 * np.exp(weather + luck))
            sums = np.column_stack([np.full(blocks, trials), clicks, *[np.zeros(blocks)] * 2])
            logged = np.column_stack([np.full(blocks, 8000.0), base, *[np.zeros(blocks)] * 2])
            buckets.append(type(log)(sums, logged, log.blocks, True))
        value, (low, high) = mean_relative_ctr(buckets)
        missed += not low <= 1.5 <= high
        values.append(np.log(value))
        widths.append(np.log(high / low) / 2)
    assert missed <= 18
    assert np.mean(widths) < 3.2 * np.std(values)


def test_a_lift_compares_seed_by_seed(log: ts.EventLog) -> None:
    ours = ts.replay(ts.policy("linucb-disjoint"), log)
    base = ts.replay(ts.policy("egreedy"), log)
    found = mean_lift([ours.deployment], [base.deployment])
    wanted = ts.lift(ours, base)
    assert found.value == pytest.approx(wanted.value)
    assert found.interval == pytest.approx(wanted.interval)
    with pytest.raises(ValueError, match="the same seeds of both policies, got 1 and 2"):
        mean_lift([ours.deployment], [base.deployment] * 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": "random"}, "no policy to tune is called 'random'; there are egreedy"),
        (
            {"policy": "ucb", "on": "both"},
            "on must be 'total', 'deployment' or 'learning', got 'both'",
        ),
        ({"policy": "ucb", "sizes": [0.0]}, r"a size is above 0 and at most 1, got 0\.0"),
        (
            {"policy": "ucb", "repeats": 0},
            "repeats must be at least 1: how many seeds to run, got 0",
        ),
        ({"policy": "ucb", "learning_share": 2}, "learning_share must be between 0 and 1"),
        ({"policy": "ucb", "ridges": [1.0]}, "policy 'ucb' has no ridge to search"),
        ({"policy": "ucb", "grid": []}, "a grid needs at least one value"),
        ({"policy": "ucb", "engine": "spark"}, "engine must be one of"),
    ],
)
def test_what_cannot_be_tuned_is_refused(
    log: ts.EventLog, arguments: dict[str, object], message: str
) -> None:
    given = dict(arguments)
    with pytest.raises(ValueError, match=message):
        ts.tune(str(given.pop("policy")), log, **given)  # type: ignore[arg-type] # wrong on purpose


def _told(outcome: Outcome) -> tuple[object, ...]:
    """All that it says, the time it took aside."""
    return tuple(getattr(outcome, name) for name in outcome.__struct_fields__ if name != "seconds")


def test_the_default_grid_scales_with_the_payoffs() -> None:
    """Clicks worth 50 each are tuned over 50 times the values; clicks as ever."""
    random = np.random.default_rng(0)
    shown = random.choice(["rain", "sun"], 1000)
    clicked = random.random(1000) < 0.2

    def tried(payoff: Any) -> list[float]:
        log = ts.EventLog.from_arrays(
            np.ones((1000, 1)), [["rain", "sun"]], np.zeros(1000, int), shown, payoff
        )
        found = ts.tune("ucb", log, repeats=1, engine="serial")
        return [point.parameters["alpha"] for point in found.curve(1.0)]

    usual = list(default_grid("ucb"))
    assert set(usual) <= set(tried(clicked))
    assert {50 * alpha for alpha in usual} <= set(tried(50.0 * clicked))
    assert payoff_scale((3 - 2 * clicked).astype(np.float32)) == pytest.approx(2)
    assert payoff_scale(np.full(5, 7, np.float32)) == 1
    assert default_grid("softmax-disjoint", 10.0)[0] == pytest.approx(0.01)
    assert default_grid("squarecb-disjoint", 10.0)[0] == pytest.approx(1.0)


def test_what_is_recommended_does_not_depend_on_the_unit_of_payoffs() -> None:
    """Sales of 100 each: α counts on that scale, also where little is known of it."""
    random = np.random.default_rng(1)
    shown = random.choice(["rain", "sun", "fog"], 3000)
    sold = random.random(3000) < np.where(shown == "sun", 0.06, 0.04)

    def recommended(unit: float) -> float:
        log = ts.EventLog.from_arrays(
            np.ones((3000, 1)), [["rain", "sun", "fog"]], np.zeros(3000, int), shown, unit * sold
        )
        return ts.tune("ucb", log, repeats=2, engine="serial").best().parameters["alpha"]

    assert recommended(100.0) == pytest.approx(100 * recommended(1.0))
