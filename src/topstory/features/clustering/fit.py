"""From W to clusters: users and articles projected, grouped, and how much they belong."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from topstory.engines import Engine
from topstory.features.clustering.fitted_side import Side
from topstory.features.clustering.kmeans import refine
from topstory.features.clustering.memberships import Compact
from topstory.features.clustering.projection import article_projection, user_projection
from topstory.features.clustering.soft_clusters import SoftClusters
from topstory.features.encoding.categories import Sparse
from topstory.features.encoding.encoder import Encoder
from topstory.features.regression.bilinear import BilinearLogistic
from topstory.kernels.compilation import Floats

SAMPLE = 50_000  # users that k-means starts from, and the width is fitted on
BINS = 20  # of the histogram of largest memberships


class Raw(NamedTuple):
    """Users and articles, encoded."""

    user_encoder: Encoder
    article_encoder: Encoder
    users: Sparse  # (V, D) φ_u
    articles: Floats  # (A, M) φ_a


class Clustered(NamedTuple):
    """Both sides."""

    users: Side
    articles: Side
    means: Floats  # (clusters, D) of φ_u in each cluster of users
    sizes: Floats  # (clusters,) its users
    histogram: npt.NDArray[np.int64]  # (BINS,) of users' largest memberships


def cluster(
    engine: Engine,
    model: BilinearLogistic,
    raw: Raw,
    user_clusters: SoftClusters,
    article_clusters: SoftClusters,
    distances: str,
    components: int,
) -> Clustered:
    """Project by W, and fit the clusters of each side; articles that were never shown tell nothing.

    Args:
        engine: where k-means goes through all users.
        model: fitted.
        raw: what it was fitted on.
        user_clusters: not fitted yet.
        article_clusters: not fitted yet.
        distances: "weighted" or "plain".
        components: principal components beside users' memberships.
    """
    W, shown, users = model.coef_, model.shown_, raw.users
    rows = np.arange(users.shape[0])
    if len(rows) > SAMPLE:
        random = np.random.default_rng(user_clusters.seed)
        rows = np.sort(random.choice(rows, SAMPLE, replace=False))
    some = users[rows]
    projection = user_projection(W, raw.articles, shown, distances)
    points = np.asarray(some @ projection)
    soft = user_clusters.fit(points)
    centers, means, sizes = refine(engine, users, projection, soft.centers_)
    compact = Compact.of(projection, soft.place(centers, points), points, components)
    largest = compact.many(some)[:, : len(centers)].max(axis=1)
    histogram = np.histogram(largest, BINS, (0.0, 1.0))[0]
    user_side = Side(raw.user_encoder, projection, soft, compact)

    projection = article_projection(W, means, distances)
    points = raw.articles[shown > 0] @ projection
    soft = article_clusters.fit(points)
    compact = Compact.of(projection, soft, points, 0)
    article_side = Side(raw.article_encoder, projection, soft, compact)
    return Clustered(user_side, article_side, means, sizes, histogram)
