"""Shared coefficients and a ridge regression for each article (Algorithm 2), never re-inverting.

The paper's z is the outer product of the user's x (d) and the article's features f (m), and f does
not change. Then B_a = Σxzᵀ = (A_a − ridge·I) ⊗ fᵀ, so z − BᵀA⁻¹x = ridge·(A⁻¹x) ⊗ f: B need not be
kept, and with u = A⁻¹x, w = ridge·u ⊗ f, γ = 1 + xᵀu, P = A0⁻¹ lines 17–24 of Algorithm 2 become

    shown:  A0 += wwᵀ/γ    b0 −= w (uᵀb)/γ    A⁻¹ −= uuᵀ/γ
    paid:   b0 += r w      b  += r x          (u, w of the current A)

The article's whole bound is a form in x alone: with β as a d × m matrix and P_f the d × d matrix
of (I ⊗ fᵀ) P (I ⊗ f),

    estimate = vᵀx     v = A⁻¹(b + ridge·βf)
    width²   = xᵀSx    S = A⁻¹ + ridge²·A⁻¹ P_f A⁻¹

and a trial of article a changes every article's form by rank one: with h = Pw, c = γ + wᵀh and
g = ridge·A⁻¹(hf) for each article (plus u for a itself)

    shown:  S −= ggᵀ/c    v −= g (v_aᵀx)/c    P −= hhᵀ/c    β −= h (v_aᵀx)/c
    paid:   v += r g      β += r h            (u, w, h, g of the current state)

S and v are kept for the articles in use only: those of the pool asked about, and those that left
it less than `KEEP_FOR` changes ago (about what computing them anew costs); `enter` computes those
that come back.
"""

from typing import Any, NamedTuple

import numpy as np

from topstory.kernels.algebra import add_square, dot, invert, multiply
from topstory.kernels.compilation import Counters, Floats, Slots, compiled, specialised
from topstory.kernels.contexts import spread
from topstory.kernels.disjoint import REFRESH_ABOVE, REFRESH_AFTER
from topstory.kernels.model import enter, paid, shown

KEEP_FOR = 32
IN_POOL = np.iinfo(np.int64).max

# Places in Hybrid.clock.
CHANGES, ACTIVE, CURRENT, UPDATES = 0, 1, 2, 3


class Hybrid(NamedTuple):
    """The shared regression, all articles' own ones, and the forms of the articles in use."""

    A: Floats  # (articles, d, d)
    b: Floats  # (articles, d)
    A_inverse: Floats  # (articles, d, d)
    features: Floats  # (articles, m)
    updates: Counters  # (articles,) since A was last inverted
    A0: Floats  # (1, dm, dm)
    b0: Floats  # (dm,)
    P: Floats  # (1, dm, dm), the inverse of A0
    beta: Floats  # (dm,)
    S: Floats  # (articles, d, d)
    v: Floats  # (articles, d)
    active: Slots  # (articles,) the articles whose S and v are kept, clock[ACTIVE] of them
    current: Slots  # (articles,) the pool asked about, clock[CURRENT] articles
    left_at: Counters  # (articles,) -1: S and v are not kept; IN_POOL; or when it left the pool
    clock: Counters  # (4,)
    ridge: float
    shared_ridge: float
    room: Floats  # (4, d)
    shared_room: Floats  # (2, dm)
    square_room: Floats  # (2, d, d)
    cholesky_room: Floats  # (dm, dm)
    unroll: tuple[int, ...]  # unrolling(d)
    unroll_features: tuple[int, ...]  # unrolling(m)


@compiled
def fold(state: Hybrid, shared: Floats, a: int, out: Floats) -> None:
    """Out = shared as a d × m matrix, times f_a."""
    m = state.features.shape[1]
    for i in range(out.shape[0]):
        total = 0.0
        for j in range(m):
            total += shared[i * m + j] * state.features[a, j]
        out[i] = total


@compiled
def compute_form(state: Hybrid, a: int) -> None:
    """S_a and v_a from scratch."""
    d, m = state.b.shape[1], state.features.shape[1]
    folded, rest = state.room[2], state.room[3]
    fold(state, state.beta, a, folded)
    for i in range(d):
        rest[i] = state.b[a, i] + state.ridge * folded[i]
    multiply(state.A_inverse, a, rest, state.v[a])
    inverse = state.A_inverse[a]
    inner, half = state.square_room[0], state.square_room[1]  # P_f and A⁻¹P_f
    inner[:] = 0.0
    half[:] = 0.0
    for i in range(d):
        for k in range(m):
            weight = state.features[a, k]
            if weight != 0.0:
                for j in range(d):
                    total = 0.0
                    for q in range(m):
                        total += state.P[0, i * m + k, j * m + q] * state.features[a, q]
                    inner[i, j] += weight * total
    for i in range(d):
        for k in range(d):
            for j in range(d):
                half[i, j] += inverse[i, k] * inner[k, j]
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            for k in range(d):
                total += half[i, k] * inverse[k, j]
            state.S[a, i, j] = inverse[i, j] + state.ridge * state.ridge * total
            state.S[a, j, i] = state.S[a, i, j]


