"""A ridge regression for each article (Algorithm 1), kept by rank-one updates.

With A = ridge·I + Σxxᵀ, b = Σrx, v = A⁻¹b, u = A⁻¹x and γ = 1 + xᵀu a trial is

    A⁻¹ −= uuᵀ/γ        v += u (r − vᵀx)/γ

and its halves are: shown, the same with r = 0; paid, v += r A⁻¹x with the new A⁻¹, which is u/γ.
"""

from typing import Any, NamedTuple

import numpy as np

from topstory.kernels.algebra import add_square, dot, invert, multiply, trace
from topstory.kernels.compilation import Counters, Floats, internal, specialised
from topstory.kernels.contexts import linear, quadratic, spread, squared_length
from topstory.kernels.models.model import (
    estimate,
    has_costly_width,
    paid,
    shown,
    takes,
    widest,
    width,
)
from topstory.kernels.models.tally import count_payoff, count_trial, is_due

# Rank-one updates drift: invert afresh after this many, or after d if that is more. And at once
# after one with so large a γ that subtracting uuᵀ/γ cancels digits: an uncommonly long context.
REFRESH_AFTER = 1024
REFRESH_ABOVE = 1e4
# With A's condition number κ, each adds about 1e-16·κ to the error, and 1e-16·κ·|x||u|/γ if that is
# more: u is the difference of large numbers if x is long and like those before. Few are allowed if
# κ is large, and none after one whose own error is. Hostile contexts get here at once (without this
# they raised the drift to 1e-5), those of length 1 and a ridge of 1 after 1e6 trials of an article.
REFRESH_ABOVE_SUM = 1e9
REFRESH_ABOVE_ONE = 1e6

# The error of A⁻¹ is about 1e-16 times A's condition number, which is at most trace(A)/ridge: in
# tests 1e-8 here. Beyond, the model changes to its factored form. Contexts of length 1 and a ridge
# of 1 get here after 1e9 trials of one article.
MAX_CONDITION = 1e9
MAX_ERROR = 1e-6  # of A⁻¹, times its ridge: what `widest` allows for, a hundred times that


class Disjoint(NamedTuple):
    """All articles' regressions; `S` is A⁻¹."""

    A: Floats  # (articles, d, d)
    b: Floats  # (articles, d)
    S: Floats  # (articles, d, d)
    v: Floats  # (articles, d)
    updates: Counters  # (articles,) since the last inversion
    ridge: float  # or the least eigenvalue of another prior
    tally: Floats  # as `topstory.kernels.models.tally` has it, or (0,) for none
    room: Floats  # (2, d)
    square_room: Floats  # (d, d)


@internal
def worn(updates: int, A: Floats, ridge: float, x: Floats, u: Floats, gamma: float) -> bool:
    """Whether to invert A afresh after the update by u = A⁻¹x: one of so many since the last."""
    condition = trace(A) / ridge
    own = condition / gamma
    return bool(
        updates >= max(REFRESH_AFTER, x.shape[0])
        or updates * condition > REFRESH_ABOVE_SUM
        or dot(x, x) * dot(u, u) * own * own > REFRESH_ABOVE_ONE * REFRESH_ABOVE_ONE
    )


@specialised(estimate, inline=True)
def _estimate(state: Any, a: Any, x: Any, segment: Any) -> Any:
    if hasattr(state.instance_class, "v") and not hasattr(x.instance_class, "event"):
        # Hybrid has the same form. With features of the event it is in more than x.
        return lambda state, a, x, segment: linear(state.v, a, x)
    return None


@specialised(width, inline=True)
def _width(state: Any, a: Any, x: Any, segment: Any) -> Any:
    if hasattr(state.instance_class, "S") and not hasattr(x.instance_class, "event"):
        return lambda state, a, x, segment: np.sqrt(quadratic(state.S, a, x))
    return None


@specialised(widest, inline=True)
def _widest(state: Any, a: Any, x: Any) -> Any:
    def body(state: Any, a: Any, x: Any) -> float:
        # A⁻¹ is at most I/ridge. But for its last row, which is taken as it is: the last number is
        # mostly the constant, of which soon most is known.
        last = x.values.shape[0] - 1
        even = odd = left = right = 0.0
        for i in range(0, last - 1, 2):  # of two sums the additions do not wait for one another
            even += x.values[i] * x.values[i]
            odd += x.values[i + 1] * x.values[i + 1]
            left += state.S[a, last, i] * x.values[i]
            right += state.S[a, last, i + 1] * x.values[i + 1]
        if last % 2:
            even += x.values[last - 1] * x.values[last - 1]
            left += state.S[a, last, last - 1] * x.values[last - 1]
        length = (even + odd) / state.ridge + abs(state.S[a, last, last]) * x.values[last] ** 2
        square = (1.0 + MAX_ERROR) * length + 2.0 * (left + right) * x.values[last]
        return float(np.sqrt(max(square, 0.0)))

    return body if has_costly_width(state, x) else None


@specialised(takes, inline=True)
def _takes(state: Any, a: Any, x: Any) -> Any:
    def body(state: Any, a: Any, x: Any) -> bool:
        exact = trace(state.A[a]) + squared_length(x) <= MAX_CONDITION * state.ridge
        return bool(exact and not is_due(state.tally))

    return body if state.instance_class is Disjoint else None


@specialised(shown, inline=False)
def _shown(state: Any, a: Any, x: Any, segment: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any) -> None:
        context, u = state.room[0], state.room[1]
        count_trial(state.tally)
        spread(x, context)
        multiply(state.S[a], context, u)
        gamma = 1.0 + dot(context, u)
        scale = 1.0 / gamma
        step = linear(state.v, a, x) * scale
        for i in range(u.shape[0]):
            state.v[a, i] -= step * u[i]
        add_square(state.S[a], u, -scale)
        add_square(state.A[a], context, 1.0)
        state.updates[a] += 1
        afresh = worn(state.updates[a], state.A[a], state.ridge, context, u, gamma)
        if afresh or gamma > REFRESH_ABOVE:
            invert(state.A[a], state.ridge, state.S[a], state.square_room)
            multiply(state.S[a], state.b[a], state.v[a])
            state.updates[a] = 0

    return body if state.instance_class is Disjoint else None


@specialised(paid, inline=False)
def _paid(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> None:
        context, u = state.room[0], state.room[1]
        count_payoff(state.tally, payoff)
        spread(x, context)
        multiply(state.S[a], context, u)
        for i in range(u.shape[0]):
            state.b[a, i] += payoff * context[i]
            state.v[a, i] += payoff * u[i]

    return body if state.instance_class is Disjoint else None
