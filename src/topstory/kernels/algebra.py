"""Small dense linear algebra on one n × n matrix: a slice of a stack of them."""

import numpy as np

from topstory.kernels.compilation import Floats, internal, internal_inlined


@internal
def multiply(S: Floats, x: Floats, out: Floats) -> None:
    """Out = Sx, for a symmetric S."""
    out[:] = 0.0
    for i in range(x.shape[0]):
        if x[i] != 0.0:
            for j in range(x.shape[0]):
                out[j] += S[i, j] * x[i]


@internal
def add_square(M: Floats, x: Floats, factor: float) -> None:
    """M += factor·xxᵀ."""
    for i in range(x.shape[0]):
        step = factor * x[i]
        if step != 0.0:
            for j in range(x.shape[0]):
                M[i, j] += step * x[j]


@internal_inlined
def dot(x: Floats, y: Floats) -> float:
    """xᵀy."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@internal
def invert(A: Floats, floor: float, out: Floats, L: Floats) -> None:
    """Write A⁻¹ to `out`, for an A whose eigenvalues are all at least `floor`.

    The pivots of such a matrix are at least `floor` too; rounding may say otherwise when the
    condition number nears 1e16, so they are held there and the inverse stays bounded. L is room
    to work in.
    """
    n = A.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = A[i, j]
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
            out[i, j] = total
            out[j, i] = total
