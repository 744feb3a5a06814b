"""A log's contexts in the form that kernels and callables take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from topstory.events import EventLog, SparseContexts
from topstory.kernels.compilation import Slots
from topstory.kernels.contexts import PerArticleRows, SparseRows

if TYPE_CHECKING:
    from topstory.models.model import Model

Rows = npt.NDArray[np.float32] | npt.NDArray[np.float64]  # the latter: of a log that is exact
Contexts = Rows | SparseContexts


def kernel_rows(users: Contexts) -> Rows | SparseRows:
    """The same arrays, not copied, as kernels take them."""
    if isinstance(users, SparseContexts):
        return SparseRows(users.indptr, users.indices)
    return users


def scoring_rows(
    model: Model, log: EventLog, users: Contexts, slots: Slots
) -> Rows | SparseRows | PerArticleRows:
    """The contexts by which a model scores all articles of a log's pools.

    Args:
        model: scores.
        log: what happened.
        users: its contexts, exact or not.
        slots: in the model, for each place of the log's pools.
    """
    check_segments(model, log)
    rows = kernel_rows(users)
    if log.varying is None:
        return rows
    return PerArticleRows(
        rows,
        log.varying.values,
        log.varying.starts,
        log.pool,
        log.pool_offsets,
        slots,
        np.zeros(int(slots.max(initial=0)) + 1, np.int32),
        np.full(1, -1),
    )


def check_segments(model: Model, log: EventLog) -> None:
    """Raise ValueError if the model takes the numbers of events for segments of users."""
    if log.event_numbers and model.leans:
        raise ValueError(
            f"the {model.name} model takes the largest number of a context for the user's segment, "
            f"and {log.event_numbers} numbers of the log's contexts are of the event: give it an "
            "`assignment`, take features without --event, or another policy"
        )


def dense_rows(users: Contexts, start: int, stop: int) -> npt.NDArray[Any]:
    """(stop - start, d) contexts as numbers."""
    if not isinstance(users, SparseContexts):
        return users[start:stop]
    part = users.between(start, stop)
    dense = np.zeros(part.shape)
    dense[np.repeat(np.arange(len(part)), np.diff(part.indptr)), part.indices] = 1.0
    return dense
