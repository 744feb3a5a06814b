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
never negative.
An article costs d² to score, and (dm)² in hybrid: more than in the ordinary form, so a model
changes to this one only if it has to.
"""

from typing import Any, NamedTuple

import numpy as np

from topstory.kernels.algebra import dot, factorise, rotate_in, solve, solve_transposed
from topstory.kernels.compilation import Floats, compiled, specialised
from topstory.kernels.contexts import aimed, spread
from topstory.kernels.models.model import estimate, paid, shown, width


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
    departed: Floats  # (dm,)
    L0: Floats  # (1, dm, dm)
    z0: Floats  # (dm,)
    ridge: float
    room: Floats  # (4, d)
    shared_room: Floats  # (4, dm)


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
        add_own(b0, state.theta, state.features, state.ridge)
        solve(state.L0[0], b0, state.z0)

    return disjoint if state.instance_class is FactoredDisjoint else hybrid


def reach(state: Any, a: int, x: Any) -> None:
    """Write x and y into the room; hybrid: also w and q."""
    raise NotImplementedError("called from kernels only")


@specialised(reach, inline=False)
def _reach(state: Any, a: Any, x: Any) -> Any:
    def disjoint(state: Any, a: Any, x: Any) -> None:
        spread(aimed(x, a), state.room[X])
        solve(state.L[a], state.room[X], state.room[Y])

    def hybrid(state: Any, a: Any, x: Any) -> None:
        u, w, features = state.room[2], state.shared_room[W], state.features[a]
        spread(aimed(x, a), state.room[X])
        solve(state.L[a], state.room[X], state.room[Y])
        solve_transposed(state.L[a], state.room[Y], u)
        m = features.shape[0]
        for i in range(u.shape[0]):
            for j in range(m):
                w[i * m + j] = state.ridge * u[i] * features[j]
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
        settle(state, a)

    if not _is_factored(state):
        return None
    return hybrid if _is_hybrid(state) else disjoint


@specialised(paid, inline=False)
def _paid(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> None:
        spread(x, state.room[X])
        for i in range(state.b.shape[1]):
            state.b[a, i] += payoff * state.room[X, i]
        settle(state, a)

    return body if _is_factored(state) else None
