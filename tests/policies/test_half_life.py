"""A half-life: a trial counts half after it, an eighth after three, and late payoffs with it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.test_policies import LIVE, POOL, make, user
from tests.worlds import changing_pools, world

import topstory as ts
from topstory.policies.half_life import TICKS, ticks_of
from topstory.policies.log_learner import learn_log
from topstory.policies.registry import REGISTRY

HOUR = 3600
NAMES = [
    *("egreedy", "ucb-warm", "ucb-seg", "linucb-disjoint", "linucb-hybrid", "linucb-lowrank"),
    *("linucb-hybrid-prior", "linucb-disjoint-prior", "ucb-prior"),
    *("logucb-disjoint", "logucb-hybrid"),
]
PLACE = world(seed=7)
LOG = PLACE.log(600, changing_pools(12, 4, 15, seed=8), np.random.default_rng(9))


@pytest.mark.parametrize("name", [n for n in NAMES if REGISTRY[n].model.load().additive])
def test_what_is_learned_is_the_sum_of_trials_that_count_less_with_age(name: str) -> None:
    """Every trial weighed by 2^(−age/half-life), as training on weighted events has it."""
    random = np.random.default_rng(2)
    policy, hours = make(name, half_life=8.0), np.sort(random.uniform(0, 60, 40))
    hours = np.floor(hours * TICKS / 8) * 8 / TICKS + 1e-6  # within a tick all count alike
    trials = []
    for hour in hours:
        policy.advance(HOUR * float(hour))
        x, article, r = user(random), str(random.choice(POOL)), float(random.random())
        policy.learn(x, article, r)
        trials.append((x, article, r))
    plain = make(name)
    log = ts.EventLog.from_arrays(
        np.array([x for x, _, _ in trials]),
        [POOL],
        [0] * 40,
        [a for _, a, _ in trials],
        [r for _, _, r in trials],
        articles={a: plain.model.features_of(a) for a in POOL} if "hybrid" in name else None,
        exact=True,
    )
    learn_log(plain, log, 2.0 ** -((hours[-1] - hours) / 8))
    for each in (policy, plain):
        weigh = getattr(each.model, "weigh", None)
        if weigh is not None:
            weigh()  # a prior, at the same moment
    x = user(random)
    np.testing.assert_allclose(policy.estimates(x, POOL), plain.estimates(x, POOL), rtol=1e-6)
    np.testing.assert_allclose(policy.widths(x, POOL), plain.widths(x, POOL), rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_a_late_payoff_counts_as_much_as_its_impression_does_by_then(name: str) -> None:
    late, soon, random = make(name, half_life=8.0), make(name, half_life=8.0), user
    x = random(np.random.default_rng(0))
    for policy in (late, soon):
        policy.advance(0)
        policy.shown(x, "sun")
    soon.paid(x, "sun", 1.0)
    for policy in (late, soon):
        policy.advance(20 * HOUR)
    late.paid(x, "sun", 1.0, shown_at=0)
    np.testing.assert_allclose(late.estimates(x, POOL), soon.estimates(x, POOL), rtol=1e-9)


@pytest.mark.parametrize("name", ["ucb-seg", "linucb-hybrid", "logucb-hybrid"])
def test_replay_moves_the_clock_as_one_would_by_hand(name: str) -> None:
    class ByHand:
        def __init__(self, policy: ts.Policy) -> None:
            self.policy, self.at = policy, iter(ticks_of(LOG, 24.0).tolist())

        def __deepcopy__(self, memo: Any) -> "ByHand":
            return ByHand(self.policy.copy())

        def __getattr__(self, name: str) -> Any:
            return getattr(self.policy, name)

        def greedy(self, x: Any, pool: Any) -> Any:
            self.policy.advance_to(next(self.at))
            return self.policy.greedy(x, pool)

        def choose(self, x: Any, pool: Any) -> Any:
            return self.policy.choose(x, pool)

    policy = ts.policy(name, half_life=24, seed=2)
    fast, slow = ts.replay(policy, LOG), ts.replay(ByHand(policy), LOG)
    np.testing.assert_array_equal(fast.learning.sums, slow.learning.sums)
    np.testing.assert_array_equal(fast.deployment.sums, slow.deployment.sums)
    plain = ts.replay(ts.policy(name, seed=2), LOG)
    assert (plain.learning.sums != fast.learning.sums).any()


def test_training_by_sums_counts_trials_by_age_too() -> None:
    policy = ts.policy("linucb-hybrid", half_life=30)
    one, two = (
        ts.train(policy, LOG, held_out=0.0, engine=engine).policy for engine in (None, "serial")
    )
    x = LOG.context(5)
    np.testing.assert_allclose(
        one.estimates(x, list(PLACE.ids)), two.estimates(x, list(PLACE.ids)), rtol=1e-8
    )


def test_a_policy_of_every_model_is_tested_here() -> None:
    models = {REGISTRY[name].model.name for name in NAMES}
    # The others learn nothing, or from the whole log at once.
    assert models == {
        REGISTRY[name].model.name for name in LIVE if REGISTRY[name].model.load().learns
    }


def test_a_clock_that_an_earlier_version_stored_goes_on() -> None:
    policy = ts.Policy.load(Path(__file__).parent.parent / "fixtures" / "half-life-v1.safetensors")
    assert (policy.half_life, policy.tick) == (8.0, 156)
    x = [0.3, 0.7, 0.0, 1.0]
    wanted = [0.23570111081207493, 0.22558103504263838, 0.159867942906538]
    np.testing.assert_allclose(policy.estimates(x, POOL), wanted, rtol=1e-9)
    policy.advance(47 * HOUR)  # 8 hours after tick 156
    for _ in range(3):
        policy.learn(x, "sun", 1.0)
    assert policy.estimates(x, POOL)[1] > wanted[1]


def test_the_clock_is_stored_and_copied(tmp_path: Path) -> None:
    policy = make("linucb-disjoint", half_life=8.0)
    policy.advance(0)
    policy.learn([1, 0, 0, 1], "sun", 1.0)
    policy.save(tmp_path / "p.safetensors")
    loaded = ts.Policy.load(tmp_path / "p.safetensors")
    assert repr(loaded) == repr(policy)
    assert "half_life=8.0" in repr(policy)
    for each in (policy, loaded, copied := policy.copy()):
        each.advance(8 * HOUR)
        each.advance(0)  # it never goes back
    x = [1, 0, 0, 1]
    assert loaded.estimates(x, POOL).tolist() == policy.estimates(x, POOL).tolist()
    assert copied.estimates(x, POOL).tolist() == policy.estimates(x, POOL).tolist()
    assert policy.estimates(x, POOL)[1] == pytest.approx(1 / (1 + 1))  # ½·2/(1 + ½·2)


def test_what_has_no_clock_is_named() -> None:
    assert all("half_life" in [p.name for p in REGISTRY[n].parameters] for n in LIVE[1:])
    with pytest.raises(ValueError, match=r"half_life must be from .* hours, got 0"):
        ts.policy("ucb", half_life=0)
    with pytest.raises(ValueError, match="learns nothing, so it has no half-life"):
        ts.Policy(ts.NoModel(), ts.Uniform(), half_life=3)
    with pytest.raises(ValueError, match="with a half-life cannot be merged"):
        ts.policy("ucb", half_life=3).merge(ts.policy("ucb"))
    untimed = ts.EventLog.from_arrays([[1.0]] * 2, [["a"]], [0] * 2, ["a"] * 2, [0, 1])
    with pytest.raises(ValueError, match="needs a log with timestamps"):
        ts.replay(ts.policy("ucb", half_life=3), untimed)
