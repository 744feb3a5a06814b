"""Small dense linear algebra on one article's matrix in a stack of them: M is (articles, n, n)."""

import numpy as np

from topstory.kernels.compilation import Floats, compiled, inlined


@compiled
def multiply(S: Floats, a: int, x: Floats, out: Floats) -> None:
    """Out = S_a x, for a symmetric S_a."""
    out[:] = 0.0
    for i in range(x.shape[0]):
        if x[i] != 0.0:
            for j in range(x.shape[0]):
                out[j] += S[a, i, j] * x[i]


@compiled
def add_square(M: Floats, a: int, x: Floats, factor: float) -> None:
    """M_a += factor·xxᵀ."""
    for i in range(x.shape[0]):
        step = factor * x[i]
        if step != 0.0:
            for j in range(x.shape[0]):
                M[a, i, j] += step * x[j]


@inlined
def dot(x: Floats, y: Floats) -> float:
    """xᵀy."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@compiled
def invert(A: Floats, a: int, floor: float, out: Floats, L: Floats) -> None:
    """Write A_a⁻¹ to out_a, for an A_a whose eigenvalues are all at least `floor`.

    The pivots of such a matrix are at least `floor` too; rounding may say otherwise when the
    condition number nears 1e16, so they are held there and the inverse stays bounded. L is room
    to work in.
    """
    n = A.shape[1]
    for i in range(n):
        for j in range(i + 1):
            total = A[a, i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                L[i, i] = np.sqrt(max(total, floor))
            else:
                L[i, j] = total / L[j, j]
    # L becomes its own inverse, row by row; then A⁻¹ = L⁻ᵀ L⁻¹.
    for i in range(n):
        scale = 1.0 / L[i, i]
        for j in range(i):
            total = 0.0
            for k in range(j, i):
                total += L[i, k] * L[k, j]
            L[i, j] = -total * scale
        L[i, i] = scale
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, n):
                total += L[k, i] * L[k, j]
            out[a, i, j] = total
            out[a, j, i] = total
