"""The plain way to replay, kept as the reference that the fast one is compared with.

For each event every article of the pool is scored by the paper's formulas, the best one is chosen
for either bucket, and a retained event is learned from. Nothing is skipped, nothing is collapsed.
To be fair it is compiled as the kernels are, allocates nothing, and computes no width in vain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.compilation import Floats, compiled
from topstory.kernels.randomness import EXPLORE, priority, stream, unit


class Columns(NamedTuple):
    """The log's columns, and each pool's articles by index."""

    users: NDArray[np.float32]  # (n, d)
    pool: NDArray[np.int32]  # (n,)
    position: NDArray[np.uint16]  # (n,) of the shown article in its pool
    payoff: NDArray[np.float32]  # (n,)
    offsets: NDArray[np.int64]  # (pools + 1,)
    members: NDArray[np.int32]
    keys: NDArray[np.uint64]  # (articles,)


class Rule(NamedTuple):
    """How the policy chooses."""

    alpha: float
    epsilon: float
    seed: np.uint64


class Bench(NamedTuple):
    """Room for one event, and what was counted."""

    x: Floats  # (d,)
    estimates: Floats  # (articles,)
    widths: Floats  # (articles,)
    sums: Floats  # (2, 2) trials and payoff; deployment, then learning


class Averages(NamedTuple):
    """Means, and what they come from, (articles, segments) each."""

    shows: Floats
    total: Floats
    mean: Floats
    width: Floats
    offset: Floats  # (articles, d), or nothing
    learns: bool


class Disjoint(NamedTuple):
    """Algorithm 1's A⁻¹ (articles, d, d), and b and θ (articles, d)."""

    inverse: Floats
    b: Floats
    theta: Floats
    u: Floats  # (d,) room


class Hybrid(NamedTuple):
    """Algorithm 2's state, with k = dm: A0⁻¹ is (1, k, k), B (articles, d, k), f (articles, m)."""

    A0_inverse: Floats
    b0: Floats
    beta: Floats
    inverse: Floats
    B: Floats
    b: Floats
    features: Floats
    room: Floats  # (3, d)
    shared_room: Floats  # (4, k)


@compiled
def best(scores: Floats, log: Columns, first: int, size: int, root: np.uint64) -> int:
    """The place of the highest score; of equals the highest random priority."""
    winner = 0
    for j in range(1, size):
        if scores[j] > scores[winner] or (
            scores[j] == scores[winner]
            and priority(root, log.keys[log.members[first + j]])
            > priority(root, log.keys[log.members[first + winner]])
        ):
            winner = j
    return winner


@compiled
def retain(log: Columns, rule: Rule, t: int, bench: Bench) -> bool:
    """Choose for both buckets, count what is retained, and say whether to learn from it."""
    estimates, widths, sums = bench.estimates, bench.widths, bench.sums
    first = log.offsets[log.pool[t]]
    size = log.offsets[log.pool[t] + 1] - first
    shown = log.position[t]
    root = stream(rule.seed, t)
    deployed = best(estimates, log, first, size, root) == shown
    chosen = deployed
    if rule.alpha > 0.0:
        for j in range(size):
            widths[j] = estimates[j] + rule.alpha * widths[j]
        chosen = best(widths, log, first, size, root) == shown
    if rule.epsilon > 0.0 and unit(root, EXPLORE) < rule.epsilon:
        widths[:] = 0.0
        chosen = best(widths, log, first, size, root) == shown
    if deployed:
        sums[0, 0] += 1.0
        sums[0, 1] += log.payoff[t]
    if chosen:
        sums[1, 0] += 1.0
        sums[1, 1] += log.payoff[t]
    return bool(chosen)


@compiled
def scan_averages(log: Columns, rule: Rule, segmented: bool, state: Averages, bench: Bench) -> None:
    """§5.3 I to III: a mean for each article (and segment), 1/√n as its width, maybe an offset."""
    x, d = bench.x, bench.x.shape[0]
    for t in range(log.pool.shape[0]):
        for i in range(d):
            x[i] = log.users[t, i]
        segment = 0
        if segmented:
            for i in range(1, d - 1):
                segment = i if x[i] > x[segment] else segment
        first = log.offsets[log.pool[t]]
        for j in range(log.offsets[log.pool[t] + 1] - first):
            a = log.members[first + j]
            bench.estimates[j] = state.mean[a, segment]
            if state.offset.shape[0]:
                bench.estimates[j] += linear(state.offset, a, x)
            bench.widths[j] = state.width[a, segment]
        if retain(log, rule, t, bench) and state.learns:
            a = log.members[first + log.position[t]]
            state.shows[a, segment] += 1.0
            state.total[a, segment] += log.payoff[t]
            state.mean[a, segment] = state.total[a, segment] / state.shows[a, segment]
            state.width[a, segment] = 1.0 / np.sqrt(state.shows[a, segment])


@compiled
def scan_disjoint(log: Columns, rule: Rule, state: Disjoint, bench: Bench) -> None:
    """Algorithm 1, with A⁻¹ kept by rank-one updates and θ = A⁻¹b after each."""
    x, u, d = bench.x, state.u, bench.x.shape[0]
    for t in range(log.pool.shape[0]):
        for i in range(d):
            x[i] = log.users[t, i]
        first = log.offsets[log.pool[t]]
        for j in range(log.offsets[log.pool[t] + 1] - first):
            a = log.members[first + j]
            bench.estimates[j] = linear(state.theta, a, x)
            if rule.alpha > 0.0:
                bench.widths[j] = np.sqrt(max(quadratic(state.inverse, a, x), 0.0))
        if retain(log, rule, t, bench):
            a = log.members[first + log.position[t]]
            multiply(state.inverse, a, x, u)
            subtract_square(state.inverse, a, u, 1.0 + inner(x, u))
            for i in range(d):
                state.b[a, i] += log.payoff[t] * x[i]
            multiply(state.inverse, a, state.b[a], state.theta[a])


