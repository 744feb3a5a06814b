"""What hybrid's general form keeps of each article beside A and b: how z depended on the trial.

As `topstory.kernels.models.crossing` has it: K's first part of articles that were edited, in rows
of their own, and B_e of all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from topstory.kernels.compilation import Floats, Slots
from topstory.kernels.models.factored import add_crossed
from topstory.models.priors.sums import ArticleSums


class Fields(NamedTuple):
    """The fields of a state that are about z."""

    products: Floats  # (articles, d, dq)
    edited: Floats  # (articles,)
    K: Floats  # (1 + rows, d, dm)
    reach: Floats  # (articles,)


def new_fields(capacity: int, d: int, count: int, event: int, rows: int) -> Fields:
    """Of articles without trials, which have `count` features; `event` more are of the event."""
    return Fields(
        products=np.zeros((capacity, d, d * event)),
        edited=np.zeros(capacity),
        K=np.zeros((rows, d, d * count)),
        reach=np.zeros(capacity),
    )


def fields_of(state: Any) -> dict[str, Floats]:
    """By name."""
    return {name: getattr(state, name) for name in Fields._fields}


def row_of(state: Any, slot: int) -> tuple[Any, int]:
    """The article's row of K, and the state with it; a new one is ridge·I ⊗ fᵀ."""
    if state.edited[slot]:
        return state, int(state.edited[slot])
    free = sorted(set(range(1, len(state.K))) - {int(row) for row in state.edited})
    if not free:
        more, free = np.zeros((max(1, len(state.K) // 2), *state.K.shape[1:])), [len(state.K)]
        state = state._replace(
            **{name: np.concatenate([getattr(state, name), more]) for name in _rows(state)}
        )
    row, f = free[0], state.features[slot]
    state.edited[slot] = row
    state.K[row] = np.kron(state.ridge * np.eye(state.K.shape[1]), f)
    if hasattr(state, "G"):
        state.G[row] = np.kron(state.ridge * state.A_inverse[slot], f)
    return state, row


def _rows(state: Any) -> tuple[str, ...]:
    return ("K", "G") if hasattr(state, "G") else ("K",)


def release(state: Any, slot: int) -> None:
    """The article is gone: another may have its row."""
    for name in _rows(state):
        getattr(state, name)[int(state.edited[slot])] = 0.0
    state.edited[slot] = 0.0


def add_parts(b0: Floats, state: Any, slots: Slots, theta: Floats, factor: float) -> None:
    """Add factor·Σ Kᵀθ of these articles to b0."""
    add_crossed(
        *(b0, theta, state.ridge, state.features[slots], state.products[slots]),
        *(state.edited[slots], state.K, factor, np.zeros(len(b0))),
    )


def with_event(rows: Floats, event: int) -> Floats:
    """(articles, m + q) features, with zeros for those that the event has."""
    return np.hstack([rows, np.zeros((len(rows), event))])


def crossed(state: Any, slots: Slots, event: int) -> Floats | None:
    """(articles, d, d(m + q)) B − S ⊗ fᵀ, as sums have it."""
    d, m = state.b.shape[1], state.features.shape[1]
    whole = np.zeros((len(slots), d, d, m + event))
    whole[..., m:] = state.products[slots].reshape(len(slots), d, d, event)
    for place, slot in enumerate(slots):
        row = int(state.edited[slot])
        if row:
            plain = np.kron(state.ridge * np.eye(d), state.features[slot])
            whole[place, :, :, :m] = (plain - state.K[row]).reshape(d, d, m)
    return whole.reshape(len(slots), d, d * (m + event))


def rows_for(sums: ArticleSums, event: int) -> int:
    """How many rows K needs for these sums."""
    return 1 if sums.crossed is None else 1 + int(_edited(sums, event).sum())


def fill_fields(state: Any, slots: Slots, sums: ArticleSums, event: int) -> None:
    """Write what sums say of z into a new state with room for it, which has A and the features."""
    if sums.crossed is None:
        return
    d, m = state.b.shape[1], state.features.shape[1]
    parts = sums.crossed.reshape(len(slots), d, d, m + event)
    state.products[slots] = parts[..., m:].reshape(len(slots), d, d * event)
    if sums.reach is not None:
        state.reach[slots] = sums.reach
    for row, place in enumerate(np.flatnonzero(_edited(sums, event)), 1):
        slot = slots[place]
        state.edited[slot] = row
        state.K[row] = np.kron(state.ridge * np.eye(d), state.features[slot])
        state.K[row] -= parts[place, :, :, :m].reshape(d, d * m)


def solve_fields(state: Any, slots: Slots) -> None:
    """Fill in what follows from A and these fields."""
    if state.products.shape[2]:
        state.event[slots] = np.linalg.solve(state.A[slots], state.products[slots])
    for slot in slots[state.edited[slots] > 0]:
        row = int(state.edited[slot])
        state.G[row] = np.linalg.solve(state.A[slot], state.K[row])


def _edited(sums: ArticleSums, event: int) -> Floats:
    assert sums.crossed is not None
    d, m = sums.b.shape[1], sums.features.shape[1]
    parts = sums.crossed.reshape(len(sums.ids), d, d, m)
    return np.asarray(parts[..., : m - event].any(axis=(1, 2, 3)))
