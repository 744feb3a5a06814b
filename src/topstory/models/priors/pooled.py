"""Mean and covariance of articles' coefficients, θ_a ~ N(m₀, Σ₀), by EM over a log's articles.

With the articles' sums S_a and b_a, Λ = σ²Σ₀⁻¹ and A_a = S_a + Λ, in turns

    θ̂_a = A_a⁻¹(b_a + Λm₀)        m₀ = mean θ̂_a        Σ₀ = mean [(θ̂_a − m₀)(θ̂_a − m₀)ᵀ + σ²A_a⁻¹]

and σ² is the mean square that is left. Each turn raises the evidence.
"""

from __future__ import annotations

import numpy as np

from topstory.kernels.compilation import Floats
from topstory.models.priors.evidence import inverted
from topstory.models.priors.sums import ArticleSums

TURNS, TOLERANCE = 500, 1e-4
# A prior is never surer than one of so many trials, nor vaguer: few articles say little about it.
MIN_PRECISION, MAX_PRECISION = 0.1, 1e4


def pool_articles(sums: ArticleSums, turns: int = TURNS) -> tuple[Floats, Floats, float]:
    """m₀ (d,), Λ (d, d) and σ²."""
    S, b, n = sums.S, sums.b, sums.trials
    articles, d = b.shape
    noise = max(sums.squares / n - (sums.payoff / n) ** 2, 1e-12)
    start = inverted(S.sum(0) + np.eye(d)) @ b.sum(0)
    mean, precision = start, 100.0 * np.eye(d)
    for _ in range(turns):
        inverse = inverted(S + precision)
        theta = np.einsum("aij,aj->ai", inverse, b + precision @ mean)
        new_mean = theta.mean(0)
        gaps = theta - new_mean
        # As if d more articles had the average spread in every direction.
        spread = gaps.T @ gaps + noise * inverse.sum(0)
        even = np.trace(spread) / (articles * d) * np.eye(d)
        covariance = (spread + d * even) / (articles + d)
        left = sums.squares - 2 * np.sum(theta * b) + np.einsum("ai,aij,aj->", theta, S, theta)
        noise = max((left + noise * np.einsum("aij,aij->", S, inverse)) / n, 1e-12)
        new_precision = bounded(noise * inverted(covariance))
        moved = np.abs(np.log(np.diag(new_precision) / np.diag(precision))).max()
        mean, precision = new_mean, new_precision
        if moved < TOLERANCE:
            break
    return mean, precision, float(noise)


def bounded(precision: Floats) -> Floats:
    """The same matrix with its eigenvalues held between `MIN_PRECISION` and `MAX_PRECISION`."""
    values, vectors = np.linalg.eigh(precision)
    held = (vectors * np.clip(values, MIN_PRECISION, MAX_PRECISION)) @ vectors.T
    return np.asarray((held + held.T) / 2)
