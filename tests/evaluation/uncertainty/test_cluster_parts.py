"""Sums of a log's parts join to the sums of the log, wherever it is cut."""

from __future__ import annotations

import numpy as np
import pytest

from topstory.evaluation.blocks import Blocks
from topstory.evaluation.uncertainty.cluster_parts import ClusterJoin, part_runs
from topstory.evaluation.uncertainty.clusters import add_events, whole


@pytest.mark.parametrize("ordered", [True, False], ids=["in order of time", "in any order"])
@pytest.mark.parametrize("known", ["all", "some", "none"])
def test_parts_join_to_the_whole_wherever_they_are_cut(known: str, ordered: bool) -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        n, people, hours, q = 300, 12, 9, 3
        block = random.integers(hours, size=n).astype(np.int32)
        block = np.sort(block) if ordered else block
        visitor = random.integers(people, size=n)
        if known == "some":
            visitor[random.random(n) < 0.3] = -1
        visitor = np.zeros(0, np.int64) if known == "none" else visitor
        # Whole numbers, whose sums have no rounding.
        columns = random.integers(-5, 9, size=(q, n)).astype(float)
        by_block, by_visitor, cell = (
            np.zeros((hours, q)),
            np.zeros((people, q)),
            np.zeros((people, q)),
        )
        cell_block = np.full(people, -1, np.int32)
        cells, singles = np.zeros((q, q)), np.zeros((q, q))
        add_events(block, visitor, columns, by_block, by_visitor, cell, cell_block, cells, singles)

        join = ClusterJoin(Blocks(hours, 1, 0), q)
        cuts = np.sort(random.integers(n + 1, size=random.integers(1, 9)))
        for start, stop in zip([0, *cuts], [*cuts, n], strict=True):
            who = visitor[start:stop] if len(visitor) else visitor
            join.add(*part_runs(block[start:stop], who, columns[:, start:stop]))
        found, came = join.sums(), cell_block >= 0
        np.testing.assert_array_equal(found.by_block, by_block)
        np.testing.assert_array_equal(found.by_visitor, by_visitor[came])
        np.testing.assert_array_equal(found.cells, whole(cells) + cell[came].T @ cell[came])
        np.testing.assert_array_equal(found.singles, whole(singles))
        assert found.returning == (int(came.sum()) < int((visitor >= 0).sum()))
