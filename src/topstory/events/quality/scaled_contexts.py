"""Users' features as the classifiers take them: scaled, and cut so that no event decides alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from topstory.events.columns.contexts import Contexts, SparseContexts

MAX_CANDIDATES = 1_024  # features; of binary ones, the most varied
CUT = 3.0  # standard deviations

Scaled = npt.NDArray[np.float32]
Columns = npt.NDArray[np.intp]


def that_vary(users: Contexts) -> Columns:
    """The numbers of the features that are not the same for all users.

    >>> that_vary(np.array([[0, 3, 1], [2, 3, 1]], np.float32))
    array([0])
    """
    if isinstance(users, SparseContexts):
        share = np.bincount(users.indices, minlength=users.dimension) / max(len(users), 1)
        order = np.argsort(-share * (1 - share), kind="stable")[:MAX_CANDIDATES]
        return np.sort(order[(share * (1 - share))[order] > 0])
    return np.flatnonzero(np.ptp(users, axis=0) > 0)[:MAX_CANDIDATES]


def scaled_contexts(users: Contexts, columns: Columns) -> Scaled:
    """(n, up to len(columns)) the features, less those that vary by rounding only."""
    if not isinstance(users, SparseContexts):
        return scaled(users[:, columns])
    place = np.full(users.dimension, -1)
    place[columns] = np.arange(len(columns))
    on = place[users.indices]
    row = np.repeat(np.arange(len(users)), np.diff(users.indptr))
    x = np.zeros((len(users), len(columns)), np.float32)
    x[row[on >= 0], on[on >= 0]] = 1
    return scaled(x)


def squares_of(users: Contexts, x: Scaled) -> Scaled:
    """(n, up to x.shape[1]) the squares of features that are not binary."""
    if isinstance(users, SparseContexts):
        return x[:, :0]
    ends = np.abs(np.abs(x) - np.abs(x).mean(axis=0)).max(axis=0, initial=0)
    return scaled(x[:, ends > 1e-3] ** 2)


def scaled(x: npt.NDArray[np.float32]) -> Scaled:
    """Less the mean, over the standard deviation, cut; without what does not vary.

    >>> scaled(np.array([[1, 5], [3, 5]], np.float32))
    array([[-1.],
           [ 1.]], dtype=float32)
    """
    center, spread = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
    varied = spread > 1e-6 * np.maximum(np.abs(center), 1e-30)
    z = (x[:, varied] - center[varied]) / spread[varied]
    return np.asarray(np.clip(z, -CUT, CUT), np.float32)
