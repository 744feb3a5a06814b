"""Files read into one log, and what it means for two logs to be the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests.events.formats.reading import check

from topstory.events import EventLog, SparseContexts
from topstory.events.formats.faults import Faults
from topstory.events.formats.registry import reader


def whole(format: str, *files: Path, faults: Faults | None = None, **options: Any) -> EventLog:
    """The files' events, all of them good unless faults are expected."""
    found = Faults(strict=True) if faults is None else faults
    batches = [log for _, log in reader(format).read(files, found, lambda _: None, **options)]
    for batch in batches:
        check(batch)
    return EventLog.concat(batches)


def assert_same_choices(log: EventLog, other: EventLog) -> None:
    """The same pools, articles shown, payoffs, propensities and times, to the bit."""
    assert len(log) == len(other)
    ours, theirs = log.pools, other.pools
    assert [ours[i] for i in log.pool] == [theirs[i] for i in other.pool]
    assert log.shown.tolist() == other.shown.tolist()
    np.testing.assert_array_equal(log.payoff, other.payoff)
    np.testing.assert_array_equal(log.propensity, other.propensity)
    assert (log.recorded_propensity is None) == (other.recorded_propensity is None)
    assert (log.timestamps is None) == (other.timestamps is None)
    if log.timestamps is not None and other.timestamps is not None:
        np.testing.assert_array_equal(log.timestamps, other.timestamps)


def assert_same_users(log: EventLog, other: EventLog) -> None:
    """The same contexts to the bit, in the same form."""
    if isinstance(log.users, SparseContexts):
        assert isinstance(other.users, SparseContexts)
        assert log.users.dimension == other.users.dimension
        np.testing.assert_array_equal(log.users.indptr, other.users.indptr)
        np.testing.assert_array_equal(log.users.indices, other.users.indices)
    else:
        assert not isinstance(other.users, SparseContexts)
        np.testing.assert_array_equal(log.users.view(np.uint32), other.users.view(np.uint32))


def assert_same_articles(log: EventLog, other: EventLog) -> None:
    """The same ids, in the same order, with the same features to the bit."""
    assert log.article_ids == other.article_ids
    assert (log.features is None) == (other.features is None)
    if log.features is not None and other.features is not None:
        np.testing.assert_array_equal(log.features, other.features)
