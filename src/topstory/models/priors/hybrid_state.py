"""The hybrid model's state from sums: its shared part follows from the articles' own ones."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from topstory.kernels.compilation import Floats, Slots
from topstory.kernels.models.disjoint import MAX_CONDITION
from topstory.kernels.models.factored import FactoredHybrid, add_own, add_rows
from topstory.kernels.models.general_hybrid import GeneralHybrid
from topstory.kernels.models.hybrid import Hybrid
from topstory.models.hybrid.crossings import fill_fields, solve_fields
from topstory.models.priors.evidence import collapse, inverted
from topstory.models.priors.sums import ArticleSums

ROUNDING = 1e-13  # of a sum's terms


def fill_hybrid(
    state: Hybrid | GeneralHybrid,
    slots: Slots,
    sums: ArticleSums,
    start: tuple[Floats, Floats],
    event: int,
) -> None:
    """Write sums into a new state, whose A0 and b0 are `start` before any trial.

    Inverses are another step, `invert_hybrid`: the factored form has none. `event`: how many of the
    sums' features are of the event.
    """
    A, b = start
    state.A[slots] = sums.S + state.ridge * np.eye(state.b.shape[1])
    state.b[slots] = sums.b
    state.features[slots] = sums.features[:, : sums.features.shape[1] - event]
    if isinstance(state, GeneralHybrid):
        fill_fields(state, slots, sums, event)
    here = collapse(sums.S, sums.b, sums.features, state.ridge, sums.crossed)
    none = np.zeros(1)
    state.departed[:] = b + (none if sums.b0 is None else sums.b0)
    state.A0[0] = A + here.A + (none if sums.A0 is None else sums.A0)
    state.b0[:] = state.departed + here.b


def invert_hybrid(state: Hybrid | GeneralHybrid, slots: Slots) -> None:
    """What the ordinary and the general form keep beside the sums."""
    state.A_inverse[slots] = inverted(state.A[slots])
    if isinstance(state, GeneralHybrid):
        solve_fields(state, slots)
    state.P[0] = inverted(state.A0[0])
    state.beta[:] = state.P[0] @ state.b0


def fade_shared(
    state: FactoredHybrid,
    before: Floats,
    slots: Slots,
    start: tuple[Floats, Floats],
    factor: float,
) -> None:
    """Build what articles share anew, after their own parts have faded from L = `before`.

    What articles that were removed left there is what the others do not explain.
    """
    A, b = start
    features = state.features[slots]
    gone = state.L0[0] @ state.L0[0].T - A
    sizes = np.sqrt(np.diag(gone + A))
    for own, f in zip(before[slots], features, strict=True):
        rows = _seen(own, state.ridge)
        gone -= np.kron(rows.T @ rows, np.outer(f, f))
    gone[np.abs(gone) < ROUNDING * np.outer(sizes, sizes)] = 0.0
    state.departed[:] = b + factor * (state.departed - b)
    state.L0[0] = np.linalg.cholesky(A)
    if gone.any():
        left = _rows(gone, float(np.abs(gone).max()))
        add_rows(state.L0[0], np.sqrt(factor) * left, state.shared_room)
    for own, f in zip(state.L[slots], features, strict=True):
        add_rows(state.L0[0], np.kron(_seen(own, state.ridge), f), state.shared_room)
    b0 = state.departed.copy()
    add_own(b0, state.theta, state.features, state.ridge)
    state.z0[:] = solve_triangular(state.L0[0], b0, lower=True)


def _seen(L: Floats, ridge: float) -> Floats:
    """Rows whose squares are ρ(I − ρA⁻¹) with A = LLᵀ: what an article's trials say of x."""
    inverse = solve_triangular(L, ridge * np.eye(len(L)), lower=True)
    return _rows(ridge * np.eye(len(L)) - inverse.T @ inverse, ridge)


def _rows(A: Floats, size: float) -> Floats:
    """The rows R with RᵀR = A, a difference of what is so large: without what is rounding."""
    values, vectors = np.linalg.eigh(A)
    kept = values > ROUNDING * size
    return np.asarray(np.sqrt(values[kept])[:, np.newaxis] * vectors[:, kept].T)


def hybrid_is_exact(state: Hybrid | GeneralHybrid) -> bool:
    """Whether inverses are exact enough, as `within_condition` of the kernels asks."""
    own = np.einsum("aii->a", state.A)
    reach = np.einsum("am,am->a", state.features, state.features)
    if isinstance(state, GeneralHybrid):
        reach = np.maximum(reach, state.reach)
    condition = own * (1.0 / state.ridge + reach / state.shared_ridge)
    shared = np.trace(state.A0[0]) / state.shared_ridge
    return bool(max(condition.max(), shared) <= MAX_CONDITION)
