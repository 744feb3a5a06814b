"""Who came: the contexts of a log's events, dense or sparse."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import ArrayRecord
from topstory.events.columns.checks import Mask, first_row, numbers, owned

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class SparseContexts(ArrayRecord):
    """Binary contexts by the features that are on, for logs like Yahoo's R6B.

    Row i has the features `indices[indptr[i]:indptr[i + 1]]`, ascending; `indptr` starts at 0.

    >>> contexts = SparseContexts(np.array([0, 2, 3]), np.array([0, 4, 4], np.int32), dimension=5)
    >>> contexts
    SparseContexts(rows=2, dimension=5, on=3)
    >>> contexts.row(0)
    array([1., 0., 0., 0., 1.])
    """

    indptr: npt.NDArray[np.int64]  # (n + 1,)
    indices: npt.NDArray[np.int32]  # (features on,)
    dimension: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __repr__(self) -> str:
        return (
            f"SparseContexts(rows={len(self)}, dimension={self.dimension}, on={len(self.indices)})"
        )

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, dimension), as a dense array would say."""
        return len(self), self.dimension

    @property
    def nbytes(self) -> int:
        """Bytes of both arrays."""
        return self.indptr.nbytes + self.indices.nbytes

    def row(self, i: int) -> npt.NDArray[np.float64]:
        """Row i, dense."""
        dense = np.zeros(self.dimension)
        dense[self.indices[self.indptr[i] : self.indptr[i + 1]]] = 1.0
        return dense

    def between(self, start: int, stop: int) -> SparseContexts:
        """Rows start to stop. `indices` is shared; `indptr` is too unless it must be rebased."""
        indptr = self.indptr[start : stop + 1]
        low, high = int(indptr[0]), int(indptr[-1])
        return SparseContexts(
            indptr - low if low else indptr, self.indices[low:high], self.dimension
        )

    def take(self, rows: Rows) -> SparseContexts:
        """The given rows, in the given order."""
        starts = self.indptr[rows]
        sizes = self.indptr[rows + 1] - starts
        indptr = np.concatenate(([0], np.cumsum(sizes)))
        # Where each wanted index lies: its row's start, plus its place within the row.
        places = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], sizes)
        return SparseContexts(indptr, self.indices[places], self.dimension)


Contexts = npt.NDArray[np.float32] | SparseContexts


def as_contexts(users: Any) -> Contexts:
    """Contexts in a log's own form: (n, d) float32, or SparseContexts for a scipy.sparse matrix.

    >>> as_contexts([[0.5, 1.0]])
    array([[0.5, 1. ]], dtype=float32)
    >>> as_contexts([[0.5, float("inf")]])
    Traceback (most recent call last):
    ...
    ValueError: row 0: user feature 1 is inf; features must be finite numbers (as float32)
    """
    # A scipy matrix exists only if scipy.sparse is imported: without one, do not import it.
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(users):
        return _from_scipy(users)
    if isinstance(users, SparseContexts):
        check_sparse(users)
        return users
    source = numbers("users", users)
    if source.ndim != 2:
        raise ValueError(
            f"users must be 2-D, one row of features per event, got shape {source.shape}; "
            "a log without features takes np.ones((n, 1))"
        )
    _at_least_one_feature(source.shape[1])
    dense: npt.NDArray[np.float32] = owned(users, source, np.float32)
    row = first_row(len(dense), lambda start, stop: invalid_rows(dense[start:stop]))
    if row is not None:
        feature = int((~np.isfinite(dense[row])).argmax())
        raise ValueError(
            f"row {row}: user feature {feature} is {source[row, feature]}; "
            "features must be finite numbers (as float32)"
        )
    return dense


def invalid_rows(users: npt.NDArray[np.float32]) -> Mask:
    """(n,) which rows hold a number that is not finite.

    >>> invalid_rows(np.array([[1, 2], [np.nan, 1]], np.float32))
    array([False,  True])
    """
    return np.asarray(~np.isfinite(users).all(axis=1))


