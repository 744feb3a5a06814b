"""Algorithm 2 for any z: an article's features change with the event, or were edited.

As in `topstory.kernels.models.hybrid` nothing is ever re-inverted. With u = A⁻¹x and w = z − BᵀA⁻¹x
(`topstory.kernels.models.crossing`), γ = 1 + xᵀu and P = A0⁻¹, lines 17–24 of Algorithm 2 become

    shown:  A0 += wwᵀ/γ    b0 −= w (uᵀb)/γ    A⁻¹ −= uuᵀ/γ    B += xzᵀ
    paid:   b0 += r w      b  += r x          (u, w of the current A and B)

w is linear in X = x ⊗ (1, e), of d(1 + q) numbers where e, of q numbers, is what the event adds to
f: w = GᵀX. So an article's whole bound is still a form, in X:

    estimate = vᵀX     v = Gβ + (A⁻¹b, 0)
    width²   = XᵀSX    S = GPGᵀ + (A⁻¹, 0)

and a trial of article a changes every article's form by rank one: with h = Pw, c = γ + wᵀh and
g = Gh for each article (plus u for a itself)

    shown:  S −= ggᵀ/c    v −= g (v_aᵀX)/c    P −= hhᵀ/c    β −= h (v_aᵀX)/c
    paid:   v += r g      β += r h            (u, w, h, g of the current state)

G itself moves by −(u, 0) wᵀ/γ. Without features of the event X is x, and an article costs d² to
score, as before.
"""

from typing import Any, NamedTuple

import numpy as np

from topstory.kernels.algebra import add_square, dot, invert, multiply, trace
from topstory.kernels.compilation import Counters, Floats, Slots, inlined, specialised
from topstory.kernels.contexts import aimed, spread
from topstory.kernels.event_features import beyond, widen
from topstory.kernels.models.crossing import Crossing, cross, longest
from topstory.kernels.models.disjoint import MAX_CONDITION, REFRESH_ABOVE, worn
from topstory.kernels.models.general_forms import (
    Solved,
    compute_general_form,
    general_residue,
    move_general_forms,
    move_solved,
    solve_columns,
)
from topstory.kernels.models.hybrid import IN_POOL
from topstory.kernels.models.hybrid_forms import ACTIVE, CHANGES, CURRENT, UPDATES
from topstory.kernels.models.model import enter, estimate, paid, shown, takes, width
from topstory.kernels.models.tally import count_payoff, count_trial, is_due


class GeneralHybrid(NamedTuple):
    """As `Hybrid`; m counts an article's own features, and q those of the event."""

    A: Floats  # (articles, d, d)
    b: Floats  # (articles, d)
    A_inverse: Floats  # (articles, d, d)
    features: Floats  # (articles, m)
    updates: Counters  # (articles,)
    products: Floats  # (articles, d, dq) B_e
    event: Floats  # (articles, d, dq) G_e
    edited: Floats  # (articles,) the row of K and G, a whole number; 0: it was not edited
    K: Floats  # (1 + rows, d, dm) K_f
    G: Floats  # (1 + rows, d, dm) G_f
    reach: Floats  # (articles,) the largest |f|² of a trial
    A0: Floats  # (1, d(m + q), d(m + q))
    b0: Floats  # (d(m + q),)
    departed: Floats  # (d(m + q),) the part of b0 that is not Kᵀθ of an article
    P: Floats  # (1, d(m + q), d(m + q))
    beta: Floats  # (d(m + q),)
    S: Floats  # (articles, d(1 + q), d(1 + q))
    v: Floats  # (articles, d(1 + q))
    active: Slots  # (articles,)
    current: Slots  # (articles,)
    left_at: Counters  # (articles,)
    clock: Counters  # (4,)
    ridge: float
    shared_ridge: float
    tally: Floats
    room: Floats  # (4, d)
    feature_room: Floats  # (m + q,)
    shared_room: Floats  # (2, d(m + q))
    wide_room: Floats  # (d(1 + q),)
    square_room: Floats  # (1, d, d)
    cross_room: Floats  # (d, d(m + q))
    cholesky_room: Floats  # (d(m + q), d(m + q))


def _is_general(state: Any) -> bool:
    return state.instance_class is GeneralHybrid


@inlined
def crossing(state: Any, a: int) -> Crossing:
    """The article's K."""
    row = int(state.edited[a])
    return Crossing(state.ridge, state.features[a], state.products[a], row > 0, state.K[row])


@inlined
def solution(state: Any, a: int) -> Solved:
    """The article's G."""
    row = int(state.edited[a])
    return Solved(
        state.ridge,
        state.features[a],
        state.A_inverse[a],
        state.event[a],
        row > 0,
        state.G[row],
    )


@inlined
def reach_out(state: Any, a: int, x: Any) -> None:
    """Write the context, u, what f has beyond the article's own features, and w into the rooms."""
    context, u = state.room[0], state.room[1]
    spread(x, context)
    beyond(x, state.features.shape[1], state.feature_room)
    multiply(state.A_inverse[a], context, u)
    general_residue(solution(state, a), context, u, state.feature_room, state.shared_room[0])


