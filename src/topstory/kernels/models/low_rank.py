"""A ridge regression for each article whose matrix is kept as a diagonal and a few rows.

A = ridge·I + Σxxᵀ is kept as D + FᵀF: D a diagonal, F with `rank` rows. A trial adds a row to F. If
all are in use, F is reflected so that its last row is the weakest direction of all, and that row's
squares go to D: A's diagonal stays exact and, until there are more trials than rows, all of A. With
F D^−½ = RQ, Q's rows orthonormal, and I + RᵀR = TTᵀ

    A⁻¹ = D^−½ (I − QᵀQ + QᵀT⁻ᵀT⁻¹Q) D^−½      v = A⁻¹b
    shown: D, F, Q, T⁻¹, v                     paid: b += rx, v += r A⁻¹x

so payoffs may come late and in any order. A trial takes rank²·d steps, a score rank·d. Nothing is
squared that would have to cancel (I − F D⁻¹Fᵀ would): a width is |x̃ − QᵀQx̃|² + |T⁻¹Qx̃|², with
x̃ = D^−½x, and holds for contexts of any scale.
"""

from typing import Any, NamedTuple

import numpy as np

from topstory.kernels.algebra import dot, invert, multiply, rotate_in, solve
from topstory.kernels.compilation import Floats, compiled, internal, specialised
from topstory.kernels.contexts import rolled, spread
from topstory.kernels.models.model import paid, shown, width

TURNS = 8  # of the iteration that finds the weakest direction; any direction would do, less well
_NOTHING = 1e-140  # of contexts squared: beside any ridge it is lost in rounding
_CANCELS = 1e-6  # of a sum of squares: less than this is left, so form the difference first


class LowRank(NamedTuple):
    """All articles' regressions. `rows` has one more than `rank`, which is 0 between trials."""

    diagonal: Floats  # (articles, d) D
    rows: Floats  # (articles, rank + 1, d) F
    axes: Floats  # (articles, rank + 1, d) Q; a row of zeros where F has fewer directions
    small: Floats  # (articles, rank + 1, rank + 1) T⁻¹
    b: Floats  # (articles, d)
    v: Floats  # (articles, d)
    room: Floats  # (2, d)
    square_room: Floats  # (3, rank + 1, rank + 1)
    row_room: Floats  # (4, rank + 1)


@internal
def gram(rows: Floats, out: Floats) -> None:
    """FFᵀ."""
    for i in range(rows.shape[0]):
        for j in range(i + 1):
            out[i, j] = dot(rows[i], rows[j])
            out[j, i] = out[i, j]


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
    gram(rows, state.square_room[0])
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
def free_row(rows: Floats) -> int:
    """The first row of zeros; the last one always is."""
    for i in range(rows.shape[0] - 1):
        if dot(rows[i], rows[i]) == 0.0:
            return i
    return int(rows.shape[0] - 1)


@internal
def rewrite(state: Any, a: int) -> None:
    """Q, T⁻¹ and v anew, from D, F and b."""
    rows, diagonal, axes, small = state.rows[a], state.diagonal[a], state.axes[a], state.small[a]
    n, T, row, unit = rows.shape[0], state.square_room[0], state.row_room[0], state.row_room[3]
    T[:] = 0.0
    for i in range(n):
        T[i, i] = 1.0
    for i in range(n):
        for k in range(rows.shape[1]):
            axes[i, k] = rows[i, k] / np.sqrt(diagonal[k])
        row[:] = 0.0
        size = dot(axes[i], axes[i])
        for _ in range(2):  # what rounding left of the others after once
            for j in range(i):
                along = dot(axes[j], axes[i])
                row[j] += along
                for k in range(rows.shape[1]):
                    axes[i, k] -= along * axes[j, k]
        left = dot(axes[i], axes[i])
        row[i] = np.sqrt(left) if left > 1e-30 * size else 0.0
        for k in range(rows.shape[1]):
            axes[i, k] = axes[i, k] / row[i] if row[i] > 0.0 else 0.0
        rotate_in(T, row, state.row_room[1], state.row_room[2])
    for i in range(n):  # T⁻¹, column by column
        unit[:] = 0.0
        unit[i] = 1.0
        solve(T, unit, row)
        for j in range(n):
            small[j, i] = row[j]
    state.v[a, :] = 0.0
    add_solved(state, a, state.b[a], 1.0, state.v[a])


@internal
def divide(state: Any, a: int, apart: Floats, along: Floats, other: Floats) -> None:
    """Take from `apart`, which is x̃, what Q spans, and add Qx̃ to `along`."""
    axes = state.axes[a]
    for _ in range(2):
        for i in range(axes.shape[0]):
            other[i] = dot(axes[i], apart)
        for i in range(axes.shape[0]):
            along[i] += other[i]
            for k in range(apart.shape[0]):
                apart[k] -= other[i] * axes[i, k]


@internal
def add_solved(state: Any, a: int, x: Floats, factor: float, out: Floats) -> None:
    """Add factor·A⁻¹x to `out`."""
    diagonal, axes, small = state.diagonal[a], state.axes[a], state.small[a]
    apart, along, other = state.room[1], state.row_room[0], state.row_room[1]
    for k in range(x.shape[0]):
        apart[k] = x[k] / np.sqrt(diagonal[k])
    along[:] = 0.0
    divide(state, a, apart, along, other)
    n = along.shape[0]
    for i in range(n):
        other[i] = dot(small[i], along)
    for j in range(n):
        back = 0.0
        for i in range(j, n):
            back += small[i, j] * other[i]
        for k in range(x.shape[0]):
            apart[k] += back * axes[j, k]
    for k in range(x.shape[0]):
        out[k] += factor * apart[k] / np.sqrt(diagonal[k])


@compiled
def rewrite_all(state: Any, articles: int) -> None:
    """Q, T⁻¹ and v of all articles anew."""
    for a in range(articles):
        rewrite(state, a)


@specialised(width, inline=False)
def _width(state: Any, a: Any, x: Any, segment: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any) -> float:
        context, along, axes = state.room[0], state.row_room[0], state.axes[a]
        spread(rolled(x, a), context)
        for k in range(context.shape[0]):
            context[k] /= np.sqrt(state.diagonal[a, k])
        whole = dot(context, context)
        total = whole
        for i in range(axes.shape[0]):
            along[i] = dot(axes[i], context)
            total -= along[i] * along[i]
        if total < _CANCELS * whole:
            along[:] = 0.0
            divide(state, a, context, along, state.row_room[1])
            total = dot(context, context)
        for i in range(axes.shape[0]):
            one = dot(state.small[a, i], along)
            total += one * one
        return float(np.sqrt(max(total, 0.0)))

    return body if state.instance_class is LowRank else None


@specialised(shown, inline=False)
def _shown(state: Any, a: Any, x: Any, segment: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any) -> None:
        place = free_row(state.rows[a])
        spread(x, state.rows[a, place])
        if place == state.rows.shape[1] - 1:
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
        add_solved(state, a, context, payoff, state.v[a])

    return body if state.instance_class is LowRank else None