@compiled
def aim(state: Hybrid, a: int) -> None:
    """From the context in room[0]: u = A⁻¹x, w = ridge·u ⊗ f and h = Pw."""
    u, w, h = state.room[1], state.shared_room[0], state.shared_room[1]
    m = state.features.shape[1]
    multiply(state.A_inverse, a, state.room[0], u)
    for i in range(u.shape[0]):
        for j in range(m):
            w[i * m + j] = state.ridge * u[i] * state.features[a, j]
    multiply(state.P, 0, w, h)


@compiled
def move_forms(state: Hybrid, a: int, shrink: float, step: float) -> None:
    """S −= shrink·ggᵀ and v += step·g for every article in use; those idle for long are let go."""
    u, h, folded, g = state.room[1], state.shared_room[1], state.room[2], state.room[3]
    d = len(state.unroll) if len(state.unroll) else u.shape[0]
    m = len(state.unroll_features) if len(state.unroll_features) else state.features.shape[1]
    state.clock[CHANGES] += 1
    i = 0
    while i < state.clock[ACTIVE]:
        article = state.active[i]
        if state.left_at[article] < state.clock[CHANGES] - KEEP_FOR:
            state.left_at[article] = -1
            state.clock[ACTIVE] -= 1
            state.active[i] = state.active[state.clock[ACTIVE]]
            continue
        for k in range(d):
            total = 0.0
            for j in range(m):
                total += h[k * m + j] * state.features[article, j]
            folded[k] = total
        if len(state.unroll):
            for k in range(d):
                total = 0.0
                for j in range(d):
                    total += state.A_inverse[article, j, k] * folded[j]
                g[k] = total
        else:
            multiply(state.A_inverse, article, folded, g)
        for k in range(d):
            g[k] = state.ridge * g[k] + (u[k] if article == a else 0.0)
        for k in range(d):
            state.v[article, k] += step * g[k]
            part = shrink * g[k]
            for j in range(d):
                state.S[article, k, j] -= part * g[j]
        i += 1


@compiled
def invert_article(state: Hybrid, a: int) -> None:
    """A_a⁻¹ afresh."""
    invert(state.A, a, state.ridge, state.A_inverse, state.square_room[0])
    state.updates[a] = 0
    if state.left_at[a] >= 0:
        compute_form(state, a)


@compiled
def invert_shared(state: Hybrid) -> None:
    """A0⁻¹ afresh, and all that follows from it."""
    invert(state.A0, 0, state.shared_ridge, state.P, state.cholesky_room)
    multiply(state.P, 0, state.b0, state.beta)
    state.clock[UPDATES] = 0
    for i in range(state.clock[ACTIVE]):
        compute_form(state, state.active[i])


@specialised(shown, inline=False)
def _shown(state: Any, a: Any, x: Any, segment: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any) -> None:
        context, u = state.room[0], state.room[1]
        w, h = state.shared_room[0], state.shared_room[1]
        spread(x, context)
        aim(state, a)
        gamma = 1.0 + dot(context, u)
        c = gamma + dot(w, h)
        own = dot(u, state.b[a])
        step = (own + dot(w, state.beta)) / c
        move_forms(state, a, 1.0 / c, -step)
        for i in range(w.shape[0]):
            state.b0[i] -= w[i] * (own / gamma)
            state.beta[i] -= step * h[i]
        add_square(state.A0, 0, w, 1.0 / gamma)
        add_square(state.P, 0, h, -1.0 / c)
        add_square(state.A, a, context, 1.0)
        add_square(state.A_inverse, a, u, -1.0 / gamma)
        state.updates[a] += 1
        state.clock[UPDATES] += 1
        if state.updates[a] >= max(REFRESH_AFTER, u.shape[0]) or gamma > REFRESH_ABOVE:
            invert_article(state, a)
        if state.clock[UPDATES] >= max(REFRESH_AFTER, w.shape[0]) or c > REFRESH_ABOVE * gamma:
            invert_shared(state)

    return body if state.instance_class is Hybrid else None


@specialised(paid, inline=False)
def _paid(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> None:
        context, w, h = state.room[0], state.shared_room[0], state.shared_room[1]
        spread(x, context)
        aim(state, a)
        move_forms(state, a, 0.0, payoff)
        for i in range(context.shape[0]):
            state.b[a, i] += payoff * context[i]
        for i in range(w.shape[0]):
            state.b0[i] += payoff * w[i]
            state.beta[i] += payoff * h[i]

    return body if state.instance_class is Hybrid else None


@specialised(enter, inline=False)
def _enter(state: Any, slots: Any, start: Any, stop: Any) -> Any:
    def body(state: Any, slots: Any, start: Any, stop: Any) -> None:
        for i in range(state.clock[CURRENT]):
            state.left_at[state.current[i]] = state.clock[CHANGES]
        state.clock[CURRENT] = stop - start
        for j in range(start, stop):
            a = slots[j]
            state.current[j - start] = a
            if state.left_at[a] < 0:
                compute_form(state, a)
                state.active[state.clock[ACTIVE]] = a
                state.clock[ACTIVE] += 1
            state.left_at[a] = IN_POOL

    return body if state.instance_class is Hybrid else None
