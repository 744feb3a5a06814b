"""A ridge regression for each article whose matrix is kept as a diagonal and a few rows.

A = ridge·I + Σxxᵀ is kept as D + FᵀF: D a diagonal, F with `rank` rows. A trial adds a row to F. To
be rid of one, F is reflected so that its last row is the weakest direction of all, and that row's
squares go to D: A's diagonal stays exact and, until there are more trials than rows, all of A. With
C = I + F D⁻¹Fᵀ = LLᵀ and W = L⁻¹F D⁻¹ (Woodbury)

    A⁻¹ = D⁻¹ − WᵀW        v = A⁻¹b        shown: D, F, W, v        paid: b += rx, v += r A⁻¹x

so payoffs may come late and in any order. A trial takes rank²·d steps, a score rank·d.
"""

from typing import Any, NamedTuple

import numpy as np

from topstory.kernels.algebra import dot, factorise, invert, multiply
from topstory.kernels.compilation import Floats, compiled, internal, specialised
from topstory.kernels.contexts import rolled, spread
from topstory.kernels.models.model import paid, shown, width

TURNS = 8  # of the iteration that finds the weakest direction; any direction would do, less well
_NOTHING = 1e-140  # of contexts squared: beside any ridge it is lost in rounding


class LowRank(NamedTuple):
    """All articles' regressions. `rows` has one more than `rank`, which is 0 between trials."""

    diagonal: Floats  # (articles, d) D
    rows: Floats  # (articles, rank + 1, d) F
    white: Floats  # (articles, rank + 1, d) W
    b: Floats  # (articles, d)
    v: Floats  # (articles, d)
    room: Floats  # (2, d)
    square_room: Floats  # (3, rank + 1, rank + 1)
    row_room: Floats  # (2, rank + 1)


@internal
def gram(rows: Floats, diagonal: Floats, weighted: bool, out: Floats) -> None:
    """FFᵀ, or F D⁻¹Fᵀ."""
    for i in range(rows.shape[0]):
        for j in range(i + 1):
            total = 0.0
            for k in range(rows.shape[1]):
                total += rows[i, k] * rows[j, k] / (diagonal[k] if weighted else 1.0)
            out[i, j] = total
            out[j, i] = total


@internal
def weakest(square: Floats, inverse: Floats, room: Floats, u: Floats, other: Floats) -> None:
    """Write the eigenvector of the smallest eigenvalue of `square` to u, about: unit length."""
    n = square.shape[0]
    total = 0.0
    for i in range(n):
        total += square[i, i]
    if total < _NOTHING:  # F adds nothing to D: its last row, the new one, may go
        u[:] = 0.0
        u[n - 1] = 1.0
        return
    floor = 1e-10 * total
    for i in range(n):
        square[i, i] += floor
        u[i] = 1.0 + i  # any start that is not a coordinate's own direction
    invert(square, floor, inverse, room)
    for _ in range(TURNS):
        multiply(inverse, u, other)
        length = np.sqrt(dot(other, other))
        for i in range(n):
            u[i] = other[i] / length


@internal
def drop_weakest(state: Any, a: int) -> None:
    """Reflect F's rows so that the last one is the weakest direction, and put that on D."""
    rows, diagonal = state.rows[a], state.diagonal[a]
    n = rows.shape[0]
    u, along = state.row_room[0], state.room[1]
    gram(rows, diagonal, False, state.square_room[0])
    weakest(state.square_room[0], state.square_room[1], state.square_room[2], u, state.row_room[1])
    # Householder's h takes u to the last coordinate: F − 2h(hᵀF)/hᵀh has uᵀF as its last row.
    u[n - 1] += 1.0 if u[n - 1] >= 0.0 else -1.0
    scale = 2.0 / dot(u, u)
    along[:] = 0.0
    for i in range(n):
        for k in range(rows.shape[1]):
            along[k] += u[i] * rows[i, k]
    for i in range(n):
        step = scale * u[i]
        for k in range(rows.shape[1]):
            rows[i, k] -= step * along[k]
    for k in range(rows.shape[1]):
        diagonal[k] += rows[n - 1, k] * rows[n - 1, k]
        rows[n - 1, k] = 0.0


@internal
def rewrite(state: Any, a: int) -> None:
    """W and v anew, from D, F and b."""
    rows, diagonal, white = state.rows[a], state.diagonal[a], state.white[a]
    C, L = state.square_room[0], state.square_room[1]
    gram(rows, diagonal, True, C)
    for i in range(C.shape[0]):
        C[i, i] += 1.0
    factorise(C, 1.0, L)
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            white[i, k] = rows[i, k] / diagonal[k]
        for j in range(i):
            for k in range(rows.shape[1]):
                white[i, k] -= L[i, j] * white[j, k]
        for k in range(rows.shape[1]):
            white[i, k] /= L[i, i]
    solved(state, a, state.b[a], 1.0, state.v[a], True)


@internal
def solved(state: Any, a: int, x: Floats, factor: float, out: Floats, anew: bool) -> None:
    """Add factor·A⁻¹x to `out`, or write it."""
    diagonal, white = state.diagonal[a], state.white[a]
    for k in range(x.shape[0]):
        out[k] = (0.0 if anew else out[k]) + factor * x[k] / diagonal[k]
    for i in range(white.shape[0]):
        step = factor * dot(white[i], x)
        for k in range(x.shape[0]):
            out[k] -= step * white[i, k]


@compiled
def rewrite_all(state: Any, articles: int) -> None:
    """W and v of all articles anew."""
    for a in range(articles):
        rewrite(state, a)


@specialised(width, inline=False)
def _width(state: Any, a: Any, x: Any, segment: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any) -> float:
        context = state.room[0]
        spread(rolled(x, a), context)
        total = 0.0
        for k in range(context.shape[0]):
            total += context[k] * context[k] / state.diagonal[a, k]
        for i in range(state.white.shape[1]):
            along = dot(state.white[a, i], context)
            total -= along * along
        return float(np.sqrt(max(total, 0.0)))

    return body if state.instance_class is LowRank else None


@specialised(shown, inline=False)
def _shown(state: Any, a: Any, x: Any, segment: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any) -> None:
        spread(x, state.rows[a, state.rows.shape[1] - 1])
        drop_weakest(state, a)
        rewrite(state, a)

    return body if state.instance_class is LowRank else None


@specialised(paid, inline=False)
def _paid(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> None:
        context = state.room[0]
        spread(x, context)
        for k in range(context.shape[0]):
            state.b[a, k] += payoff * context[k]
        solved(state, a, context, payoff, state.v[a], False)

    return body if state.instance_class is LowRank else None
