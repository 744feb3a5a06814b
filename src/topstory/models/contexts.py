"""A log's contexts in the form that kernels and callables take."""

from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.events import SparseContexts
from topstory.kernels.contexts import SparseRows

Rows = npt.NDArray[np.float32] | npt.NDArray[np.float64]  # the latter: of a log that is exact
Contexts = Rows | SparseContexts


def kernel_rows(users: Contexts) -> Rows | SparseRows:
    """The same arrays, not copied, as kernels take them."""
    if isinstance(users, SparseContexts):
        return SparseRows(users.indptr, users.indices)
    return users


def dense_rows(users: Contexts, start: int, stop: int) -> npt.NDArray[Any]:
    """(stop - start, d) contexts as numbers."""
    if not isinstance(users, SparseContexts):
        return users[start:stop]
    part = users.between(start, stop)
    dense = np.zeros(part.shape)
    dense[np.repeat(np.arange(len(part)), np.diff(part.indptr)), part.indices] = 1.0
    return dense