@compiled
def scan_hybrid(log: Columns, rule: Rule, state: Hybrid, bench: Bench) -> None:
    """Algorithm 2 line by line, with A0⁻¹ and A⁻¹ kept by rank-one updates."""
    x, d, k = bench.x, bench.x.shape[0], state.b0.shape[0]
    u, rest, theta = state.room[0], state.room[1], state.room[2]
    z, q = state.shared_room[0], state.shared_room[1]
    h, g = state.shared_room[2], state.shared_room[3]
    for t in range(log.pool.shape[0]):
        for i in range(d):
            x[i] = log.users[t, i]
        first = log.offsets[log.pool[t]]
        for j in range(log.offsets[log.pool[t] + 1] - first):
            a = log.members[first + j]
            outer(x, state.features, a, z)
            for i in range(d):
                rest[i] = state.b[a, i]
                for c in range(k):
                    rest[i] -= state.B[a, i, c] * state.beta[c]
            multiply(state.inverse, a, rest, theta)  # line 12: θ = A⁻¹(b − Bβ)
            bench.estimates[j] = inner(z, state.beta) + inner(x, theta)
            if rule.alpha > 0.0:
                multiply(state.inverse, a, x, u)
                multiply_transposed(state.B, a, u, q)
                multiply(state.A0_inverse, 0, z, h)
                multiply(state.A0_inverse, 0, q, g)
                s = inner(z, h) - 2.0 * inner(q, h) + inner(x, u) + inner(q, g)  # line 13
                bench.widths[j] = np.sqrt(max(s, 0.0))
        if retain(log, rule, t, bench):
            a, r = log.members[first + log.position[t]], log.payoff[t]
            outer(x, state.features, a, z)
            multiply(state.inverse, a, state.b[a], theta)
            multiply_transposed(state.B, a, theta, q)
            for c in range(k):
                state.b0[c] += q[c]  # line 18
            multiply(state.inverse, a, x, u)
            gamma = 1.0 + inner(x, u)
            multiply_transposed(state.B, a, u, q)
            for c in range(k):
                q[c] = z[c] - q[c]
            multiply(state.A0_inverse, 0, q, h)
            # Lines 17 and 22 add qqᵀ/γ to A0.
            subtract_square(state.A0_inverse, 0, h, gamma + inner(q, h))
            subtract_square(state.inverse, a, u, gamma)  # line 19
            for i in range(d):
                state.b[a, i] += r * x[i]  # line 21
                for c in range(k):
                    state.B[a, i, c] += x[i] * z[c]  # line 20
            multiply(state.inverse, a, state.b[a], theta)
            multiply_transposed(state.B, a, theta, q)
            for c in range(k):
                state.b0[c] += r * z[c] - q[c]  # line 23
            multiply(state.A0_inverse, 0, state.b0, state.beta)  # line 5


@compiled
def multiply_transposed(M: Floats, a: int, x: Floats, out: Floats) -> None:
    """Out = M_aᵀx: row by row, so that the compiler makes vector instructions of it."""
    out[:] = 0.0
    for i in range(M.shape[1]):
        for j in range(M.shape[2]):
            out[j] += M[a, i, j] * x[i]


@compiled
def multiply(M: Floats, a: int, x: Floats, out: Floats) -> None:
    """Out = M_a x, for a symmetric M_a."""
    multiply_transposed(M, a, x, out)


@compiled
def quadratic(M: Floats, a: int, x: Floats) -> float:
    """xᵀM_a x."""
    total = 0.0
    for i in range(x.shape[0]):
        row = 0.0
        for j in range(x.shape[0]):
            row += M[a, i, j] * x[j]
        total += x[i] * row
    return total


@compiled
def linear(v: Floats, a: int, x: Floats) -> float:
    """v_aᵀx."""
    total = 0.0
    for i in range(x.shape[0]):
        total += v[a, i] * x[i]
    return total


@compiled
def inner(x: Floats, y: Floats) -> float:
    """xᵀy."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@compiled
def outer(x: Floats, features: Floats, a: int, out: Floats) -> None:
    """Out = x ⊗ f_a."""
    m = features.shape[1]
    for i in range(x.shape[0]):
        for j in range(m):
            out[i * m + j] = x[i] * features[a, j]


@compiled
def subtract_square(M: Floats, a: int, u: Floats, gamma: float) -> None:
    """M_a −= uuᵀ/γ (Sherman and Morrison)."""
    for i in range(u.shape[0]):
        for j in range(u.shape[0]):
            M[a, i, j] -= u[i] * u[j] / gamma


@compiled
def read_columns(log: Columns, sums: Floats) -> None:
    """Only read what a replay reads: every event's context, pool, position and payoff."""
    for t in range(log.pool.shape[0]):
        for i in range(log.users.shape[1]):
            sums[i] += log.users[t, i]
        sums[-1] += log.pool[t] + log.position[t] + log.payoff[t]
