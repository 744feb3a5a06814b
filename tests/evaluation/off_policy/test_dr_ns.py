"""DR-ns: a policy that learns, on a log that another policy wrote."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.test_training import personalised_log
from tests.policies.comparing import same_model
from tests.worlds import World

import topstory as ts
from topstory.kernels.compilation import compiled
from topstory.kernels.randomness import KEEP, stream, unit
from topstory.models.input_range import NotFiniteError


@compiled
def drawn(seed: np.uint64, t: int) -> float:
    """The event's own random number, which only kernels can draw."""
    return float(unit(stream(seed, t), KEEP))


def uniform_log(events: int = 3_000) -> ts.EventLog:
    """Pools of one size, all different."""
    random = np.random.default_rng(5)
    world = World(
        users=np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.3, 0.7, 1.0]]),
        features=np.column_stack([random.normal(size=(5, 2)), np.ones(5)]),
        chances=random.uniform(0.1, 0.6, (3, 5)),
    )
    return world.log(events, [[0, 1, 2], [1, 2, 3], [2, 3, 4]], random)


def test_on_a_uniform_log_it_is_replay_event_for_event() -> None:
    """A policy that does not randomise learns from the events that replay retains, and no other."""
    log, name = uniform_log(), "linucb-disjoint"
    found, replayed = ts.dr_ns(ts.policy(name), log), ts.replay(ts.policy(name), log)
    assert found.trials == replayed.learning.trials
    assert same_model(found.policy, replayed.policy)
    # Every event counts here, and only those retained there: the same value, with other noise.
    assert found.value.value == pytest.approx(replayed.learning.ctr, abs=0.03)
    assert found.missing < 0.01  # until the first match, c is 1


def _twin(policy: ts.Policy, log: ts.EventLog, quantile: float, seed: int) -> tuple[float, int]:
    """The paper's algorithm as it is written; a share q of all ratios is at most the q-quantile."""
    trained, c, gained, factors, ratios = policy.copy(), 1.0, 0.0, 0.0, list[float]()
    accepted, paid = 0, 0.0
    for t, event in enumerate(log):
        chances = trained.probabilities(event.user, list(event.pool))
        chance = float(chances[event.pool.index(event.shown)])
        p = float(event.propensity)
        mean = paid / t if t else 0.0
        weight = chance / p
        gained += c * (mean + weight * (event.payoff - mean))
        factors += c
        paid += event.payoff
        ratios.append(p / chance if chance > 0 else np.inf)
        if drawn(np.uint64(seed), t) < c * weight:
            trained.learn(event.user, event.shown, event.payoff)
            accepted += 1
            place = max(0, int(np.ceil(quantile * len(ratios))) - 1)
            c = min(1.0, sorted(ratios)[place])
    return gained / factors, accepted


@pytest.mark.parametrize("quantile", [0.0, 0.2])
@pytest.mark.parametrize("name", ["softmax-disjoint", "egreedy-disjoint"])
def test_it_is_the_papers_algorithm(name: str, quantile: float) -> None:
    """A randomised policy; with q > 0 the quantile is known to 1 %, so a few events may differ."""
    log = personalised_log(1_500)
    policy = ts.policy(name)
    # Equal scores: the kernels draw, the twin has their mean. One trial of each tells them apart.
    for article, payoff in (("a", 1.0), ("b", 0.5)):
        policy.learn([0.5, 0.4, 1.0], article, payoff)
    found = ts.dr_ns(policy, log, quantile=quantile, seed=4)
    value, accepted = _twin(policy, log, quantile, seed=4)
    if quantile == 0:
        assert found.trials == accepted
        assert found.value.value == pytest.approx(value, rel=1e-6)
        assert found.missing == pytest.approx(0.0, abs=0.05)  # c starts at 1
    else:
        assert found.trials == pytest.approx(accepted, rel=0.1)
        assert found.value.value == pytest.approx(value, abs=0.05)


def test_a_policy_that_does_not_change_has_the_value_that_evaluate_finds() -> None:
    """Uniform choice: no history matters. Truth (0.5 + 0.15)/2; 20,000 events, 3 errors: 0.02."""
    log = personalised_log(20_000)
    found = ts.dr_ns(ts.policy("egreedy-disjoint", epsilon=1.0), log)
    assert found.value.value == pytest.approx(0.325, abs=0.02)
    low, high = found.value.interval
    assert low < 0.325 < high
    assert found.lift.value == pytest.approx(found.value.value / log.ctr - 1)


def test_a_larger_quantile_keeps_more_and_says_what_is_missing() -> None:
    log = personalised_log(6_000)
    policy = ts.policy("softmax-disjoint", temperature=0.2)
    exact, longer = ts.dr_ns(policy, log), ts.dr_ns(policy, log, quantile=0.3)
    assert longer.trials > 1.3 * exact.trials
    assert exact.missing < 0.01 < longer.missing
    assert exact.kept == pytest.approx(exact.trials / 6_000)


def test_bad_arguments_are_refused() -> None:
    log = personalised_log(50)
    with pytest.raises(ValueError, match="quantile must be from 0 to below 1"):
        ts.dr_ns(ts.policy("linucb-disjoint"), log, quantile=1.0)
    with pytest.raises(TypeError, match="policies of topstory that kernels can run"):
        ts.dr_ns(ts.policy("omniscient"), log)
    with pytest.raises(ValueError, match="no events"):
        ts.dr_ns(ts.policy("linucb-disjoint"), log[:0])
    broken = ts.policy("linucb-disjoint")
    broken.learn([1.0, 0.0, 1.0], "a", 1.0)
    broken.model.state.v[:] = np.nan
    with pytest.raises(NotFiniteError, match="at event 0"):
        ts.dr_ns(broken, log)


def test_the_bias_of_a_larger_quantile_is_within_its_bound() -> None:
    """Means over 300 short logs at q = 0.3 and at q = 0; four standard errors are allowed."""
    apart, bounds, unbiased = [], [], []
    for seed in range(300):
        random = np.random.default_rng(seed)
        sun = random.random(60) < 0.3
        log = ts.EventLog.from_arrays(
            np.ones((60, 1)),
            [["rain", "sun"]],
            np.zeros(60, int),
            np.where(sun, "sun", "rain"),
            random.random(60) < np.where(sun, 0.6, 0.2),
            propensity=np.where(sun, 0.3, 0.7),
        )
        policy = ts.policy("egreedy", epsilon=0.5, seed=seed)
        exact, longer = (ts.dr_ns(policy, log, quantile=q, seed=seed) for q in (0.0, 0.3))
        assert longer.trials >= exact.trials
        apart.append(longer.value.value - exact.value.value)
        bounds.append(longer.bias_bound)
        unbiased.append(exact.bias_bound)
    error = 4 * np.std(apart) / 300**0.5
    assert abs(np.mean(apart)) <= np.mean(bounds) + np.mean(unbiased) + error
    assert np.mean(bounds) > 0
    assert max(bounds) <= 1
