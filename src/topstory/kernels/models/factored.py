"""The linear models by factors, for any scale of contexts and ridges.

An inverse that is kept by rank-one updates loses its digits, and then its sign, once the condition
number of A passes 1e16: contexts of 1e6 are enough, while a direction still rests on its ridge
alone. A lower triangle L with LLᵀ = A does not: a trial is a new row, rotated in. With z = L⁻¹b,
y = L⁻¹x and, for hybrid, u = L⁻ᵀy, w = ridge·u ⊗ f, q = L0⁻¹w (all as in
`topstory.kernels.models.hybrid`)

    disjoint:  estimate = yᵀz            width² = |y|²
    hybrid:    estimate = yᵀz + qᵀz0     width² = |y|² + |q|²

    shown:  rotate x into L;  hybrid: w/√γ into L0 before, γ = 1 + |y|²
    paid:   b += r x

z and z0 are solved for anew after each of them, since a payoff that comes before its impression
makes them so large for a while that updates would lose the rest. The right-hand side of z0 = L0⁻¹b0
is a sum over articles, b0 = ridge·Σ θ_a ⊗ f_a with θ_a = A_a⁻¹b_a, by the product form of B; what
articles added that were removed since is kept as `departed`. A width is a sum of squares, so it is
never negative. Where z is not that product (`topstory.kernels.models.crossing`), w = Kᵀu + x ⊗ (0,
e), an article adds Kᵀθ to b0, and `departed` also has what payoffs add by e.
An article costs d² to score, and (dm)² in hybrid: more than in the ordinary form, so a model
changes to this one only if it has to.
"""

from typing import Any, NamedTuple

import numpy as np

from topstory.kernels.algebra import dot, factorise, invert, rotate_in, solve, solve_transposed
from topstory.kernels.compilation import Floats, compiled, inlined, specialised
from topstory.kernels.contexts import aimed, spread
from topstory.kernels.event_features import beyond
from topstory.kernels.models.crossing import Crossing, cross, longest, residue, unfold
from topstory.kernels.models.model import estimate, paid, shown, takes, width


class FactoredDisjoint(NamedTuple):
    """All articles' regressions."""

    L: Floats  # (articles, d, d)
    b: Floats  # (articles, d)
    z: Floats  # (articles, d)
    room: Floats  # (4, d)


class FactoredHybrid(NamedTuple):
    """The shared regression, and all articles' own ones."""

    L: Floats  # (articles, d, d)
    b: Floats  # (articles, d)
    z: Floats  # (articles, d)
    theta: Floats  # (articles, d)
    features: Floats  # (articles, m)
    products: Floats  # (articles, d, dq), as `GeneralHybrid` has it, and the next three
    edited: Floats  # (articles,)
    K: Floats  # (1 + rows, d, dm)
    reach: Floats  # (articles,)
    departed: Floats  # (d(m + q),)
    L0: Floats  # (1, d(m + q), d(m + q))
    z0: Floats  # (d(m + q),)
    ridge: float
    shared_ridge: float  # or the least eigenvalue of another prior
    room: Floats  # (4, d)
    feature_room: Floats  # (m + q,)
    shared_room: Floats  # (4, d(m + q))


# Of A, times what f adds to it. By factors z = x ⊗ f is as exact as its numbers. Any other z is
# not: w is then a difference, whose error grows with the condition number; in tests 1e-6 at 1e12.
MAX_GENERAL_CONDITION = 3e11

# Rows of `room` and `shared_room`; the others are for rotations and right-hand sides.
X, Y = 0, 1
W, Q = 0, 1


@compiled
def convert(A: Floats, b: Floats, ridge: float, L: Floats, z: Floats) -> None:
    """Fill in L and z of all articles."""
    for a in range(A.shape[0]):
        factorise(A[a], ridge, L[a])
        solve(L[a], b[a], z[a])


@compiled
def fade(
    L: Floats, b: Floats, z: Floats, start: Floats, start_b: Floats, factor: float, room: Floats
) -> None:
    """Let all trials count `factor` times as much: the rest is what articles start with.

    `start` is a lower triangle, and `start_b` its b, before any trial.
    """
    kept, rest = np.sqrt(factor), np.sqrt(1.0 - factor)
    row = room[0]
    for a in range(L.shape[0]):
        for i in range(start.shape[0]):
            for k in range(i + 1):
                L[a, i, k] *= kept
        for i in range(start.shape[0]):
            for k in range(start.shape[0]):
                row[k] = rest * start[k, i]
            rotate_in(L[a], row, room[1], room[2])
        for i in range(start.shape[0]):
            b[a, i] = start_b[i] + factor * (b[a, i] - start_b[i])
        solve(L[a], b[a], z[a])


