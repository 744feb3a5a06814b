"""From W to clusters: users and articles are projected, clustered, and get memberships."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from topstory.engines import Engine
from topstory.features.clustering.fitted_side import FittedSide
from topstory.features.clustering.kmeans import refine
from topstory.features.clustering.memberships import MembershipMap
from topstory.features.clustering.projection import article_projection, user_projection
from topstory.features.clustering.soft_clusters import SoftClusters
from topstory.features.encoding.categories import Sparse
from topstory.features.encoding.encoder import Encoder
from topstory.features.fields.profile_encoder import ProfileEncoder
from topstory.features.regression.bilinear import BilinearLogistic
from topstory.kernels.compilation import Floats

SAMPLE_USERS = 50_000  # for the start of k-means, and for fitting the width
BINS = 20  # of the histogram of largest memberships


class EncodedProfiles(NamedTuple):
    """Users and articles, encoded."""

    user_encoder: Encoder | ProfileEncoder
    article_encoder: Encoder | ProfileEncoder
    users: Sparse  # (V, D) φ_u
    articles: Floats  # (A, M) φ_a


class Groups(NamedTuple):
    """The clusters of users, as a report describes them."""

    means: Floats  # (clusters, D) of φ_u in each
    sizes: Floats  # (clusters,) its users
    histogram: npt.NDArray[np.int64]  # (BINS,) of users' largest memberships


class Clustered(NamedTuple):
    """The fitted clusters of users and articles."""

    users: FittedSide
    articles: FittedSide
    groups: Groups


def cluster(
    engine: Engine,
    model: BilinearLogistic,
    raw: EncodedProfiles,
    user_clusters: SoftClusters,
    article_clusters: SoftClusters,
    distances: str,
    components: int,
) -> Clustered:
    """Project by W, and fit the clusters of both sides. Articles never shown are ignored.

    Args:
        engine: runs k-means over all users.
        model: fitted.
        raw: what it was fitted on.
        user_clusters: not fitted yet.
        article_clusters: not fitted yet.
        distances: "weighted" or "plain".
        components: principal components beside users' memberships.
    """
    W, shown, users = model.coef_, model.shown_, raw.users
    rows = np.arange(users.shape[0])
    if len(rows) > SAMPLE_USERS:
        random = np.random.default_rng(user_clusters.seed)
        rows = np.sort(random.choice(rows, SAMPLE_USERS, replace=False))
    some = users[rows]
    projection = user_projection(W, raw.articles, shown, distances)
    points = np.asarray(some @ projection)
    soft = user_clusters.fit(points)
    centers, means, sizes = refine(engine, users, projection, soft.centers_)
    membership_map = MembershipMap.of(projection, soft.place(centers, points), points, components)
    largest = membership_map.many(some)[:, : len(centers)].max(axis=1)
    histogram = np.histogram(largest, BINS, (0.0, 1.0))[0]
    user_side = FittedSide(raw.user_encoder, membership_map, projection, soft)

    projection = article_projection(W, means, distances)
    points = raw.articles[shown > 0] @ projection
    soft = article_clusters.fit(points)
    membership_map = MembershipMap.of(projection, soft, points, 0)
    article_side = FittedSide(raw.article_encoder, membership_map, projection, soft)
    return Clustered(user_side, article_side, Groups(means, sizes, histogram))
