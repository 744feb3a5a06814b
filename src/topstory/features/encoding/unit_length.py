"""Raw features of unit length, and the constant."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from topstory.features.encoding.categories import row_starts

CONSTANT = "constant"


# Ignored: scikit-learn is not typed.
class UnitLength(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Scales each row to unit length and appends the constant 1 (paper, §5.2.2).

    So k features that are on become 1/√k each. A row without any stays 0.

    Args:
        groups: (features,) a label for each; features with equal labels are normalised together,
            apart from the others: users' behaviours, of which there may be many, and the rest.
            None: all together, as for articles.

    >>> X = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0]])
    >>> UnitLength(groups=[0, 0, 1, 1]).fit_transform(X).toarray().round(3)
    array([[0.707, 0.707, 0.707, 0.707, 1.   ],
           [1.   , 0.   , 0.   , 0.   , 1.   ]])
    """

    def __init__(self, groups: npt.ArrayLike | None = None) -> None:
        self.groups = groups

    def fit(self, X: Any, y: Any = None) -> UnitLength:
        """Check the groups."""
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32))
        labels = np.zeros(X.shape[1], int) if self.groups is None else np.asarray(self.groups)
        if labels.shape != (X.shape[1],):
            raise ValueError(
                f"groups must hold a label for each of the {X.shape[1]} features, "
                f"got shape {labels.shape}"
            )
        self.groups_ = np.unique(labels, return_inverse=True)[1].reshape(-1)
        return self

    def transform(self, X: Any) -> Any:
        """(rows, features + 1), sparse."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        X = sparse.csr_array(X)
        rows, features = X.shape
        sizes = np.diff(X.indptr)
        row = np.repeat(np.arange(rows, dtype=np.int64), sizes)
        groups = int(self.groups_.max(initial=0)) + 1
        cell = row * groups + self.groups_[X.indices]
        squares = np.bincount(cell, X.data.astype(np.float64) ** 2, minlength=rows * groups)
        lengths = np.sqrt(squares)
        lengths[lengths == 0] = 1.0
        data = (X.data / lengths[cell]).astype(X.dtype)
        indptr = row_starts(sizes + 1)
        # Every row before makes room for its constant.
        place, last = row + np.arange(X.nnz), indptr[1:] - 1
        out = np.empty(X.nnz + rows, X.dtype)
        out[place], out[last] = data, 1.0
        indices = np.empty(X.nnz + rows, X.indices.dtype)
        indices[place], indices[last] = X.indices, features
        return sparse.csr_array((out, indices, indptr), shape=(rows, features + 1))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """The names given, and the constant's."""
        check_is_fitted(self)
        if input_features is None:
            known = getattr(self, "feature_names_in_", None)
            names = [f"x{i}" for i in range(self.n_features_in_)] if known is None else known
        else:
            names = input_features
        return np.array([*names, CONSTANT], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
