"""Read bytes with a reader, and say what came out in plain values."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tests.events.formats.yahoo.yahoo_twin import Event, Parsed

from topstory.events import EventLog, SparseContexts
from topstory.events.columns.contexts import check_sparse
from topstory.events.formats.faults import Faults
from topstory.events.formats.registry import reader


def read(format: str, *texts: bytes, strict: bool = False, **options: Any) -> tuple[Any, Faults]:
    """(batches, faults) of files with these bytes."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{i}.txt") for i in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            file.write_bytes(text)
        faults, read = Faults(strict), [0]

        def progress(more: int) -> None:
            read[0] += more

        batches = [log for _, log in reader(format).read(files, faults, progress, **options)]
        assert read[0] == sum(map(len, texts))
    for batch in batches:
        check(batch)
    return batches, faults


def check(log: EventLog) -> None:
    """A batch obeys the rules of a log."""
    log.pool_table.check(log.article_table)
    assert len(log)
    assert len(log.pool) == len(log.users) == len(log.payoff) == len(log.position)
    assert (log.position < log.pool_sizes[log.pool]).all()
    assert np.bincount(log.pool, minlength=len(log.pool_table)).all()  # no pool without events
    if isinstance(log.users, SparseContexts):
        check_sparse(log.users)
    else:
        assert np.isfinite(log.users).all()
    if log.features is not None:
        assert log.features.shape[0] == len(log.article_ids)
        assert np.isfinite(log.features).all()


def events(batches: list[EventLog]) -> list[Event]:
    """Event by event, as the twin gives them."""
    return [_event(log, i) for log in batches for i in range(len(log))]


def _event(log: EventLog, i: int) -> Event:
    event = log[i]
    assert event.timestamp is not None
    if isinstance(log.users, SparseContexts):
        on = log.users.indices[log.users.indptr[i] : log.users.indptr[i + 1]]
        user = tuple(map(float, on.tolist()))
    else:
        user = tuple(log.users[i].tolist())
    time = int(event.timestamp.timestamp())
    return Event(time, event.shown, int(event.payoff), user, event.pool)


def rounded(parsed: Parsed) -> list[Event]:
    """The twin's events with users as a log keeps them."""
    return [
        event._replace(user=tuple(np.array(event.user, np.float32).tolist()))
        for event in parsed.events
    ]


def articles(batches: list[EventLog]) -> dict[str, tuple[float, ...] | None]:
    """Id -> features."""
    found: dict[str, tuple[float, ...] | None] = {}
    for log in batches:
        for key, features in log.articles.items():
            value = None if features is None else tuple(features.tolist())
            assert found.setdefault(key, value) == value  # the same in every batch
    return found
