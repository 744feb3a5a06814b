"""Which raw features are common enough to be used."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data


# Ignored: scikit-learn is not typed.
class Support(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Keeps the features whose support is high enough (paper, §5.2.2).

    The support of a feature is the fraction of rows (users) that have it, that is, where it is
    not 0. The paper keeps features with a support of at least 0.1.

    Args:
        threshold: the least support, for all features or, as an array, for each; 0 keeps it.

    >>> X = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 1, 1]])
    >>> support = Support(threshold=0.5).fit(X)
    >>> support.support_, support.transform(X).shape
    (array([1.  , 0.5 , 0.25]), (4, 2))
    """

    def __init__(self, threshold: float | npt.ArrayLike = 0.1) -> None:
        self.threshold = threshold

    def fit(self, X: Any, y: Any = None) -> Support:
        """Count who has each feature."""
        for name in ("rows_", "have_"):
            if hasattr(self, name):
                delattr(self, name)
        return self.partial_fit(X)

    def partial_fit(self, X: Any, y: Any = None) -> Support:
        """Count further rows."""
        first = not hasattr(self, "rows_")
        X = validate_data(self, X, accept_sparse="csr", reset=first)
        if first:
            self.rows_ = 0
            self.have_: npt.NDArray[np.int64] = np.zeros(X.shape[1], np.int64)
        self.rows_ += X.shape[0]
        on = sparse.csr_array(X)
        self.have_ += np.bincount(on.indices[on.data != 0], minlength=X.shape[1])
        self.support_ = self.have_ / self.rows_
        threshold = np.broadcast_to(np.asarray(self.threshold, float), self.support_.shape)
        wrong = threshold[~((threshold >= 0) & (threshold <= 1))]
        if len(wrong):
            raise ValueError(f"threshold must lie between 0 (keep all) and 1, got {wrong[0]}")
        self.kept_ = self.support_ >= threshold
        return self

    def _get_support_mask(self) -> npt.NDArray[np.bool_]:
        check_is_fitted(self)
        return self.kept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
