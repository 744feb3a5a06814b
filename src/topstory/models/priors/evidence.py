"""How likely payoffs are under a prior: the evidence, by which priors are weighed.

With A_a = S_a + ρI an article's own part can be integrated out: it leaves about the shared β what
hybrid's product form says (`topstory.kernels.models.hybrid`),

    A0 = Λ + Σ_a ρ(I − ρA_a⁻¹) ⊗ f_a f_aᵀ        b0 = Λβ₀ + Σ_a ρA_a⁻¹b_a ⊗ f_a

(where trials had another z, with E_a = B_a − S_a ⊗ f_aᵀ and M_a = I − ρA_a⁻¹, A0 is less by
Σ_a EᵀM(I ⊗ fᵀ) + (I ⊗ f)ME + EᵀA⁻¹E, and b0 by Σ_a EᵀA⁻¹b; their Σzzᵀ and Σrz count apart)
and with Q = Σr² − Σ b_aᵀA_a⁻¹b_a + β₀ᵀΛβ₀ − b0ᵀA0⁻¹b0 the logarithm of the evidence is, up to a
constant, ½ Σ_a ln(ρᵈ/|A_a|) + ½ ln(|Λ|/|A0|) − Q/(2σ²) − (n/2) ln σ².
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, log

import numpy as np
import numpy.typing as npt

from topstory.kernels.compilation import Floats
from topstory.kernels.models.disjoint import MAX_CONDITION
from topstory.kernels.models.factored import invert_all
from topstory.models.priors.sums import ArticleSums

# How much of a prior to use, and at last nothing of it.
WEIGHTS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0)


@dataclass(frozen=True, eq=False)
class Collapsed:
    """What articles' trials say about the shared part, their own parts integrated out."""

    A: Floats  # (dm, dm) what they add to A0
    b: Floats  # (dm,) what they add to b0
    gain: float  # ½ Σ ln(ρᵈ/|A_a|)
    explained: float  # Σ b_aᵀA_a⁻¹b_a


def collapse(
    S: Floats, b: Floats, features: Floats, ridge: float, crossed: Floats | None = None
) -> Collapsed:
    """Integrate the articles' own parts out.

    Args:
        S: (articles, d, d) Σ xxᵀ.
        b: (articles, d) Σ r·x.
        features: (articles, m).
        ridge: ρ.
        crossed: (articles, d, dm) E, if there is any.
    """
    d, m = b.shape[1], features.shape[1]
    A = S + ridge * np.eye(d)
    inverse = safely_inverted(A, ridge)
    theta = np.einsum("aij,aj->ai", inverse, b)
    middle = ridge * np.eye(d) - ridge**2 * inverse  # (articles, d, d)
    pairs = features[:, :, np.newaxis] * features[:, np.newaxis, :]
    summed = middle.reshape(-1, d * d).T @ pairs.reshape(-1, m * m)  # (d·d, m·m)
    shared = summed.reshape(d, d, m, m).transpose(0, 2, 1, 3).reshape(d * m, d * m)
    target = (ridge * theta.T @ features).reshape(d * m)
    beyond = np.zeros((0, d, d * m)) if crossed is None else crossed
    for a in np.flatnonzero(beyond.any(axis=(1, 2))):
        E = beyond[a]
        mixed = np.kron(middle[a] / ridge, features[a]).T @ E  # (I ⊗ f)ME
        shared -= mixed + mixed.T + E.T @ inverse[a] @ E
        target -= E.T @ theta[a]
    return Collapsed(
        A=(shared + shared.T) / 2,
        b=target,
        gain=0.5 * (len(b) * d * log(ridge) - log_determinant(A)),
        explained=float(np.einsum("ai,ai->", theta, b)),
    )


def collapse_sums(sums: ArticleSums, ridge: float) -> Collapsed:
    """The same of sums; where z was not always x ⊗ f, with what that adds to Σzzᵀ and Σrz."""
    found = collapse(sums.S, sums.b, sums.features, ridge, sums.crossed)
    if sums.crossed is None or sums.A0 is None or sums.b0 is None:
        return found
    return replace(found, A=found.A + sums.A0, b=found.b + sums.b0)


def shared_evidence(A: Floats, b: Floats, prior_A: Floats, prior_b: Floats) -> tuple[float, float]:
    """½ ln(|Λ|/|A0|), and b0ᵀA0⁻¹b0 − β₀ᵀΛβ₀: what β adds to the evidence of `collapse`.

    Args:
        A: what the trials add to the prior's Λ.
        b: what they add to Λβ₀.
        prior_A: Λ.
        prior_b: Λβ₀.
    """
    whole, right = prior_A + A, prior_b + b
    gain = 0.5 * (log_determinant(prior_A) - log_determinant(whole))
    fitted = right @ np.linalg.solve(whole, right) - prior_b @ np.linalg.solve(prior_A, prior_b)
    return gain, float(fitted)


def log_evidence(gain: float, rest: float, trials: float, noise: float | None = None) -> float:
    """The logarithm of the evidence, given Q as `rest`; without a `noise` σ² of the likeliest."""
    if noise is not None:
        return gain - rest / (2 * noise)
    if not rest > 0 or not trials:
        return -inf
    return gain - trials / 2 * log(rest / trials)


def inverted(A: npt.NDArray[np.float64]) -> Floats:
    """The inverses of positive definite matrices, symmetric to the bit."""
    inverse = np.linalg.inv(A)
    return np.asarray((inverse + np.swapaxes(inverse, -1, -2)) / 2)


def safely_inverted(A: Floats, least: float) -> Floats:
    """The same of (articles, d, d) whose eigenvalues are at least `least`, whatever their scale.

    Beyond a condition number of 1e16 a matrix may be singular in its last digits: by Cholesky's
    pivots, which are held at `least`, it still has an inverse.
    """
    large = np.trace(A, axis1=1, axis2=2) > MAX_CONDITION * least
    if not large.any():
        return inverted(A)
    found = np.empty_like(A)
    found[~large] = inverted(A[~large])
    some = np.empty((int(large.sum()), *A.shape[1:]))
    invert_all(np.ascontiguousarray(A[large]), least, some, np.empty(A.shape[1:]))
    found[large] = some
    return found


def log_determinant(A: Floats) -> float:
    """The sum of ln|A| over positive definite matrices."""
    return float(np.sum(np.linalg.slogdet(A)[1]))
