"""How an article's z depends on what its own trials taught, whatever z was in each of them.

Algorithm 2 keeps B_a = Σxzᵀ. With the article's own features f, and what f has beyond them in a
trial as e (numbers of the event), z = x ⊗ (f, e). What scoring and learning need of B is

    w = z − BᵀA⁻¹x = Kᵀu + x ⊗ (0, e)        u = A⁻¹x, K = (A(I ⊗ fᵀ) − B_f, −B_e)

where B_f and B_e are B's columns for f and e. A trial adds xxᵀ ⊗ fᵀ to A(I ⊗ fᵀ) and to B_f alike,
so the first part of K stays what it is at the start, ridge·I ⊗ fᵀ, unless the article is edited: to
f + δ adds A ⊗ δᵀ. It is kept for edited articles alone. B_e is kept for all: with q numbers of the
event it is q times as large as A.
"""

from typing import NamedTuple

from topstory.kernels.compilation import Floats, internal


class Crossing(NamedTuple):
    """One article's K: its first part if that is kept, and B_e."""

    ridge: float
    features: Floats  # (m,) f
    products: Floats  # (d, dq) B_e
    edited: bool  # whether the first part of K is `kept`, not ridge·I ⊗ fᵀ
    kept: Floats  # (d, dm)


@internal
def unfold(K: Crossing, u: Floats, out: Floats) -> None:
    """Out = Kᵀu, as long as z."""
    d, m = K.products.shape[0], K.features.shape[0]
    step = out.shape[0] // d
    for j in range(d):
        for k in range(m):
            if K.edited:
                total = 0.0
                for i in range(d):
                    total += K.kept[i, j * m + k] * u[i]
                out[j * step + k] = total
            else:
                out[j * step + k] = K.ridge * u[j] * K.features[k]
        for k in range(step - m):
            total = 0.0
            for i in range(d):
                total += K.products[i, j * (step - m) + k] * u[i]
            out[j * step + m + k] = -total


@internal
def residue(K: Crossing, u: Floats, x: Floats, beyond: Floats, w: Floats) -> None:
    """Write w of a trial: `beyond` is what f has there beyond the article's own features."""
    unfold(K, u, w)
    step = beyond.shape[0]
    for j in range(x.shape[0]):
        for k in range(step):
            w[j * step + k] += x[j] * beyond[k]


@internal
def cross(K: Crossing, x: Floats, beyond: Floats) -> None:
    """Take in a trial: B_e grows, and K's first part if f was another one than it is now."""
    d, m = K.products.shape[0], K.features.shape[0]
    count = beyond.shape[0] - m
    for i in range(d):
        for j in range(d):
            square = x[i] * x[j]
            for k in range(count):
                K.products[i, j * count + k] += square * beyond[m + k]
            if K.edited:
                for k in range(m):
                    K.kept[i, j * m + k] -= square * beyond[k]


@internal
def longest(features: Floats, beyond: Floats) -> float:
    """|f|² of a trial."""
    total = 0.0
    for k in range(beyond.shape[0]):
        value = beyond[k] + (features[k] if k < features.shape[0] else 0.0)
        total += value * value
    return total
