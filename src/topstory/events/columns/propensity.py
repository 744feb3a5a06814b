"""The probability with which the shown article was chosen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import blocks
from topstory.events.columns.checks import Mask, reals
from topstory.events.columns.pools import PoolTable

# float32 keeps 7 digits; a value that agrees with 1/K to six digits is taken for 1/K.
TOLERANCE = 1e-6


def uniform(pool: npt.NDArray[np.int32], pools: PoolTable) -> npt.NDArray[np.float32]:
    """(n,) 1 / the size of each event's pool."""
    return (1.0 / pools.sizes).astype(np.float32)[pool]


def recorded(
    propensity: npt.ArrayLike | None, pool: npt.NDArray[np.int32], pools: PoolTable
) -> npt.NDArray[np.float32] | None:
    """The given propensities, checked; None if all of them are 1 / the pool's size.

    >>> pools, pool = PoolTable(np.array([0, 2]), np.array([0, 1], np.int32)), np.zeros(2, np.int32)
    >>> recorded([0.5, 0.5], pool, pools) is None
    True
    >>> recorded([0.9, 0.0], pool, pools)
    Traceback (most recent call last):
    ...
    ValueError: row 1: propensity 0.0 is outside (0, 1]; it is the probability with which the \
shown article was chosen
    """
    if propensity is None:
        return None
    column = reals("propensity", propensity, len(pool))
    check_propensity(column, propensity)
    for start, stop in blocks(len(pool)):
        if not is_uniform(column[start:stop], pool[start:stop], pools).all():
            return column
    return None


def is_uniform(
    propensity: npt.NDArray[np.float32], pool: npt.NDArray[np.int32], pools: PoolTable
) -> Mask:
    """(n,) whether each is 1 / the size of its pool."""
    # |p - 1/K| <= tolerance/K, multiplied through by K
    return np.asarray(np.abs(propensity * pools.sizes[pool] - 1.0) <= TOLERANCE)


def check_propensity(column: npt.NDArray[np.float32], given: npt.ArrayLike) -> None:
    """Raise ValueError for a probability outside (0, 1], naming its row and value."""
    bad = ~((column > 0) & (column <= 1))
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"row {row}: propensity {np.asarray(given)[row]} is outside (0, 1]; "
            "it is the probability with which the shown article was chosen"
        )
