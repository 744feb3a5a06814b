"""A preconditioner: coordinates in which the loss has about the same curvature everywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from topstory.features.regression.objective import Objective
from topstory.kernels.compilation import Floats

MAX_FEATURES = 3000  # an eigenbasis of more costs more than it saves
SAMPLE_USERS = 30_000  # whose moments stand for those of all
MIN_CURVATURE = 1e-6  # as a share of the largest curvature


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """W = Q_u (V / scale) Q_aᵀ, so that the loss over V is round, and few steps find its minimum.

    With click probability p, the curvature is p(1 − p)·Σ zzᵀ + ridge. In random exploration who
    comes and what is shown are independent, so with z = φ_u ⊗ φ_a it is about that of
    n·p(1 − p)·C_u ⊗ C_a + ridge, where C are the means of φφᵀ: the eigenvectors Q_u and Q_a make
    that diagonal. A wrong guess costs steps, but changes nothing of what is minimised. On
    400,000 events of 1145 × 83 features L-BFGS took 9 iterations instead of 53.
    """

    users: Floats  # (D, D) Q_u
    articles: Floats  # (M, M) Q_a
    scale: Floats  # (D, M)
    intercept: float

    @classmethod
    def of(cls, objective: Objective, ridge: float) -> Preconditioner:
        """From moments and clicks of the events, without evaluating the loss."""
        weight = objective.learned * objective.mean * (1.0 - objective.mean)
        user_values, users = _axes(objective.user_moments(SAMPLE_USERS))
        article_values, articles = _axes(objective.article_moments())
        curvature = weight * np.outer(user_values, article_values) + ridge
        curvature = np.maximum(curvature, MIN_CURVATURE * curvature.max())
        return cls(users, articles, np.sqrt(curvature), float(np.sqrt(weight)))

    def place(self, v: Floats) -> Floats:
        """x, that is W and the intercept, of v."""
        W = self.users @ (v[:-1].reshape(self.scale.shape) / self.scale) @ self.articles.T
        return np.append(W.ravel(), v[-1] / self.intercept)

    def slope(self, gradient: Floats) -> Floats:
        """The gradient by v, of that by x."""
        W = self.users.T @ gradient[:-1].reshape(self.scale.shape) @ self.articles / self.scale
        return np.append(W.ravel(), gradient[-1] / self.intercept)


def _axes(moments: Floats) -> tuple[Floats, Floats]:
    # In single precision: axes that are a little off still turn W and its gradient alike.
    values, vectors = linalg.eigh(moments.astype(np.float32), driver="evd")
    return np.maximum(values, 0.0).astype(np.float64), vectors.astype(np.float64)
