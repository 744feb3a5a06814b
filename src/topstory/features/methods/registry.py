"""The methods by name."""

from __future__ import annotations

from topstory.features.methods import bilinear, clusters, direct, pca
from topstory.features.methods.method import Method

DIRECT, CLUSTERS, PCA, BILINEAR = "direct", "clusters", "pca", "bilinear"
METHODS: dict[str, Method] = {
    DIRECT: direct.fit,
    CLUSTERS: clusters.fit,
    PCA: pca.fit,
    BILINEAR: bilinear.fit,
}
NEED_NO_ARTICLES = frozenset({DIRECT, PCA})  # logs without profiles of articles will do
