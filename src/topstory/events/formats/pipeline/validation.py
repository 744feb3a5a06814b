"""Validation: parsed rows become a log of the good ones; bad rows are counted by reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.checks import Mask
from topstory.events.columns.contexts import SparseContexts, invalid_rows, take_contexts
from topstory.events.columns.pools import PoolTable
from topstory.events.columns.positions import position_type
from topstory.events.columns.propensity import recorded
from topstory.events.columns.times import EARLIEST, LATEST, Times
from topstory.events.formats.faults import BLANK_PROPENSITY, Faults
from topstory.events.log import EventLog

NOT_IN_POOL = -1  # the position of an article that is not in the pool

SHOWN_NOT_IN_POOL = "the shown article is not in the pool"
BAD_PAYOFF = "the payoff is not a finite number"
BAD_USER = "a user feature is not a finite number"
BAD_PROPENSITY = "the propensity is outside (0, 1]"
BAD_TIME = "the timestamp is outside the years 1 to 9999"

MAX_FLOAT32 = float(np.finfo(np.float32).max)
# Bounds of values that are above 0 and at most 1 after rounding to float32.
_MIN_PROPENSITY, _MAX_PROPENSITY = 2.0**-150, 1 + 2.0**-24


class RejectedRow(NamedTuple):
    """A row that the reader could not parse, or several: `line` is that of the first."""

    line: int
    reason: str
    text: str | bytes = ""
    rows: int = 1


@dataclass
class ParsedRows:
    """Parsed rows of one file, not yet validated.

    `rejected` holds the rows that could not be parsed.
    """

    file: str
    lines: npt.NDArray[np.int64]  # (n,) from 1
    users: npt.NDArray[np.float32] | SparseContexts  # (n, d)
    pools: PoolTable
    pool: npt.NDArray[np.int32]  # (n,)
    position: npt.NDArray[np.int32]  # (n,) of the shown article in its pool, or NOT_IN_POOL
    payoff: npt.NDArray[np.float64]  # (n,)
    propensity: npt.NDArray[np.float64] | None  # (n,) None: 1 / the pool's size
    micros: npt.NDArray[np.int64] | None  # (n,) None: untimed
    articles: ArticleTable
    listed: int = 0  # so many articles, the first ones, come from an articles file: keep them
    rejected: list[RejectedRow] = field(default_factory=list)
    text: Callable[[int], bytes | str] = lambda _: ""  # of row i, shown if it is bad
    blank: Mask | None = None  # (n,) rows without a propensity; None: all or none of them
    reworded: Mapping[str, str] = field(default_factory=dict)  # a reason -> with its column


class ValidEvents(NamedTuple):
    """The good rows of a batch."""

    log: EventLog
    lines: npt.NDArray[np.int64]  # (n,) of the events


def validate(rows: ParsedRows, faults: Faults) -> ValidEvents | None:
    """The log of the good rows, or None if there are none. Faults are reported in file order.

    Bad rows leave nothing behind: no pool, and no article that is not listed elsewhere.

    >>> faults, articles = Faults(), ArticleTable(("x", "y"))
    >>> rows = ParsedRows(
    ...     "a.csv", np.arange(2, 4), np.ones((2, 1), np.float32),
    ...     PoolTable.from_lists([["x"], ["y"]], articles), np.arange(2, dtype=np.int32),
    ...     np.zeros(2, np.int32), np.array([1.0, np.inf]), None, None, articles)
    >>> validate(rows, faults).log
    <EventLog: 1 event, 1 article, 1 pool, untimed, CTR 1.0000>
    """
    with np.errstate(over="ignore", invalid="ignore"):  # overflow is rejected
        payoff = rows.payoff.astype(np.float32)
        propensity = None if rows.propensity is None else rows.propensity.astype(np.float32)
    checks: list[tuple[str, Mask]] = [
        (SHOWN_NOT_IN_POOL, rows.position < 0),
        (BAD_PAYOFF, ~np.isfinite(payoff)),
    ]
    if not isinstance(rows.users, SparseContexts):
        checks.append((BAD_USER, invalid_rows(rows.users)))
    if propensity is not None:
        checks.append((BAD_PROPENSITY, ~((propensity > 0) & (propensity <= 1))))
    if rows.micros is not None:
        checks.append((BAD_TIME, (rows.micros < EARLIEST) | (rows.micros > LATEST)))
    good = _reject(rows, checks, faults)
    if not len(good):
        return None
    whole = len(good) == len(rows.pool)
    articles, pools, pool = _used_tables(rows, good)
    micros = None if rows.micros is None else rows.micros[good]
    count = 0 if propensity is None else len(good)
    if rows.blank is not None and (blank := good[rows.blank[good]]).size:
        first = int(blank[0])
        count = len(good) - len(blank)
        faults.note(
            BLANK_PROPENSITY, rows.file, int(rows.lines[first]), rows.text(first), len(blank)
        )
    log = EventLog(
        users=rows.users if whole else take_contexts(rows.users, good),
        pool=pool,
        position=rows.position[good].astype(position_type(pools)),
        payoff=payoff[good],
        recorded_propensity=recorded(None if propensity is None else propensity[good], pool, pools),
        times=None if micros is None else Times.from_microseconds(micros),
        pool_table=pools,
        article_table=articles,
        recorded_count=count,
    )
    return ValidEvents(log, rows.lines[good])


def outcome_fault(position: int, size: int, payoff: float, propensity: float | None) -> str | None:
    """The fault that `validate` would find in a row, except in its user and time.

    >>> outcome_fault(2, 2, 1.0, 0.5)
    'the shown article is not in the pool'
    """
    if not 0 <= position < size:
        return SHOWN_NOT_IN_POOL
    if not abs(payoff) <= MAX_FLOAT32:
        return BAD_PAYOFF
    if propensity is not None and not _MIN_PROPENSITY < propensity <= _MAX_PROPENSITY:
        return BAD_PROPENSITY
    return None


def as_float(value: int | float) -> float:
    """A number as a float; infinite if it is too large.

    >>> as_float(10 ** 400)
    inf
    """
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _used_tables(
    rows: ParsedRows, good: npt.NDArray[np.intp]
) -> tuple[ArticleTable, PoolTable, npt.NDArray[np.int32]]:
    """The articles and pools of the good rows, and the pool of each."""
    articles, pools = rows.articles, rows.pools
    used, pool = np.unique(rows.pool[good], return_inverse=True)
    if len(used) < len(pools):
        pools = _take_pools(pools, used)
    members = np.union1d(np.arange(rows.listed), pools.members)
    if len(members) < len(articles.ids):
        features, profiles = articles.features, articles.profiles
        articles = ArticleTable(
            tuple(articles.ids[i] for i in members.tolist()),
            None if features is None else features[members],
            None if profiles is None else profiles.take(members).combine_chunks(),
        )
        numbers = np.searchsorted(members, pools.members).astype(np.int32)
        pools = PoolTable(pools.offsets, numbers)
    return articles, pools, pool.astype(np.int32)


def _take_pools(pools: PoolTable, which: npt.NDArray[np.int32]) -> PoolTable:
    sizes = pools.sizes[which]
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    # Each member's old place: its pool's first place plus its offset within the pool.
    places = np.arange(offsets[-1]) + np.repeat(pools.offsets[which] - offsets[:-1], sizes)
    return PoolTable(offsets, pools.members[places])


def _reject(
    rows: ParsedRows, checks: Sequence[tuple[str, Mask]], faults: Faults
) -> npt.NDArray[np.intp]:
    """Report each bad row once, by its first fault; returns the indices of the good rows."""
    rejected = list(rows.rejected)
    bad = np.zeros(len(rows.pool), bool)
    for reason, mask in checks:
        worded = rows.reworded.get(reason, reason)
        rejected += rejected_rows(mask & ~bad, worded, rows.lines, rows.text)
        bad |= mask
    report_rejected(rejected, rows.file, faults)
    return np.flatnonzero(~bad)


def rejected_rows(
    mask: Mask,
    reason: str,
    lines: npt.NDArray[np.int64],
    text: Callable[[int], bytes | str],
) -> list[RejectedRow]:
    """The rows of a mask as one entry, with the text of the first: a bad row costs no more."""
    count = int(np.count_nonzero(mask))
    if not count:
        return []
    first = int(mask.argmax())
    return [RejectedRow(int(lines[first]), reason, text(first), count)]


def report_rejected(rejected: Sequence[RejectedRow], file: str, faults: Faults) -> None:
    """Count bad rows, the reason that occurs first in the file before the others."""
    first: dict[str, RejectedRow] = {}
    counts: dict[str, int] = {}
    for row in rejected:
        counts[row.reason] = counts.get(row.reason, 0) + row.rows
        if row.reason not in first or row.line < first[row.reason].line:
            first[row.reason] = row
    for reason, row in sorted(first.items(), key=lambda item: item[1].line):
        faults.add(reason, file, row.line, row.text, counts[reason])
