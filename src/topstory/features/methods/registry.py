"""The methods by name."""

from __future__ import annotations

from topstory.features.methods import clusters, direct
from topstory.features.methods.method import Method

CLUSTERS, DIRECT = "clusters", "direct"
METHODS: dict[str, Method] = {DIRECT: direct.fit, CLUSTERS: clusters.fit}
NEED_NO_ARTICLES = frozenset({DIRECT})  # logs without profiles of articles will do
