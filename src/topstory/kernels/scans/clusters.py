"""Sums over blocks of time, over visitors, and over what one visitor did within one block."""

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.compilation import Floats, Slots, compiled, inlined


@inlined
def add_products(column: Floats, out: Floats) -> None:
    """Add the products of all pairs to the lower triangle of `out`."""
    for i in range(column.shape[0]):
        for j in range(i + 1):
            out[i, j] += column[i] * column[j]


@compiled
def add_clusters(
    block: Slots,
    visitor: NDArray[np.int64],
    columns: Floats,
    by_block: Floats,
    by_visitor: Floats,
    cell: Floats,
    cell_block: Slots,
    cells: Floats,
    singles: Floats,
    room: Floats,
) -> None:
    """Add events, in order of time.

    Args:
        block: (n,) of time.
        visitor: (n,) -1 where unknown; (0,): none is known.
        columns: (q, n) what is added up.
        by_block: (blocks, q) the sums.
        by_visitor: (visitors, q) the sums.
        cell: (visitors, q) the sums of each visitor within the last block with an event.
        cell_block: (visitors,) that block, or -1.
        cells: (q, q) products of the sums of cells that are complete, in the lower triangle.
        singles: (q, q) the same of events whose visitor is unknown.
        room: (q,) to work in.
    """
    q = columns.shape[0]
    for t in range(block.shape[0]):
        for i in range(q):
            room[i] = columns[i, t]
            by_block[block[t], i] += room[i]
        v = visitor[t] if visitor.shape[0] else -1
        if v < 0:
            add_products(room, singles)
            continue
        if cell_block[v] != block[t]:
            if cell_block[v] >= 0:
                add_products(cell[v], cells)
            cell_block[v] = block[t]
            cell[v] = 0.0
        for i in range(q):
            by_visitor[v, i] += room[i]
            cell[v, i] += room[i]
