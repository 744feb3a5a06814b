"""From raw features to the numbers that policies see: one linear map and one softmax."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from topstory.events.columns.array_record import ArrayRecord
from topstory.features.clustering.soft_clusters import SoftClusters
from topstory.features.regression.event_blocks import UserRows, rows_of
from topstory.kernels.bilinear import linear_rows
from topstory.kernels.compilation import Floats


@dataclass(frozen=True, eq=False)
class MembershipMap(ArrayRecord):
    """Memberships in clusters, principal components if asked for, and the constant last.

    Without clusters it is the linear map alone, and what is longer than 1 is shortened to it: an
    unusual user is no more certain, and no longer than a service accepts.

    With x = φᵀR, exp(−‖x − c‖²/(2·width²)) is exp((xᵀc − ‖c‖²/2)/width²) times what is the same
    for every cluster. So memberships are the softmax of φᵀ(Rc/width²) − ‖c‖²/(2·width²): no x and
    no distance is computed, and the cost of a user is proportional to the features that are on.
    """

    weights: Floats  # (D, clusters + components)
    bias: Floats  # (clusters + components,)
    clusters: int

    @classmethod
    def of(
        cls, projection: Floats, soft: SoftClusters, points: Floats, components: int
    ) -> MembershipMap:
        """From the projection R (D, r), the clusters in it, and (n, r) points that are in them."""
        principal, mean = components_of(points, components)
        centers, precision = soft.centers_, 1.0 / soft.width_**2
        weights = np.hstack([projection @ centers.T * precision, projection @ principal])
        bias = np.concatenate([-(centers**2).sum(axis=1) * precision / 2, -mean @ principal])
        return cls(np.ascontiguousarray(weights), bias, len(centers))

    @property
    def dimension(self) -> int:
        """How many numbers come out."""
        return len(self.bias) + 1

    def many(self, raw: Any) -> Floats:
        """(n, dimension) of (n, D) φ."""
        return self.rows(rows_of(sparse.csr_array(raw)))

    def rows(self, rows: UserRows) -> Floats:
        """The same, of rows in CSR form. A row gives the same bits alone as among others."""
        out: Floats = np.empty((len(rows[0]) - 1, self.dimension))
        linear_rows(*rows, self.weights, self.bias, out)
        out[:, -1] = 1.0
        if not self.clusters:
            shorten(out[:, :-1])
            return out
        logits = out[:, : self.clusters]
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=1, keepdims=True)
        return out


def shorten(rows: Floats) -> None:
    """Shorten rows that are longer than 1 to that, in place.

    >>> rows = np.array([[3.0, 4.0], [0.3, 0.4]])
    >>> shorten(rows)
    >>> rows
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    rows /= np.maximum(np.sqrt((rows * rows).sum(axis=1, keepdims=True)), 1.0)


def components_of(projected: Floats, count: int) -> tuple[Floats, Floats]:
    """(r, count) principal components of (n, r) points, and their mean.

    Each is divided by the deviation along the first, so that they are about as large as
    memberships are, and the first ones count most.

    >>> points = np.array([[0.0, 0.0], [2.0, 0.1], [4.0, 0.0]])
    >>> components, mean = components_of(points, 1)
    >>> np.abs((points - mean) @ components).round(2).ravel()
    array([1.22, 0.  , 1.22])
    """
    mean = projected.mean(axis=0)
    if not count:
        return np.empty((len(mean), 0)), mean
    if count > len(mean):
        raise ValueError(f"components must be at most {len(mean)} here, got {count}")
    values, vectors = np.linalg.eigh(np.cov(projected.T, ddof=0).reshape(len(mean), -1))
    first = vectors[:, ::-1][:, :count]
    signs = np.sign(first[np.abs(first).argmax(axis=0), np.arange(count)])  # the same everywhere
    return first * signs / (math.sqrt(max(values[-1], 0.0)) or 1.0), mean
