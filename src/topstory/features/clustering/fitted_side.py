"""One side of a fitted builder: users or articles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from topstory.engines import Engine
from topstory.features.clustering.memberships import MembershipMap
from topstory.features.clustering.soft_clusters import SoftClusters
from topstory.features.encoding.encoder import Encoder, chunks
from topstory.features.fields.profile_encoder import ProfileEncoder
from topstory.kernels.compilation import Floats


@dataclass(frozen=True, eq=False)
class FittedSide:
    """Raw profiles are encoded as φ, from which a map makes a few numbers.

    With clusters, it projects them to φᵀR, where they belong to clusters.
    """

    encoder: Encoder | ProfileEncoder
    membership_map: MembershipMap  # all of it from φ on, in one step
    projection: Floats | None = None  # (D, r) R; None: there are no clusters
    soft: SoftClusters | None = None

    def many(self, engine: Engine, profiles: Any, unknown: Counter[str]) -> Floats:
        """(rows, d) features of a table; unknown categories are counted in `unknown`."""
        table = self.encoder.checked(profiles)
        out: Floats = np.empty((table.num_rows, self.membership_map.dimension))
        start = 0
        for found, ignored in engine.map(_compacted, chunks(table), self):
            out[start : start + len(found)] = found
            start += len(found)
            unknown.update(ignored)
        return out

    def one(self, profile: Mapping[str, Any], unknown: Counter[str]) -> Floats:
        """(d,) features of one profile; unknown categories are counted in `unknown`."""
        row, ignored = self.encoder.row(profile)
        if ignored:
            unknown.update(ignored)
        found: Floats = self.membership_map.rows(row)[0]
        return found


def _compacted(table: Any, side: FittedSide) -> tuple[Floats, Counter[str]]:
    raw, unknown = side.encoder.encode(table)
    return side.membership_map.many(raw), unknown