def context(users: Contexts, i: int) -> npt.NDArray[np.float64]:
    """The context of event i: (d,) float64, dense.

    >>> context(as_contexts([[0.5, 1.0]]), 0)
    array([0.5, 1. ])
    """
    return users.row(i) if isinstance(users, SparseContexts) else users[i].astype(np.float64)


def take_contexts(users: Contexts, rows: slice | Rows) -> Contexts:
    """The contexts of some rows: of a slice (step 1) as views, of row numbers as a copy.

    >>> take_contexts(as_contexts([[0.5, 1.0], [0.7, 1.0]]), slice(1, 2))
    array([[0.7, 1. ]], dtype=float32)
    """
    if not isinstance(users, SparseContexts):
        return users[rows]
    return users.between(rows.start, rows.stop) if isinstance(rows, slice) else users.take(rows)


def _at_least_one_feature(dimension: int) -> None:
    if dimension < 1:
        raise ValueError(
            "users must have at least one feature, got none; "
            "a log without features takes np.ones((n, 1))"
        )


def _from_scipy(matrix: Any) -> SparseContexts:
    if matrix.ndim != 2:
        raise ValueError(f"users must be 2-D, one row per event, got shape {matrix.shape}")
    entries = matrix.tocsr(copy=True) if matrix.format != "coo" else matrix
    if matrix.format == "coo":
        # Converting would add duplicates up, and hide them.
        row, column, value = matrix.row, matrix.col, matrix.data
    else:
        row = np.repeat(np.arange(matrix.shape[0]), np.diff(entries.indptr))
        column, value = entries.indices, entries.data
    bad = (value != 0) & (value != 1)
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(
            f"row {row[at]}: user feature {column[at]} is {value[at]}; sparse users must hold "
            "only 0 and 1: pass users.toarray() for real-valued features"
        )
    _at_least_one_feature(matrix.shape[1])
    order = np.lexsort((column, row))
    row, column, value = row[order], column[order], value[order]
    again = (row[1:] == row[:-1]) & (column[1:] == column[:-1])
    if again.any():
        at = int(again.argmax())
        raise ValueError(
            f"row {row[at]}: user feature {column[at]} is stored twice; list each feature once"
        )
    on = value == 1
    counts = np.bincount(row[on], minlength=matrix.shape[0])
    return SparseContexts(
        np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        column[on].astype(np.int32),
        int(matrix.shape[1]),
    )


def check_sparse(users: SparseContexts, where: str = "row ", start: int = 0) -> None:
    """Raise ValueError for sparse contexts that are malformed.

    >>> check_sparse(SparseContexts(np.array([0, 2]), np.array([4, 0], np.int32), dimension=5))
    Traceback (most recent call last):
    ...
    ValueError: row 0: user feature 0 must lie in 0..4 and come after the one before it: sort \
each row and list a feature once
    """
    _at_least_one_feature(users.dimension)
    indptr, indices = users.indptr, users.indices
    if indptr.dtype != np.int64 or indices.dtype != np.int32:
        raise ValueError(
            f"SparseContexts must have int64 indptr and int32 indices, "
            f"got {indptr.dtype} and {indices.dtype}"
        )
    if indptr.ndim != 1 or indices.ndim != 1 or len(indptr) < 1 or indptr[0] != 0:
        raise ValueError("SparseContexts.indptr must be 1-D and start at 0")
    if (np.diff(indptr) < 0).any() or indptr[-1] != len(indices):
        raise ValueError("SparseContexts.indptr must ascend to len(indices)")
    outside = (indices < 0) | (indices >= users.dimension)
    within = np.ones(len(indices), bool)  # is the entry in the same row as the one before it?
    within[indptr[:-1][np.diff(indptr) > 0]] = False
    falling = np.zeros(len(indices), bool)
    falling[1:] = within[1:] & (indices[1:] <= indices[:-1])
    bad = outside | falling
    if bad.any():
        at = int(bad.argmax())
        row = int(np.searchsorted(indptr, at, side="right")) - 1
        raise ValueError(
            f"{where}{start + row}: user feature {indices[at]} must lie in "
            f"0..{users.dimension - 1} and come after the one before it: "
            "sort each row and list a feature once"
        )