@compiled
def add_rows(L: Floats, rows: Floats, room: Floats) -> None:
    """Add the squares of rows to A = LLᵀ."""
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            room[0, k] = rows[i, k]
        rotate_in(L, room[0], room[1], room[2])


@compiled
def invert_all(A: Floats, floor: float, out: Floats, room: Floats) -> None:
    """Write the inverses of matrices whose eigenvalues are at least `floor`."""
    for a in range(A.shape[0]):
        invert(A[a], floor, out[a], room)


@compiled
def solve_coefficients(L: Floats, z: Floats, theta: Floats) -> None:
    """Fill in θ = L⁻ᵀz of all articles."""
    for a in range(L.shape[0]):
        solve_transposed(L[a], z[a], theta[a])


@compiled
def add_own(b0: Floats, theta: Floats, features: Floats, factor: float) -> None:
    """Add factor·Σ θ_a ⊗ f_a over articles to b0."""
    m = features.shape[1]
    for a in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            own = factor * theta[a, i]
            if own != 0.0:
                for j in range(m):
                    b0[i * m + j] += own * features[a, j]


@compiled
def add_crossed(
    b0: Floats,
    theta: Floats,
    ridge: float,
    features: Floats,
    products: Floats,
    edited: Floats,
    K: Floats,
    factor: float,
    room: Floats,
) -> None:
    """Add factor·Σ K_aᵀθ_a over articles to b0: the same for any z."""
    for a in range(theta.shape[0]):
        row = int(edited[a])
        unfold(Crossing(ridge, features[a], products[a], row > 0, K[row]), theta[a], room)
        for i in range(b0.shape[0]):
            b0[i] += factor * room[i]


@inlined
def is_plain(state: Any) -> bool:
    """Whether z is x ⊗ f with an f that never changes, for all articles."""
    return bool(state.products.shape[2] == 0 and state.K.shape[0] == 1)


def settle(state: Any, a: int) -> None:
    """Solve for what depends on article a's L and b: its z; hybrid: also θ and z0."""
    raise NotImplementedError("called from kernels only")


@specialised(settle, inline=False)
def _settle(state: Any, a: Any) -> Any:
    def disjoint(state: Any, a: Any) -> None:
        solve(state.L[a], state.b[a], state.z[a])

    def hybrid(state: Any, a: Any) -> None:
        solve(state.L[a], state.b[a], state.z[a])
        solve_transposed(state.L[a], state.z[a], state.theta[a])
        b0 = state.shared_room[2]
        for i in range(b0.shape[0]):
            b0[i] = state.departed[i]
        if is_plain(state):
            add_own(b0, state.theta, state.features, state.ridge)
        else:
            add_crossed(
                b0,
                state.theta,
                state.ridge,
                state.features,
                state.products,
                state.edited,
                state.K,
                1.0,
                state.shared_room[3],
            )
        solve(state.L0[0], b0, state.z0)

    return disjoint if state.instance_class is FactoredDisjoint else hybrid


@inlined
def crossing(state: Any, a: int) -> Crossing:
    """The article's K."""
    row = int(state.edited[a])
    return Crossing(state.ridge, state.features[a], state.products[a], row > 0, state.K[row])


def reach(state: Any, a: int, x: Any) -> None:
    """Write x and y into the room; hybrid: also w and q."""
    raise NotImplementedError("called from kernels only")


@specialised(reach, inline=False)
def _reach(state: Any, a: Any, x: Any) -> Any:
    def disjoint(state: Any, a: Any, x: Any) -> None:
        spread(aimed(x, a), state.room[X])
        solve(state.L[a], state.room[X], state.room[Y])

    def hybrid(state: Any, a: Any, x: Any) -> None:
        u, w, found = state.room[2], state.shared_room[W], aimed(x, a)
        spread(found, state.room[X])
        beyond(found, state.features.shape[1], state.feature_room)
        solve(state.L[a], state.room[X], state.room[Y])
        solve_transposed(state.L[a], state.room[Y], u)
        residue(crossing(state, a), u, state.room[X], state.feature_room, w)
        solve(state.L0[0], w, state.shared_room[Q])

    return disjoint if state.instance_class is FactoredDisjoint else hybrid


