"""Scores and decisions for many users at once: what one call for each gives, to the bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from topstory.explorers.explorer import WORK
from topstory.kernels import choice as kernel
from topstory.kernels.compilation import Floats, Slots
from topstory.models.input_range import MAX_MAGNITUDE, NotFiniteError, in_range
from topstory.models.model import ONE_SEGMENT

if TYPE_CHECKING:
    from topstory.policies.policy import Policy

BLOCK = 1 << 18  # estimates in memory at a time


def as_users(users: npt.ArrayLike) -> Floats:
    """(n, d) contexts, or an error that names the row."""
    rows = np.ascontiguousarray(users, np.float64)
    if rows.ndim != 2:
        raise ValueError(f"users must have a row for each user, (n, d); got shape {rows.shape}")
    for number, row in enumerate(rows) if not in_range(rows) else ():
        if not in_range(row):
            raise ValueError(
                f"users: row {number} must be finite numbers, at most {MAX_MAGNITUDE:g}, got {row}"
            )
    return rows


def blocks(users: Floats, pool: int) -> Iterator[Floats]:
    """The users in parts whose estimates fit into memory."""
    rows = max(1, BLOCK // max(1, pool))
    for start in range(0, len(users), rows):
        yield users[start : start + rows]


def score_all(
    policy: Policy, users: Floats, slots: Slots, pool: Sequence[str]
) -> tuple[Floats, Floats]:
    """(n, len(pool)) estimates and widths of articles that the model knows."""
    model, shape = policy.model, (len(users), len(slots))
    estimates, widths = np.empty(shape), np.empty(shape)
    if not len(users):
        return estimates, widths
    model.see(users.shape[1])
    model.prepare(users[0], pool)
    segments = model.segments(users, 0, len(users)) if model.segmented else ONE_SEGMENT
    room = model.room(users.shape[1])
    unusable = kernel.score_all(model.kernel_state, room, users, segments, slots, estimates, widths)
    if unusable >= 0:
        raise NotFiniteError(policy, pool[unusable])
    return estimates, widths


def choose_all(
    policy: Policy, slots: Slots, estimates: Floats, widths: Floats
) -> tuple[Slots, Floats]:
    """(n,) the places of the articles that are chosen, and how likely that was."""
    places, propensities = np.empty(len(estimates), np.int32), np.empty(len(estimates))
    kernel.choose_all(
        policy.explorer.rule,
        estimates,
        widths,
        policy.model.roster.keys[slots],
        np.uint64(policy.seed),
        policy.decisions,
        policy.trials,
        np.empty(len(slots)),
        np.empty(WORK * len(slots)),
        places,
        propensities,
    )
    return places, propensities
