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

from topstory.kernels.algebra import add_square, dot, invert, multiply, trace
from topstory.kernels.compilation import Counters, Floats, Slots, internal, specialised
from topstory.kernels.contexts import spread, squared_length
from topstory.kernels.models.disjoint import MAX_CONDITION, REFRESH_ABOVE, worn
from topstory.kernels.models.hybrid_forms import (
    ACTIVE,
    CHANGES,
    CURRENT,
    UPDATES,
    aim,
    compute_form,
    move_forms,
)
from topstory.kernels.models.model import enter, paid, shown, takes
from topstory.kernels.models.tally import count_payoff, count_trial, is_due

IN_POOL = np.iinfo(np.int64).max


class Hybrid(NamedTuple):
    """The shared regression, all articles' own ones, and the forms of the articles in use."""

    A: Floats  # (articles, d, d)
    b: Floats  # (articles, d)
    A_inverse: Floats  # (articles, d, d)
    features: Floats  # (articles, m)
    updates: Counters  # (articles,) since A was last inverted
    A0: Floats  # (1, dm, dm)
    b0: Floats  # (dm,)
    departed: Floats  # (dm,) the part of b0 that is the prior's, and left of removed articles
    P: Floats  # (1, dm, dm), the inverse of A0
    beta: Floats  # (dm,)
    S: Floats  # (articles, d, d)
    v: Floats  # (articles, d)
    active: Slots  # (articles,) the articles whose S and v are kept, clock[ACTIVE] of them
    current: Slots  # (articles,) the pool asked about, clock[CURRENT] articles
    left_at: Counters  # (articles,) -1: S and v are not kept; IN_POOL; or when it left the pool
    clock: Counters  # (4,)
    ridge: float
    shared_ridge: float  # or the least eigenvalue of another prior
    tally: Floats  # as `topstory.kernels.models.tally` has it, or (0,) for none
    room: Floats  # (4, d)
    shared_room: Floats  # (2, dm)
    square_room: Floats  # (2, d, d)
    cholesky_room: Floats  # (dm, dm)


@internal
def within_condition(
    length: float, A: Floats, A0: Floats, f: Floats, ridge: float, shared_ridge: float
) -> bool:
    """Whether inverses stay exact after a trial of so long a context, `length` being |x|²."""
    reach = dot(f, f)
    own = trace(A) + length
    # The trial adds at most this to A0's trace.
    shared = trace(A0) + length * reach / (1.0 + length / ridge)
    return bool(
        own * (1.0 / ridge + reach / shared_ridge) <= MAX_CONDITION
        and shared <= MAX_CONDITION * shared_ridge
    )


@specialised(takes, inline=True)
def _takes(state: Any, a: Any, x: Any) -> Any:
    def body(state: Any, a: Any, x: Any) -> bool:
        length, f = squared_length(x), state.features[a]
        matrices = (state.A[a], state.A0[0])
        exact = within_condition(length, *matrices, f, state.ridge, state.shared_ridge)
        return bool(exact and not is_due(state.tally))

    return body if state.instance_class is Hybrid else None


@specialised(shown, inline=False)
def _shown(state: Any, a: Any, x: Any, segment: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any) -> None:
        context, u = state.room[0], state.room[1]
        w, h = state.shared_room[0], state.shared_room[1]
        A_inverse, features = state.A_inverse[a], state.features[a]
        count_trial(state.tally)
        spread(x, context)
        aim(context, A_inverse, features, state.P[0], state.ridge, u, w, h)
        gamma = 1.0 + dot(context, u)
        c = gamma + dot(w, h)
        own = dot(u, state.b[a])
        step = (own + dot(w, state.beta)) / c
        move_forms(
            state.active,
            state.left_at,
            state.clock,
            state.A_inverse,
            state.features,
            state.ridge,
            state.S,
            state.v,
            state.room,
            h,
            a,
            1.0 / c,
            -step,
        )
        for i in range(w.shape[0]):
            state.b0[i] -= w[i] * (own / gamma)
            state.beta[i] -= step * h[i]
        add_square(state.A0[0], w, 1.0 / gamma)
        add_square(state.P[0], h, -1.0 / c)
        add_square(state.A[a], context, 1.0)
        add_square(A_inverse, u, -1.0 / gamma)
        state.updates[a] += 1
        state.clock[UPDATES] += 1
        own_afresh = (
            worn(state.updates[a], state.A[a], state.ridge, context, u, gamma)
            or gamma > REFRESH_ABOVE
        )
        all_afresh = (
            worn(state.clock[UPDATES], state.A0[0], state.shared_ridge, w, h, c)
            or c > REFRESH_ABOVE * gamma
        )
        if own_afresh:
            invert(state.A[a], state.ridge, A_inverse, state.square_room[0])
            state.updates[a] = 0
        if all_afresh:
            invert(state.A0[0], state.shared_ridge, state.P[0], state.cholesky_room)
            multiply(state.P[0], state.b0, state.beta)
            state.clock[UPDATES] = 0
        if own_afresh or all_afresh:
            for i in range(state.clock[ACTIVE]):
                article = state.active[i]
                if all_afresh or article == a:
                    compute_form(
                        state.P[0],
                        state.beta,
                        state.A_inverse[article],
                        state.b[article],
                        state.features[article],
                        state.ridge,
                        state.room,
                        state.square_room,
                        state.S[article],
                        state.v[article],
                    )

    return body if state.instance_class is Hybrid else None


@specialised(paid, inline=False)
def _paid(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> None:
        context, u = state.room[0], state.room[1]
        w, h = state.shared_room[0], state.shared_room[1]
        count_payoff(state.tally, payoff)
        spread(x, context)
        aim(context, state.A_inverse[a], state.features[a], state.P[0], state.ridge, u, w, h)
        move_forms(
            state.active,
            state.left_at,
            state.clock,
            state.A_inverse,
            state.features,
            state.ridge,
            state.S,
            state.v,
            state.room,
            h,
            a,
            0.0,
            payoff,
        )
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
                compute_form(
                    state.P[0],
                    state.beta,
                    state.A_inverse[a],
                    state.b[a],
                    state.features[a],
                    state.ridge,
                    state.room,
                    state.square_room,
                    state.S[a],
                    state.v[a],
                )
                state.active[state.clock[ACTIVE]] = a
                state.clock[ACTIVE] += 1
            state.left_at[a] = IN_POOL

    return body if state.instance_class is Hybrid else None
