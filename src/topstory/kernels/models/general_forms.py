"""The forms S and v of hybrid's general form: computed, and kept up to date.

The symbols are those of `topstory.kernels.models.general_hybrid` and of `crossing`. Here K stands
solved, G_f = A⁻¹K_f and G_e = A⁻¹B_e, so that w = (G_fᵀx, −G_eᵀx) + x ⊗ (0, e). To multiply K by u
instead would lose digits with the square of A's condition number.
"""

from typing import NamedTuple

from topstory.kernels.algebra import factorise, multiply, solve, solve_transposed
from topstory.kernels.compilation import Counters, Floats, Slots, internal
from topstory.kernels.models.hybrid_forms import ACTIVE, CHANGES, KEEP_FOR


class Solved(NamedTuple):
    """One article's G."""

    ridge: float
    features: Floats  # (m,) f
    A_inverse: Floats  # (d, d)
    event: Floats  # (d, dq) G_e
    edited: bool  # whether G_f is `kept`, not ridge·A⁻¹ ⊗ fᵀ
    kept: Floats  # (d, dm) G_f


@internal
def general_residue(G: Solved, x: Floats, u: Floats, beyond: Floats, w: Floats) -> None:
    """Write w of a trial: `beyond` is what f has there beyond the article's own features."""
    d, m = G.event.shape[0], G.features.shape[0]
    step = beyond.shape[0]
    count = step - m
    for j in range(d):
        for k in range(m):
            total = 0.0
            if G.edited:
                for i in range(d):
                    total += G.kept[i, j * m + k] * x[i]
            else:
                total = G.ridge * u[j] * G.features[k]
            w[j * step + k] = total + x[j] * beyond[k]
        for k in range(count):
            total = x[j] * beyond[m + k]
            for i in range(d):
                total -= G.event[i, j * count + k] * x[i]
            w[j * step + m + k] = total


@internal
def apply(G: Solved, h: Floats, room: Floats, out: Floats) -> None:
    """Out = (G_f, −G_e)h, for an h as long as z."""
    d, m = G.event.shape[0], G.features.shape[0]
    step = h.shape[0] // d
    count = step - m
    if G.edited:
        for i in range(d):
            total = 0.0
            for j in range(d):
                for k in range(m):
                    total += G.kept[i, j * m + k] * h[j * step + k]
            out[i] = total
    else:
        for i in range(d):
            total = 0.0
            for k in range(m):
                total += h[i * step + k] * G.features[k]
            room[i] = G.ridge * total
        multiply(G.A_inverse, room, out)
    for i in range(d):
        for j in range(d):
            for k in range(count):
                out[i] -= G.event[i, j * count + k] * h[j * step + m + k]


@internal
def move_solved(G: Solved, u: Floats, w: Floats, scale: float) -> None:
    """After a trial: G_f −= scale·u w_fᵀ, and G_e += scale·u w_eᵀ."""
    d, m = G.event.shape[0], G.features.shape[0]
    step = w.shape[0] // d
    count = step - m
    for i in range(d):
        part = scale * u[i]
        for j in range(d):
            for k in range(count):
                G.event[i, j * count + k] += part * w[j * step + m + k]
            if G.edited:
                for k in range(m):
                    G.kept[i, j * m + k] -= part * w[j * step + k]


@internal
def solve_columns(
    A: Floats, floor: float, right: Floats, L: Floats, room: Floats, out: Floats
) -> None:
    """Out = A⁻¹·right, whose eigenvalues are at least `floor`; by factors, not by the inverse."""
    factorise(A, floor, L)
    for p in range(right.shape[1]):
        for i in range(A.shape[0]):
            room[2, i] = right[i, p]
        solve(L, room[2], room[3])
        solve_transposed(L, room[3], room[2])
        for i in range(A.shape[0]):
            out[i, p] = room[2, i]


@internal
def compute_general_form(
    G: Solved,
    P: Floats,
    beta: Floats,
    b: Floats,
    room: Floats,
    cross_room: Floats,
    S: Floats,
    v: Floats,
) -> None:
    """S and v of one article from scratch; all but P and beta are its own."""
    d, m = b.shape[0], G.features.shape[0]
    step = beta.shape[0] // d
    count = step - m
    folded, column = room[2], room[3]
    apply(G, beta, folded, column)
    multiply(G.A_inverse, b, v[:d])
    for i in range(d):
        v[i] += column[i]
    for p in range(beta.shape[0]):  # GP, column by column
        apply(G, P[p], folded, column)
        for i in range(d):
            cross_room[i, p] = column[i]
    for i in range(d):  # GPGᵀ
        apply(G, cross_room[i], folded, column)
        for j in range(i + 1):
            S[i, j] = G.A_inverse[i, j] + column[j]
            S[j, i] = S[i, j]
    for j in range(d):
        for k in range(count):
            wide, long = d + j * count + k, j * step + m + k
            v[wide] = beta[long]
            for i in range(d):
                S[i, wide] = cross_room[i, long]
                S[wide, i] = cross_room[i, long]
            for other in range(d):
                for last in range(count):
                    S[wide, d + other * count + last] = P[long, other * step + m + last]


@internal
def move_general_forms(
    active: Slots,
    left_at: Counters,
    clock: Counters,
    A_inverse: Floats,
    features: Floats,
    event: Floats,
    edited: Floats,
    kept: Floats,
    ridge: float,
    S: Floats,
    v: Floats,
    room: Floats,
    g: Floats,
    h: Floats,
    a: int,
    shrink: float,
    step: float,
) -> None:
    """S −= shrink·ggᵀ and v += step·g for every article in use; those idle for long are let go."""
    d, m = room.shape[1], features.shape[1]
    long = h.shape[0] // d
    count = long - m
    u, folded = room[1], room[2]
    clock[CHANGES] += 1
    i = 0
    while i < clock[ACTIVE]:
        article = active[i]
        if left_at[article] < clock[CHANGES] - KEEP_FOR:
            left_at[article] = -1
            clock[ACTIVE] -= 1
            active[i] = active[clock[ACTIVE]]
            continue
        row = int(edited[article])
        G = Solved(ridge, features[article], A_inverse[article], event[article], row > 0, kept[row])
        apply(G, h, folded, g[:d])
        for j in range(d):
            if article == a:
                g[j] += u[j]
            for k in range(count):
                g[d + j * count + k] = h[j * long + m + k]
        S_a, v_a = S[article], v[article]
        for k in range(g.shape[0]):
            v_a[k] += step * g[k]
        if shrink != 0.0:
            for k in range(g.shape[0]):
                part = shrink * g[k]
                for j in range(g.shape[0]):
                    S_a[k, j] -= part * g[j]
        i += 1
