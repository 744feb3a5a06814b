"""Small dense linear algebra on one n × n matrix: a slice of a stack of them."""

import numpy as np

from topstory.kernels.compilation import Floats, inlined, internal


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


@inlined
def dot(x: Floats, y: Floats) -> float:
    """xᵀy."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@inlined
def trace(A: Floats) -> float:
    """The sum of the diagonal: at least the largest eigenvalue of a positive definite A."""
    total = 0.0
    for i in range(A.shape[0]):
        total += A[i, i]
    return total


@internal
def factorise(A: Floats, floor: float, L: Floats) -> None:
    """Write the lower triangle L with LLᵀ = A, for an A whose eigenvalues are at least `floor`.

    The pivots of such a matrix are at least `floor` too; rounding may say otherwise when the
    condition number nears 1e16, so they are held there.
    """
    for i in range(A.shape[0]):
        for j in range(i + 1):
            total = A[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                L[i, i] = np.sqrt(max(total, floor))
            else:
                L[i, j] = total / L[j, j]


@internal
def invert(A: Floats, floor: float, out: Floats, L: Floats) -> None:
    """Write A⁻¹ to `out`, for an A whose eigenvalues are at least `floor`. L is room to work in."""
    n = A.shape[0]
    factorise(A, floor, L)
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


@internal
def solve(L: Floats, x: Floats, out: Floats) -> None:
    """Out = L⁻¹x, for a lower triangle L."""
    for i in range(x.shape[0]):
        total = x[i]
        for j in range(i):
            total -= L[i, j] * out[j]
        out[i] = total / L[i, i]


@internal
def solve_transposed(L: Floats, x: Floats, out: Floats) -> None:
    """Out = L⁻ᵀx."""
    for i in range(x.shape[0]):
        out[i] = x[i]
    for i in range(x.shape[0] - 1, -1, -1):
        out[i] /= L[i, i]
        for j in range(i):
            out[j] -= L[i, j] * out[i]


@internal
def rotate_in(L: Floats, x: Floats, cosines: Floats, sines: Floats) -> None:
    """Add xxᵀ to A = LLᵀ, by plane rotations of L and the new row.

    Nothing is subtracted that would have to cancel, so L is as exact as its inputs whatever the
    condition number of A, and can always be inverted. `cosines` and `sines` are room to work in.
    """
    for i in range(x.shape[0]):
        rest = x[i]
        for k in range(i):
            old = L[i, k]
            L[i, k] = cosines[k] * old + sines[k] * rest
            rest = cosines[k] * rest - sines[k] * old
        length = np.sqrt(L[i, i] * L[i, i] + rest * rest)
        cosines[i], sines[i] = L[i, i] / length, rest / length
        L[i, i] = length
