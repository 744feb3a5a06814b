"""Looked at after every event, at most 5 % of streams ever exclude the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import betaln, gammainc, gammaln

from topstory.anytime import (
    AnytimeValue,
    anytime_lift,
    anytime_rate,
    log_mixture,
    log_wealth,
)

STREAMS, EVENTS = 1_000, 2_000


@pytest.mark.parametrize("rate", [0.03, 0.5])
def test_a_rate_is_excluded_by_at_most_one_stream_in_twenty(rate: float) -> None:
    """The interval excludes the rate if and only if the wealth has reached 20."""
    clicks = (np.random.default_rng(0).random((STREAMS, EVENTS)) < rate).cumsum(axis=1)
    trials = np.arange(1, EVENTS + 1)
    wealth = betaln(0.5 + clicks, 0.5 + trials - clicks) - math.log(math.pi)
    wealth -= clicks * math.log(rate) + (trials - clicks) * math.log(1 - rate)
    ever = (wealth >= math.log(20)).any(axis=1)
    assert 0.002 < ever.mean() <= 0.05  # at most 5 %, and not by being useless
    for stream, t in ((0, 10), (1, 500), (2, 1_999), (int(ever.argmax()), EVENTS - 1)):
        n, r = int(trials[t]), int(clicks[stream, t])
        assert log_wealth(n, r, rate) == pytest.approx(wealth[stream, t])
        low, high = anytime_rate(n, r)
        assert (low <= rate <= high) == (wealth[stream, t] < math.log(20))


def test_ordinary_intervals_fail_where_these_hold() -> None:
    """Looked at after every event, a 95 % interval excludes the truth in half of all streams."""
    clicks = (np.random.default_rng(0).random((STREAMS, EVENTS)) < 0.5).cumsum(axis=1)
    trials = np.arange(1, EVENTS + 1)
    off = np.abs(clicks / trials - 0.5) > 1.96 * 0.5 / np.sqrt(trials)
    assert off[:, 20:].any(axis=1).mean() > 0.4


def test_a_weighted_value_is_excluded_by_at_most_one_stream_in_twenty() -> None:
    """Weights of 5 and 0.55 from a log that showed the policy's choice to one in ten."""
    random = np.random.default_rng(1)
    rare = random.random((STREAMS, EVENTS)) < 0.1
    weight = np.where(rare, 5.0, 0.5 / 0.9)
    payoff = random.random((STREAMS, EVENTS)) < np.where(rare, 0.3, 0.1)
    truth = 0.5 * 0.3 + 0.5 * 0.1
    ever = np.zeros(STREAMS, bool)
    for numbers, mean in ((weight * payoff, truth), (weight * (1 - payoff), 1 - truth)):
        total = numbers.cumsum(axis=1)
        count = np.arange(1, EVENTS + 1)
        before = np.concatenate([np.zeros((STREAMS, 1)), total[:, :-1]], axis=1)
        squares = ((numbers - np.minimum(1, (0.5 + before) / count)) ** 2).cumsum(axis=1)
        distance = total - mean * count
        above = np.maximum(distance, 0.0)
        wealth = above + squares - (squares + 1) * np.log(above + squares + 1)
        wealth += np.log(gammainc(squares + 1, above + squares + 1)) + gammaln(squares + 1)
        wealth -= math.log(gammainc(1, 1))
        ever |= ((distance > 0) & (wealth >= math.log(40))).any(axis=1)
    assert ever.mean() <= 0.05
    stream = AnytimeValue()
    for w, r in zip(weight[0], payoff[0], strict=True):
        stream.add(float(w), float(r))
    low, high = stream.interval()
    assert low < truth < high
    assert high - low < 0.4


def test_the_mixture_is_the_formula() -> None:
    for distance, squares in ((0.5, 0.1), (30.0, 200.0)):
        at = distance + squares + 1
        expected = distance + squares - (squares + 1) * math.log(at)
        expected += math.log(gammainc(squares + 1, at)) + gammaln(squares + 1)
        expected -= math.log(gammainc(1, 1))
        assert log_mixture(distance, squares) == pytest.approx(expected)


def test_intervals_shrink_and_contain_the_mean() -> None:
    widths = []
    for n in (0, 10, 100, 10_000, 10**7):
        low, high = anytime_rate(n, n * 0.04)
        assert low <= 0.04 <= high
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 1e-3


def test_a_lift_without_a_payoff_in_the_base_has_no_upper_end() -> None:
    low, high = anytime_lift(1_000, 50, 100, 0)
    assert high == math.inf
    assert -1 < low < 0


@pytest.mark.parametrize("given", [(10, 11), (10, -1), (10, math.nan)])
def test_payoffs_above_one_are_refused(given: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        anytime_rate(*given)
    with pytest.raises(ValueError, match="level must be"):
        anytime_rate(1, 1, level=1.0)
    assert AnytimeValue().interval() == (0.0, 1.0)
    with pytest.raises(ValueError, match="payoff from 0 to 1"):
        AnytimeValue().add(1.0, 1.5)
