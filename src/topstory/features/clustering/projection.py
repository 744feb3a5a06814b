"""Projection of raw features, so that users who like the same articles are close together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from topstory.kernels.compilation import Floats

WEIGHTED, PLAIN = "weighted", "plain"


def user_projection(
    W: Floats, articles: Floats, shown: npt.NDArray[np.int64], distances: str
) -> Floats:
    """R (D, r): a user is at φ_uᵀR.

    Plain, the paper's way (§5.2.2): ψ_u = φ_uᵀW. Its distances weigh all article features alike,
    those of rare categories, about which little is known, too.

    Weighted: ψ_u·L, with LLᵀ the covariance of the features of the articles shown. Then the squared
    distance of two users is the variance, over articles, of the difference between their
    log-odds: users are far apart if they would click on different articles.

    Args:
        W: (D, M).
        articles: (A, M) φ_a.
        shown: (A,) how often each was shown.
        distances: "weighted" or "plain".
    """
    if distances == PLAIN:
        return W
    share = shown / shown.sum()
    centred = articles - share @ articles
    covariance = centred.T @ (centred * share[:, None])
    values, vectors = np.linalg.eigh(covariance)
    kept = values > values[-1] * 1e-12  # the constant has none, nor have categories never shown
    projected: Floats = W @ (vectors[:, kept] * np.sqrt(values[kept]))
    return projected


def article_projection(W: Floats, means: Floats, distances: str) -> Floats:
    """R (M, r): an article is at φ_aᵀR.

    Plain, the paper's way: Wφ_a. Weighted: what each user cluster's log-odds of clicking on it
    differ from those of the clusters together.

    Args:
        W: (D, M).
        means: (clusters, D) the mean φ_u of each user cluster.
        distances: "weighted" or "plain".
    """
    if distances == PLAIN:
        return W.T
    odds: Floats = (means - means.mean(axis=0)) @ W  # (clusters, M)
    return np.ascontiguousarray(odds.T)
