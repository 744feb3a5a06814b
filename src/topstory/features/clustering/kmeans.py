"""K-means over all users, as sums over blocks of users, without computing their projections."""

from __future__ import annotations

from typing import Any

import numpy as np

from topstory.engines import Engine
from topstory.features.regression.event_blocks import Sparse, block_count, cut_users, rows_of
from topstory.kernels.bilinear import cluster_sums
from topstory.kernels.compilation import Floats

MAX_ITERATIONS = 100
MIN_SHIFT = 1e-6  # relative to the length of the centres; smaller moves count as converged


def refine(
    engine: Engine, users: Sparse, projection: Floats, centers: Floats
) -> tuple[Floats, Floats, Floats]:
    """Lloyd's iterations from the given centres, until they converge.

    A user is x = φᵀR. The closest centre follows from φᵀ(Rc), and a cluster's mean of x from its
    mean of φ. So the cost of a user is proportional to the features that are on.

    Args:
        engine: holds the blocks of users.
        users: (V, D) φ.
        projection: (D, r) R.
        centers: (clusters, r) to begin with.

    Returns:
        The centres (clusters, r), and each cluster's mean of φ (clusters, D) and number of users.
    """
    sizes = np.diff(users.indptr)
    kept = engine.keep(_rows, cut_users(users, sizes, block_count(users.shape[0])), users)
    for _ in range(MAX_ITERATIONS):
        weights = np.ascontiguousarray(projection @ centers.T)  # (D, clusters)
        bias = -(centers**2).sum(axis=1) / 2
        sums, counts = np.zeros((len(centers), users.shape[1])), np.zeros(len(centers))
        for part in engine.map(_sums, kept, (weights, bias)):
            sums += part[0]
            counts += part[1]
        means = sums / np.maximum(counts, 1.0)[:, None]
        moved = np.where(counts[:, None] > 0, means @ projection, centers)  # an empty one stays
        shift = np.linalg.norm(moved - centers, axis=1).max()
        centers = moved
        if shift <= MIN_SHIFT * np.linalg.norm(centers, axis=1).max():
            break
    return centers, means, counts


def _rows(part: tuple[int, int], users: Sparse) -> Any:
    return rows_of(users, *part)


def _sums(rows: Any, closest: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    weights, bias = closest
    sums: Floats = np.zeros(weights.T.shape)
    counts: Floats = np.zeros(len(bias))
    room: Floats = np.empty(len(bias))
    indptr, indices, values = rows
    cluster_sums(indptr, indices, values, weights, bias, room, sums, counts)
    return sums, counts
