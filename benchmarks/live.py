"""One event at a time: microseconds for a decision and a trial, and a hundred million trials."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import topstory as ts
from benchmarks import traffic
from benchmarks.measuring import interleaved, say
from benchmarks.replay import ALPHA, SEED
from benchmarks.tables import Section, Table
from topstory.kernels.compilation import Floats, Slots, compiled
from topstory.kernels.contexts import Dense, load, scratch
from topstory.kernels.models.model import enter, learn

NAMES = ("ucb", "linucb-disjoint", "linucb-hybrid")
CLICKS = 0.04


def run(quick: bool) -> Section:
    """Two tables: calls, and endurance."""
    calls, figures = _calls(200 if quick else 5_000, 3 if quick else 7)
    shrink = 100 if quick else 1
    disjoint = _endure("linucb-disjoint", 100_000_000 // shrink, articles=1)
    hybrid = _endure("linucb-hybrid", 10_000_000 // shrink, articles=20)
    endurance = Table(
        "Sequential trials through the kernels, d = 6",
        ("policy", "trials", "articles", "seconds", "ns a trial", "drift", "error", "NaN"),
        [_row(found) for found in (disjoint, hybrid)],
    )
    notes = [
        "Drift is the largest entry of |A·A⁻¹ − I|, as `policy.model.drift()` gives it. Error is "
        "the largest entry of |A⁻¹ − inv(A)|, with NumPy's inverse, over the largest of |inv(A)|.",
        "Memberships sum to the constant feature, so A's condition number grows with its trials: "
        f"here to {disjoint['condition']:.0e} (disjoint), {hybrid['condition']:.0e} (hybrid).",
    ]
    figures |= {"endurance": {"linucb-disjoint": disjoint, "linucb-hybrid": hybrid}}
    return Section([calls, endurance], figures, notes)


def _calls(times: int, repetitions: int) -> tuple[Table, dict[str, Any]]:
    log = traffic.build(50_000)
    pool = log.pools[0]
    users = np.array([log.context(t) for t in range(256)])
    tasks: dict[str, Callable[[], object]] = {}
    for name in NAMES:
        policy = ts.replay(ts.policy(name, alpha=ALPHA, seed=SEED), log).policy
        tasks[f"{name}, choose"] = partial(_choose, policy, users, pool, times)
        tasks[f"{name}, learn"] = partial(_learn, policy, users, pool, times)
    timings = interleaved(tasks, repetitions)
    rows = [
        (
            f"`{name}`",
            f"{timings[f'{name}, choose'].median / times * 1e6:.1f}",
            f"{timings[f'{name}, learn'].median / times * 1e6:.1f}",
        )
        for name in NAMES
    ]
    table = Table(
        "Live use with 20 articles, d = 6: µs a call", ("policy", "choose", "learn"), rows
    )
    return table, {name: timing.figures(times) for name, timing in timings.items()}


def _choose(policy: ts.Policy, users: Floats, pool: list[str], times: int) -> None:
    for t in range(times):
        policy.choose(users[t % len(users)], pool)


def _learn(policy: ts.Policy, users: Floats, pool: list[str], times: int) -> None:
    for t in range(times):
        policy.learn(users[t % len(users)], pool[t % len(pool)], float(t % 25 == 0))


@compiled
def drill(
    state: Any, users: NDArray[np.float32], payoff: Floats, slots: Slots, times: int, room: Dense
) -> None:
    """Learn from so many trials, the articles in turn."""
    enter(state, slots, 0, slots.shape[0])
    for t in range(times):
        row = t % users.shape[0]
        learn(state, slots[t % slots.shape[0]], load(users, row, room), 0, payoff[row])


def _endure(name: str, trials: int, articles: int) -> dict[str, Any]:
    random = np.random.default_rng(SEED)
    # An odd number of users, so that each meets every article.
    users = traffic.memberships(random, 65_537, 5)
    payoff = (random.random(len(users)) < CLICKS).astype(np.float64)
    features = traffic.memberships(random, articles, 5).astype(np.float64)

    def practise(times: int) -> ts.Policy:
        policy = ts.policy(name, alpha=ALPHA, seed=SEED)
        for a in range(articles):
            policy.add_article(f"article-{a}", features[a])
        policy.model.see(users.shape[1])
        slots = np.arange(articles, dtype=np.int32)
        drill(policy.model.state, users, payoff, slots, times, scratch(users.shape[1]))
        return policy

    practise(10)
    say(f"{name}: {trials:,} trials")
    began = perf_counter()
    policy = practise(trials)
    seconds = perf_counter() - began
    state = policy.model.state
    hybrid = isinstance(policy.model, ts.HybridLinear)
    pairs = [(state.A[:articles], state.A_inverse if hybrid else state.S)]
    if hybrid:
        pairs.append((state.A0, state.P))
    arrays = policy.model.arrays().values()
    return {
        "policy": name,
        "trials": trials,
        "articles": articles,
        "seconds": seconds,
        "drift": policy.model.drift(),
        "error": max(_error(A, inverse[: len(A)]) for A, inverse in pairs),
        "condition": max(float(np.linalg.cond(A).max()) for A, _ in pairs),
        "nan": any(bool(np.isnan(array).any()) for array in arrays),
    }


def _error(A: Floats, inverse: Floats) -> float:
    fresh = np.linalg.inv(A)
    return float(np.abs(inverse - fresh).max() / np.abs(fresh).max())


def _row(found: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"`{found['policy']}`",
        f"{found['trials']:,}",
        f"{found['articles']}",
        f"{found['seconds']:.1f}",
        f"{found['seconds'] / found['trials'] * 1e9:,.0f}",
        f"{found['drift']:.0e}",
        f"{found['error']:.0e}",
        "yes" if found["nan"] else "none",
    )
