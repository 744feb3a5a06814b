"""A bound on the width saves its arithmetic, and changes no choice."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topstory as ts
from topstory.kernels.compilation import compiled
from topstory.kernels.models.model import widest, width

D = 12  # more than are unrolled
POOL = [f"a{i}" for i in range(6)]


@compiled
def both(state: Any, a: int, x: Any) -> tuple[float, float]:
    """The bound, and the width."""
    return widest(state, a, x), width(state, a, x, 0)


def contexts(random: np.random.Generator, count: int, scale: float) -> Any:
    """Some of them almost only the constant, some alike, some sparse."""
    rows = random.normal(size=(count, D)) * scale
    rows[::3] *= random.choice([1e-12, 1e-5, 1.0])
    rows[::4, :-1] = rows[0, :-1]
    rows[random.random((count, D)) < random.choice([0.0, 0.7])] = 0.0
    rows[:, -1] = random.choice([1.0, scale])
    return rows


@given(
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([1e-3, 1.0, 30.0]),
    ridge=st.sampled_from([1e-3, 1.0, 50.0]),
    trials=st.integers(0, 300),
)
def test_no_width_exceeds_the_bound(seed: int, scale: float, ridge: float, trials: int) -> None:
    random = np.random.default_rng(seed)
    model = ts.DisjointLinear(ridge=ridge)
    policy = ts.Policy(model, ts.UpperConfidence(0.3), seed=0)
    rows = contexts(random, trials + 8, scale)
    for row in rows[: trials + 1]:
        policy.learn(row, "a", 1.0)
    if model.factored:  # at such scales there is no inverse to bound
        return
    room = model.room(D)
    assert not room.unroll
    for row in rows[-8:]:
        room.values[:] = row
        bound, exact = both(model.state, 0, room)
        assert exact <= bound


def test_the_bound_is_near_where_nothing_is_known_but_the_constant() -> None:
    """Else it would decide nothing."""
    random = np.random.default_rng(0)
    model = ts.DisjointLinear()
    policy = ts.Policy(model, ts.UpperConfidence(0.3), seed=0)
    for row in random.normal(size=(4, D)):
        row[:-1] = 0.0
        row[-1] = 30.0
        policy.learn(row, "a", 1.0)
    room = model.room(D)
    room.values[:] = 1.0
    bound, exact = both(model.state, 0, room)
    assert exact <= bound <= 1.02 * exact


class Plain:
    """A policy that the kernels do not know: every score is computed, event by event."""

    def __init__(self, policy: ts.Policy) -> None:
        self.policy = policy

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.policy, name)


@pytest.mark.parametrize("name", ["linucb-disjoint", "lints-disjoint"])
@pytest.mark.parametrize(("alpha", "ridge"), [(0.02, 1.0), (0.5, 1.0), (0.3, 30.0)])
def test_a_replay_of_long_contexts_is_that_of_plain_python(
    name: str, alpha: float, ridge: float
) -> None:
    random = np.random.default_rng(1)
    users = contexts(random, 1_500, 0.5).astype(np.float32)
    users[:, -1] = 1.0
    shown = random.integers(len(POOL), size=len(users))
    taste = random.normal(size=(len(POOL), D))
    paid = random.random(len(users)) < 0.1 + 0.05 * np.clip((users * taste[shown]).sum(1), 0, 9)
    log = ts.EventLog.from_arrays(
        users, [POOL], np.zeros(len(users), int), [POOL[i] for i in shown], paid
    )
    policy = ts.policy(name, alpha=alpha, ridge=ridge, seed=4)
    fast, slow = ts.replay(policy, log), ts.replay(Plain(policy), log)
    np.testing.assert_array_equal(fast.learning.sums, slow.learning.sums)
    np.testing.assert_array_equal(fast.deployment.sums, slow.deployment.sums)
    assert fast.by_article == slow.by_article
    for field, array in fast.policy.model.arrays().items():
        np.testing.assert_array_equal(array, slow.policy.policy.model.arrays()[field])