def _is_factored(state: Any) -> bool:
    return hasattr(state.instance_class, "L")


def _is_hybrid(state: Any) -> bool:
    return state.instance_class is FactoredHybrid


@specialised(estimate, inline=False)
def _estimate(state: Any, a: Any, x: Any, segment: Any) -> Any:
    def disjoint(state: Any, a: Any, x: Any, segment: Any) -> float:
        reach(state, a, x)
        return dot(state.room[Y], state.z[a])

    def hybrid(state: Any, a: Any, x: Any, segment: Any) -> float:
        reach(state, a, x)
        return dot(state.room[Y], state.z[a]) + dot(state.shared_room[Q], state.z0)

    if not _is_factored(state):
        return None
    return hybrid if _is_hybrid(state) else disjoint


@specialised(width, inline=False)
def _width(state: Any, a: Any, x: Any, segment: Any) -> Any:
    def disjoint(state: Any, a: Any, x: Any, segment: Any) -> float:
        reach(state, a, x)
        return float(np.sqrt(dot(state.room[Y], state.room[Y])))

    def hybrid(state: Any, a: Any, x: Any, segment: Any) -> float:
        reach(state, a, x)
        y, q = state.room[Y], state.shared_room[Q]
        return float(np.sqrt(dot(y, y) + dot(q, q)))

    if not _is_factored(state):
        return None
    return hybrid if _is_hybrid(state) else disjoint


@specialised(shown, inline=False)
def _shown(state: Any, a: Any, x: Any, segment: Any) -> Any:
    def disjoint(state: Any, a: Any, x: Any, segment: Any) -> None:
        spread(x, state.room[X])
        rotate_in(state.L[a], state.room[X], state.room[2], state.room[3])
        settle(state, a)

    def hybrid(state: Any, a: Any, x: Any, segment: Any) -> None:
        reach(state, a, x)
        y, w = state.room[Y], state.shared_room[W]
        scale = 1.0 / np.sqrt(1.0 + dot(y, y))
        for i in range(w.shape[0]):
            w[i] *= scale
        rotate_in(state.L0[0], w, state.shared_room[2], state.shared_room[3])
        rotate_in(state.L[a], state.room[X], state.room[2], state.room[3])
        if not is_plain(state):
            cross(crossing(state, a), state.room[X], state.feature_room)
            far = longest(state.features[a], state.feature_room)
            state.reach[a] = max(state.reach[a], far)
        settle(state, a)

    if not _is_factored(state):
        return None
    return hybrid if _is_hybrid(state) else disjoint


@specialised(paid, inline=False)
def _paid(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> Any:
    def disjoint(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> None:
        spread(x, state.room[X])
        for i in range(state.b.shape[1]):
            state.b[a, i] += payoff * state.room[X, i]
        settle(state, a)

    def hybrid(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> None:
        context, extra = state.room[X], state.feature_room
        spread(x, context)
        beyond(x, state.features.shape[1], extra)
        for i in range(state.b.shape[1]):
            state.b[a, i] += payoff * context[i]
            for k in range(extra.shape[0] if not is_plain(state) else 0):
                state.departed[i * extra.shape[0] + k] += payoff * context[i] * extra[k]
        settle(state, a)

    if not _is_factored(state):
        return None
    return hybrid if _is_hybrid(state) else disjoint


@specialised(takes, inline=False)
def _takes(state: Any, a: Any, x: Any) -> Any:
    def body(state: Any, a: Any, x: Any) -> bool:
        if is_plain(state):
            return True
        reach(state, a, x)
        context, y, w = state.room[X], state.room[Y], state.shared_room[W]
        own = dot(context, context) + squares(state.L[a]) - context.shape[0] * state.ridge
        far = max(state.reach[a], longest(state.features[a], state.feature_room))
        shared = squares(state.L0[0]) + dot(w, w) / (1.0 + dot(y, y))
        return bool(
            own * (1.0 / state.ridge + far / state.shared_ridge) <= MAX_GENERAL_CONDITION
            and shared <= MAX_GENERAL_CONDITION * state.shared_ridge
        )

    return body if _is_hybrid(state) else None


@inlined
def squares(L: Floats) -> float:
    """The trace of LLᵀ."""
    total = 0.0
    for i in range(L.shape[0]):
        for j in range(i + 1):
            total += L[i, j] * L[i, j]
    return total
