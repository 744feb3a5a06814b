"""`plan`: so many visitors do show the lift, and fewer do not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.test_training import personalised_log

import topstory as ts
from topstory.evaluation import plan


def log_of(rate: float, events: int, articles: int) -> ts.EventLog:
    random = np.random.default_rng(0)
    return ts.EventLog.from_arrays(
        np.ones((events, 1)),
        [[f"a{i}" for i in range(articles)]],
        np.zeros(events, int),
        ["a0"] * events,
        random.random(events) < rate,
        timestamps=np.arange(events) * 86_400 / 1_000,
    )


def test_the_planned_visits_show_the_lift_four_times_in_five() -> None:
    """2,000 simulated experiments with counts alone: power 0.8, standard error 0.009."""
    found = plan(log_of(0.1, 20_000, 5), lift=0.2, shares=[0.2])
    option, value = found.options[0], found.value
    random = np.random.default_rng(1)
    matched, others = round(0.2 * option.visits / 5), round(0.8 * option.visits)
    new = random.binomial(matched, value * 1.2, 2_000) / matched
    old = random.binomial(others, value, 2_000) / others
    error = np.sqrt((1 - value) / value * (1 / matched + 1 / others))
    assert (np.log(new / old) > 1.96 * error).mean() == pytest.approx(0.8, abs=0.04)


def test_cost_and_days_follow_from_the_visits() -> None:
    log = log_of(0.1, 20_000, 5)
    found = plan(log, lift=0.05)
    assert found.visits_per_day == pytest.approx(1_000, rel=1e-3)
    assert (found.random_value, found.pool_size) == (None, 5.0)
    visits = [option.visits for option in found.options]
    assert visits == sorted(visits, reverse=True)  # more exploration, fewer visits
    for option in found.options:
        assert option.days == pytest.approx(option.visits / 1_000, rel=1e-3)
        assert option.cost == pytest.approx(option.visits * option.share * found.value)
        assert option.cost_share == pytest.approx(option.share)


def test_recorded_propensities_tell_what_random_articles_earn() -> None:
    """Uniform choice earns (0.5 + 0.15)/2 there, and the log more."""
    found = plan(personalised_log(20_000), lift=0.1)
    assert found.random_value == pytest.approx(0.325, abs=0.02)
    assert found.options[0].cost_share == pytest.approx(0.01 * (1 - 0.325 / found.value), abs=1e-3)


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"lift": 0.0}, "lift must be above 0"),
        ({"lift": 0.1, "shares": [1.0]}, "a share of visitors must be between 0 and 1"),
    ],
)
def test_bad_arguments_are_refused(given: dict[str, object], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        plan(log_of(0.1, 100, 2), **given)  # type: ignore[arg-type]


def test_a_log_without_a_payoff_or_without_events_is_refused() -> None:
    with pytest.raises(ValueError, match="payoffs are all 0"):
        plan(log_of(0.0, 100, 2), 0.1)
    with pytest.raises(ValueError, match="no events"):
        plan(log_of(0.1, 100, 2)[:0], 0.1)
