"""One side of the construction, users or articles, once it is fitted."""

from __future__ import annotations

from dataclasses import dataclass

from topstory.features.clusters import SoftClusters
from topstory.features.compact import Compact
from topstory.features.encoder import Encoder
from topstory.kernels.compilation import Floats


@dataclass(frozen=True, eq=False)
class Side:
    """Raw profiles are encoded as φ, projected to φᵀR, and belong to clusters there."""

    encoder: Encoder
    projection: Floats  # (D, r) R
    soft: SoftClusters
    compact: Compact  # all of it from φ on, in one step
