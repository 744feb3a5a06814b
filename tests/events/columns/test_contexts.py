"""Sparse binary contexts, from scipy's matrices or one's own arrays."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.events.making import columns

from topstory.events import EventLog, SparseContexts

DENSE = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 1]])


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_every_scipy_layout_makes_the_same_contexts(layout: Any) -> None:
    for kind in (sparse.csr_array, sparse.csr_matrix):
        users = kind(DENSE).asformat(layout)
        log = EventLog.from_arrays(**columns(users=users))
        assert isinstance(log.users, SparseContexts)
        assert log.users.indptr.tolist() == [0, 2, 2, 4]
        assert log.users.indptr.dtype == np.int64
        assert log.users.indices.tolist() == [0, 2, 1, 2]
        assert log.users.indices.dtype == np.int32
        assert log.dimension == log.users.dimension == 3
        assert [log.context(i).tolist() for i in range(3)] == DENSE.tolist()


def test_explicit_zeros_are_dropped_and_indices_sorted() -> None:
    users = sparse.csr_array(([1, 0, 1], [2, 1, 0], [0, 3, 3, 3]), shape=(3, 3))
    log = EventLog.from_arrays(**columns(users=users))
    assert isinstance(log.users, SparseContexts)
    assert log.users.indices.tolist() == [0, 2]
    assert users.nnz == 3  # the caller's matrix is left alone


def test_values_other_than_0_and_1_are_refused() -> None:
    users = sparse.csr_array(DENSE * 2.5)
    with pytest.raises(ValueError, match=r"row 0: user feature 0 is 2.5; sparse users must"):
        EventLog.from_arrays(**columns(users=users))


@pytest.mark.parametrize("layout", ["csr", "coo"])
def test_duplicates_are_refused(layout: str) -> None:
    users: Any = sparse.coo_array(([1, 1], ([2, 2], [1, 1])), shape=(3, 3))
    if layout == "csr":
        users = sparse.csr_array(([1, 1], [1, 1], [0, 0, 0, 2]), shape=(3, 3))
    with pytest.raises(ValueError, match="row 2: user feature 1 is stored twice"):
        EventLog.from_arrays(**columns(users=users))


def test_contexts_of_one_s_own_are_checked() -> None:
    def contexts(indptr: list[int], indices: list[int]) -> SparseContexts:
        return SparseContexts(np.array(indptr), np.array(indices, np.int32), 3)

    good = contexts([0, 2, 2, 4], [0, 2, 1, 2])
    assert EventLog.from_arrays(**columns(users=good)).users is good
    for bad, message in (
        (contexts([0, 2, 2, 4], [0, 2, 2, 1]), "row 2: user feature 1 must lie in 0..2"),
        (contexts([0, 2, 2, 4], [0, 3, 1, 2]), "row 0: user feature 3 must lie in 0..2"),
        (contexts([0, 2, 1, 4], [0, 2, 1, 2]), "must ascend"),
        (contexts([1, 2, 2, 4], [0, 2, 1, 2]), "start at 0"),
        (contexts([0, 2, 2, 3], [0, 2, 1, 2]), "must ascend to len"),
        (SparseContexts(good.indptr, good.indices.astype(np.int64), 3), "int32 indices"),
    ):
        with pytest.raises(ValueError, match=message):
            EventLog.from_arrays(**columns(users=bad))
