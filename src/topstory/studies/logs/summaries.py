"""The summary of a log: its inspection, and the histogram of memberships (Fig. 5)."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa

from topstory.events import EventLog, Inspection, inspect
from topstory.events.columns.contexts import SparseContexts
from topstory.features.offset import offset_by

if TYPE_CHECKING:
    from pyarrow import Table

HISTOGRAM_BINS = 20
EXPLORATION = "exploration"
FEATURE_MODEL = "feature model"  # identifies a study, beside its three logs
CHUNK_NUMBERS = 1 << 22  # of the contexts, counted at a time


class Memberships(msgspec.Struct, frozen=True):
    """Users by their largest non-constant feature, where features are memberships."""

    counts: tuple[int, ...]  # of `HISTOGRAM_BINS` equal bins from 0 to 1
    above_half: float
    above_four_fifths: float


class LogSummary(msgspec.Struct, frozen=True):
    """One log of a study."""

    role: str  # tuning, evaluation or exploration
    inspection: Inspection
    memberships: Memberships | None
    offset_by: str | None = None  # of the exploration: how the offsets of warm policies are fitted


def role_name(role: str) -> str:
    """The name of what a role stands for.

    >>> role_name("tuning"), role_name(FEATURE_MODEL)
    ('tuning log', 'feature model')
    """
    return role if role == FEATURE_MODEL else f"{role} log"


def summarise(role: str, log: EventLog) -> LogSummary:
    """Summarise a log."""
    fitted = offset_by(log) if role == EXPLORATION else None
    return LogSummary(role, inspect(log), memberships(log), fitted)


def memberships(log: EventLog) -> Memberships | None:
    """The histogram of the largest membership; None if contexts are not memberships.

    >>> users = [[0.9, 0.1, 1.0], [0.5, 0.5, 1.0]]
    >>> log = EventLog.from_arrays(users, [["a"]], [0, 0], ["a", "a"], [0, 1])
    >>> memberships(log).above_half
    0.5
    """
    if isinstance(log.users, SparseContexts) or log.dimension < 3 or not len(log):
        return None
    contexts = log.users
    if log.visitors is not None:  # each user counts once, however many visits they made
        contexts = log.visitors.contexts[np.unique(log.visitors.number)]
    counts, half, fifths = np.zeros(HISTOGRAM_BINS, np.int64), 0, 0
    step = max(1, CHUNK_NUMBERS // log.dimension)
    for start in range(0, len(contexts), step):
        part = contexts[start : start + step, :-1]
        if part.min() < 0 or np.abs(part.sum(axis=1) - 1).max() > 1e-3:
            return None
        largest = part.max(axis=1)
        counts += np.histogram(largest, HISTOGRAM_BINS, (0.0, 1.0))[0]
        half += int((largest > 0.5).sum())
        fifths += int((largest > 0.8).sum())
    return Memberships(tuple(counts.tolist()), half / len(contexts), fifths / len(contexts))


def fingerprint(log: EventLog) -> str:
    """A hash of everything that a study reads from a log, so that runs of two logs never mix."""
    digest = blake2b(digest_size=12)
    digest.update(repr((len(log), log.dimension, log.article_ids)).encode())
    users = log.users
    columns: list[Any] = [log.pool, log.position, log.payoff, log.pool_offsets, log.pool_members]
    columns += [log.features, log.recorded_propensity]
    columns += [None if log.times is None else log.times.ticks]
    columns += [None if log.visitors is None else log.visitors.number]
    columns += [users.indices, users.indptr] if isinstance(users, SparseContexts) else [users]
    for column in columns:
        if column is not None:
            digest.update(np.ascontiguousarray(column).data)
    # The contexts of a raw log are only the constant; its features are made from the profiles.
    for table in (log.profiles, log.article_profiles):
        if table is not None:
            for part in _contents(table):
                digest.update(part)
    return digest.hexdigest()


def _contents(profiles: Table) -> Iterator[Any]:
    """The contents of a table of raw profiles, independent of its chunks."""
    for name in profiles.column_names:
        column: Any = profiles.column(name).unify_dictionaries().combine_chunks()
        yield repr((name, str(column.type), len(column))).encode()
        if pa.types.is_list(column.type):
            yield column.value_lengths().fill_null(-1).to_numpy()
            column = column.flatten()
        if not pa.types.is_dictionary(column.type):  # a number, boolean, date or text
            column = column.dictionary_encode()
        yield column.indices.fill_null(-1).to_numpy()
        yield repr(column.dictionary.to_pylist()).encode()