@inlined
def solve_again(state: Any, a: int) -> None:
    """G of one article from scratch."""
    A, L, room, row = state.A[a], state.square_room[0], state.room, int(state.edited[a])
    if row > 0:
        solve_columns(A, state.ridge, state.K[row], L, room, state.G[row])
    solve_columns(A, state.ridge, state.products[a], L, room, state.event[a])


@specialised(estimate, inline=True)
def _estimate(state: Any, a: Any, x: Any, segment: Any) -> Any:
    def wide(state: Any, a: Any, x: Any, segment: Any) -> float:
        found = aimed(x, a)
        widen(found)
        return dot(state.v[a], found.wide[0])

    return wide if _is_general(state) and hasattr(x.instance_class, "event") else None


@specialised(width, inline=True)
def _width(state: Any, a: Any, x: Any, segment: Any) -> Any:
    def wide(state: Any, a: Any, x: Any, segment: Any) -> float:
        found = aimed(x, a)
        widen(found)
        X, half, S = found.wide[0], found.wide[1], state.S[a]
        half[:] = 0.0
        for i in range(X.shape[0]):  # row by row, as memory lies
            for j in range(i):
                half[j] += S[i, j] * X[i]
            half[i] = 0.5 * S[i, i] * X[i]
        return float(np.sqrt(max(2.0 * dot(half, X), 0.0)))

    return wide if _is_general(state) and hasattr(x.instance_class, "event") else None


@specialised(takes, inline=False)
def _takes(state: Any, a: Any, x: Any) -> Any:
    def body(state: Any, a: Any, x: Any) -> bool:
        if is_due(state.tally):
            return False
        reach_out(state, a, x)
        context, w = state.room[0], state.shared_room[0]
        own = trace(state.A[a]) + dot(context, context)
        far = max(state.reach[a], longest(state.features[a], state.feature_room))
        shared = trace(state.A0[0]) + dot(w, w) / (1.0 + dot(context, state.room[1]))
        return bool(
            own * (1.0 / state.ridge + far / state.shared_ridge) <= MAX_CONDITION
            and shared <= MAX_CONDITION * state.shared_ridge
        )

    return body if _is_general(state) else None


@inlined
def move(state: Any, a: int, shrink: float, step: float) -> None:
    """Move the forms of all articles in use."""
    move_general_forms(
        state.active,
        state.left_at,
        state.clock,
        state.A_inverse,
        state.features,
        state.event,
        state.edited,
        state.G,
        state.ridge,
        state.S,
        state.v,
        state.room,
        state.wide_room,
        state.shared_room[1],
        a,
        shrink,
        step,
    )


@inlined
def compute(state: Any, a: int) -> None:
    """Compute the forms of one article from scratch."""
    compute_general_form(
        solution(state, a),
        state.P[0],
        state.beta,
        state.b[a],
        state.room,
        state.cross_room,
        state.S[a],
        state.v[a],
    )


@specialised(shown, inline=False)
def _shown(state: Any, a: Any, x: Any, segment: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any) -> None:
        context, u = state.room[0], state.room[1]
        w, h = state.shared_room[0], state.shared_room[1]
        A_inverse = state.A_inverse[a]
        count_trial(state.tally)
        reach_out(state, a, x)
        multiply(state.P[0], w, h)
        gamma = 1.0 + dot(context, u)
        c = gamma + dot(w, h)
        own = dot(u, state.b[a])
        step = (own + dot(w, state.beta)) / c
        move(state, a, 1.0 / c, -step)
        for i in range(w.shape[0]):
            state.b0[i] -= w[i] * (own / gamma)
            state.beta[i] -= step * h[i]
        add_square(state.A0[0], w, 1.0 / gamma)
        add_square(state.P[0], h, -1.0 / c)
        add_square(state.A[a], context, 1.0)
        move_solved(solution(state, a), u, w, 1.0 / gamma)
        add_square(A_inverse, u, -1.0 / gamma)
        cross(crossing(state, a), context, state.feature_room)
        far = longest(state.features[a], state.feature_room)
        state.reach[a] = max(state.reach[a], far)
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
            solve_again(state, a)
            state.updates[a] = 0
        if all_afresh:
            invert(state.A0[0], state.shared_ridge, state.P[0], state.cholesky_room)
            multiply(state.P[0], state.b0, state.beta)
            state.clock[UPDATES] = 0
        if own_afresh or all_afresh:
            for i in range(state.clock[ACTIVE]):
                article = state.active[i]
                if all_afresh or article == a:
                    compute(state, article)

    return body if _is_general(state) else None


@specialised(paid, inline=False)
def _paid(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> None:
        context, extra = state.room[0], state.feature_room
        w, h = state.shared_room[0], state.shared_room[1]
        count_payoff(state.tally, payoff)
        reach_out(state, a, x)
        multiply(state.P[0], w, h)
        move(state, a, 0.0, payoff)
        for i in range(context.shape[0]):
            state.b[a, i] += payoff * context[i]
            for k in range(extra.shape[0]):
                state.departed[i * extra.shape[0] + k] += payoff * context[i] * extra[k]
        for i in range(w.shape[0]):
            state.b0[i] += payoff * w[i]
            state.beta[i] += payoff * h[i]

    return body if _is_general(state) else None


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
                compute(state, a)
                state.active[state.clock[ACTIVE]] = a
                state.clock[ACTIVE] += 1
            state.left_at[a] = IN_POOL

    return body if _is_general(state) else None
