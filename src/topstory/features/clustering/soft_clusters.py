"""Clusters of users or articles, with soft memberships."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from topstory.kernels.compilation import Floats

CONSTANT = "constant"


# Ignored: scikit-learn is not typed.
class SoftClusters(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """K-means clusters and soft memberships in them, the constant 1 last (paper, §5.2.2).

    The membership of x in the cluster with centre c is a Gaussian kernel,
    exp(−‖x − c‖²/(2·width²)), normalised so that memberships sum to 1.

    Args:
        clusters: how many; the largest comes first.
        above, share: the width is chosen so that for this share of the rows the largest membership
            is above this. 85 % above 0.5 is what the paper's Figure 5 shows.
        width: of the kernel; None: fitted.
        restarts: of k-means, each from a k-means++ start; the best one is kept.
        seed: decides the starts.

    >>> X = np.array([[0.0], [0.2], [0.1], [5.0], [5.2]])
    >>> soft = SoftClusters(clusters=2, width=1.0).fit(X)
    >>> soft.transform([[0.1], [2.6], [5.1]]).round(2)
    array([[1. , 0. , 1. ],
           [0.5, 0.5, 1. ],
           [0. , 1. , 1. ]])
    """

    def __init__(
        self,
        clusters: int = 5,
        above: float = 0.5,
        share: float = 0.85,
        width: float | None = None,
        restarts: int = 10,
        seed: int = 0,
    ) -> None:
        self.clusters = clusters
        self.above = above
        self.share = share
        self.width = width
        self.restarts = restarts
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> SoftClusters:
        """Find the centres and the width."""
        self._check()
        X = validate_data(self, X, dtype=np.float64)
        distinct = len(np.unique(X, axis=0))
        if distinct < self.clusters:
            raise ValueError(
                f"{distinct} different rows make no {self.clusters} clusters; ask for fewer "
                f"(got n_samples = {len(X)})"
            )
        means = KMeans(
            self.clusters, init="k-means++", n_init=self.restarts, random_state=self.seed
        )
        with threadpool_limits(1):  # the same sums, in the same order, on any machine
            means.fit(X)
        sizes = np.bincount(means.labels_, minlength=self.clusters)
        return self.place(means.cluster_centers_[np.argsort(-sizes, kind="stable")], X)

    def place(self, centers: Floats, X: Floats) -> SoftClusters:
        """Put the centres there, and fit the width to the rows of X."""
        self.n_features_in_ = centers.shape[1]
        self.centers_ = centers
        self.width_ = self.width or fitted_width(self._squares(X), self.above, self.share)
        return self

    def transform(self, X: Any) -> Floats:
        """(n, clusters + 1) memberships and the constant."""
        X = self._known(X)
        return np.column_stack([memberships(self._squares(X), self.width_), np.ones(len(X))])

    def predict(self, X: Any) -> npt.NDArray[np.intp]:
        """(n,) the closest cluster: the user's segment."""
        closest: npt.NDArray[np.intp] = self._squares(self._known(X)).argmin(axis=1)
        return closest

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """cluster0, cluster1, … and the constant."""
        check_is_fitted(self)
        return np.array([*(f"cluster{c}" for c in range(self.clusters)), CONSTANT], dtype=object)

    def _known(self, X: Any) -> Floats:
        check_is_fitted(self)
        known: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        return known

    def _squares(self, X: Floats) -> Floats:
        """(n, clusters) squared distances."""
        return np.stack([((X - center) ** 2).sum(axis=1) for center in self.centers_], axis=1)

    def _check(self) -> None:
        if self.clusters < 1:
            raise ValueError(f"clusters must be at least 1, got {self.clusters!r}")
        if self.width is not None and not 0 < self.width < np.inf:
            raise ValueError(f"width must be a finite number > 0, got {self.width!r}")
        for name in ("above", "share"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {getattr(self, name)!r}")


def memberships(squares: Floats, width: float) -> Floats:
    """(n, clusters) from squared distances: a Gaussian kernel, normalised to sum 1.

    >>> memberships(np.array([[0.0, 2.0]]), width=1.0).round(3)
    array([[0.731, 0.269]])
    """
    powers = -squares / (2.0 * width**2)
    powers -= powers.max(axis=1, keepdims=True)  # the closest one's kernel is 1: no 0/0 far away
    kernel = np.exp(powers)
    normalised: Floats = kernel / kernel.sum(axis=1, keepdims=True)
    return normalised


def fitted_width(squares: Floats, above: float, share: float) -> float:
    """The width with which `share` of the rows have a largest membership above `above`.

    The narrower the kernel, the larger each row's largest membership: so halving finds it. Where
    no width reaches the share (rows between two centres), the narrowest tried is taken; where all
    do (two clusters: one has at least a half), half the root mean square distance to a centre.

    >>> squares = np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 4.0], [1.0, 5.0]])
    >>> width = fitted_width(squares, above=0.95, share=0.5)
    >>> (memberships(squares, width).max(axis=1) > 0.95).mean()
    np.float64(0.5)
    """
    scale = float(np.sqrt(squares.mean())) or 1.0
    low, high = np.log(scale * 1e-4), np.log(scale / 2)
    for _ in range(60):
        middle = (low + high) / 2
        reached = (memberships(squares, float(np.exp(middle))).max(axis=1) > above).mean()
        low, high = (middle, high) if reached >= share else (low, middle)
    return float(np.exp(low))
