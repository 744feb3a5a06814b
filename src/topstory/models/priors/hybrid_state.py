"""The hybrid model's state from sums: its shared part follows from the articles' own ones."""

from __future__ import annotations

import numpy as np

from topstory.kernels.compilation import Floats, Slots
from topstory.kernels.models.disjoint import MAX_CONDITION
from topstory.kernels.models.hybrid import Hybrid
from topstory.models.priors.evidence import collapse, inverted
from topstory.models.priors.sums import ArticleSums


def fill_hybrid(
    state: Hybrid, slots: Slots, sums: ArticleSums, start: tuple[Floats, Floats]
) -> None:
    """Write sums into a new state, whose A0 and b0 are `start` before any trial."""
    A, b = start
    state.A[slots] = sums.S + state.ridge * np.eye(state.b.shape[1])
    state.b[slots] = sums.b
    state.A_inverse[slots] = inverted(state.A[slots])
    state.features[slots] = sums.features
    here, none = collapse(sums.S, sums.b, sums.features, state.ridge), np.zeros(1)
    state.departed[:] = b + (none if sums.b0 is None else sums.b0)
    state.A0[0] = A + here.A + (none if sums.A0 is None else sums.A0)
    state.b0[:] = state.departed + here.b
    state.P[0] = inverted(state.A0[0])
    state.beta[:] = state.P[0] @ state.b0


def hybrid_is_exact(state: Hybrid) -> bool:
    """Whether inverses are exact enough, as `within_condition` of the kernels asks."""
    own = np.einsum("aii->a", state.A)
    reach = np.einsum("am,am->a", state.features, state.features)
    condition = own * (1.0 / state.ridge + reach / state.shared_ridge)
    shared = np.trace(state.A0[0]) / state.shared_ridge
    return bool(max(condition.max(), shared) <= MAX_CONDITION)
