"""An alarm when a policy retains a share of events that chance does not give."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import topstory as ts
from topstory.evaluation.replays.retention import ERROR_RATE, probability_bound


def log_of(events: int, sizes: list[int], seed: int) -> ts.EventLog:
    """Uniform, with pools of these sizes in turn."""
    random = np.random.default_rng(seed)
    pools = [[f"p{i}-{j}" for j in range(size)] for i, size in enumerate(sizes)]
    pool = np.arange(events) % len(pools)
    shown = [pools[p][random.integers(len(pools[p]))] for p in pool]
    return ts.EventLog.from_arrays(
        np.ones((events, 1)), pools, pool, shown, random.random(events) < 0.1
    )


class Peeking:
    """A policy that knows what was shown: a fault no policy of this library can have."""

    def __init__(self, shown: list[str], share: float) -> None:
        self.shown, self.share, self.event = shown, share, -1

    def choose(self, user: object, pool: list[str]) -> str:
        self.event += 1
        peeks = self.event % 100 < 100 * self.share
        return self.shown[self.event] if peeks else pool[0]

    def learn(self, user: object, article: str, payoff: float) -> None: ...


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_more_retained_than_1_in_k_is_an_alarm(share: float) -> None:
    log = log_of(1000, [2, 5, 20], seed=0)
    policy = Peeking([event.shown for event in log], share)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = ts.replay(policy, log)
    assert result.learning.expected_trials == pytest.approx(
        sum(1 / k for k in [2, 5, 20] * 333) + 0.5
    )
    alarms = [str(each.message) for each in seen if each.category is ts.RetentionWarning]
    assert len(alarms) == (share > 0)
    if alarms:
        assert "retained 1,000 events in the learning bucket, where 250 are expected" in alarms[0]


def test_fewer_retained_than_1_in_k_is_an_alarm() -> None:
    class Never(Peeking):
        def choose(self, user: object, pool: list[str]) -> str:
            self.event += 1
            return next(each for each in pool if each != self.shown[self.event])

    log = log_of(1000, [5], seed=0)
    with pytest.warns(ts.RetentionWarning, match="retained 0 events .* where 200 are expected"):
        ts.replay(Never([event.shown for event in log], 0.0), log)


def test_the_bound_is_above_the_exact_probability() -> None:
    from scipy.stats import binom

    for events, size in ((20, 2), (200, 10), (5000, 3), (5000, 50)):
        expected = events / size
        for retained in np.unique(np.linspace(0, events, 40).round()):
            gap = abs(retained - expected)
            exact = binom.cdf(expected - gap, events, 1 / size)
            exact += binom.sf(np.ceil(expected + gap) - 1, events, 1 / size)
            assert probability_bound(retained, expected) >= min(exact, 1.0) * (1 - 1e-9)


def test_an_alarm_needs_few_events() -> None:
    assert probability_bound(100, 50) < ERROR_RATE  # a hundred events of pools of two, all retained
    assert probability_bound(60, 50) > ERROR_RATE


@pytest.mark.parametrize("policy", ["random", "ucb", "linucb-disjoint"])
def test_no_alarm_on_uniform_logs(policy: str) -> None:
    # 1e-6 for each bucket: 40 replays give a false alarm with a probability of at most 8e-5.
    with warnings.catch_warnings():
        warnings.simplefilter("error", ts.RetentionWarning)
        for seed in range(40):
            ts.replay(ts.policy(policy, seed=seed), log_of(500, [2, 7], seed))
