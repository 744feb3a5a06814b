"""From rows as they were read to a log of the good ones; the others are counted by reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.checks import Mask
from topstory.events.columns.contexts import SparseContexts, take_contexts, unfit_rows
from topstory.events.columns.pools import PoolTable
from topstory.events.columns.positions import position_type
from topstory.events.columns.propensity import recorded
from topstory.events.columns.times import EARLIEST, LATEST, Times
from topstory.events.formats.faults import Faults
from topstory.events.log import EventLog

NOWHERE = -1  # the position of an article that is not in the pool

NOT_SHOWN = "the shown article is not in the pool"
PAYOFF = "the payoff is not a finite number"
USER = "a user feature is not a finite number"
PROPENSITY = "the propensity is outside (0, 1]"
TIME = "the timestamp is outside the years 1 to 9999"

FLOAT32 = float(np.finfo(np.float32).max)
# What is above 0 and at most 1 once it is rounded to float32.
_ABOVE, _MOST = 2.0**-150, 1 + 2.0**-24


class Refusal(NamedTuple):
    """A row that a reader could not make sense of."""

    line: int
    reason: str
    text: str | bytes = ""


@dataclass
class Rows:
    """Rows of one file, each of which may still turn out bad.

    What its reader refused already is in `refused`.
    """

    file: str
    lines: npt.NDArray[np.int64]  # (n,) from 1
    users: npt.NDArray[np.float32] | SparseContexts  # (n, d)
    pools: PoolTable
    pool: npt.NDArray[np.int32]  # (n,)
    position: npt.NDArray[np.int32]  # (n,) of the shown article in its pool, or NOWHERE
    payoff: npt.NDArray[np.float64]  # (n,)
    propensity: npt.NDArray[np.float64] | None  # (n,) None: 1 / the pool's size
    micros: npt.NDArray[np.int64] | None  # (n,) None: untimed
    articles: ArticleTable
    listed: bool = False  # the articles are those of a file of articles: all of them stay
    refused: list[Refusal] = field(default_factory=list)
    text: Callable[[int], bytes | str] = lambda _: ""  # of row i, to be shown if it is bad


class Sifted(NamedTuple):
    """The good rows."""

    log: EventLog
    lines: npt.NDArray[np.int64]  # (n,) of the events


def sift(rows: Rows, faults: Faults) -> Sifted | None:
    """The log of the good rows, or None if there are none; faults are told in the file's order.

    Of a bad row nothing stays: no pool, and no article that is not listed elsewhere.

    >>> faults, articles = Faults(), ArticleTable(("x", "y"))
    >>> rows = Rows(
    ...     "a.csv", np.arange(2, 4), np.ones((2, 1), np.float32),
    ...     PoolTable.from_lists([["x"], ["y"]], articles), np.arange(2, dtype=np.int32),
    ...     np.zeros(2, np.int32), np.array([1.0, np.inf]), None, None, articles)
    >>> sift(rows, faults).log
    <EventLog: 1 event, 1 article, 1 pool, untimed, CTR 1.0000>
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
        payoff = rows.payoff.astype(np.float32)
        propensity = None if rows.propensity is None else rows.propensity.astype(np.float32)
    checks: list[tuple[str, Mask]] = [
        (NOT_SHOWN, rows.position < 0),
        (PAYOFF, ~np.isfinite(payoff)),
    ]
    if not isinstance(rows.users, SparseContexts):
        checks.append((USER, unfit_rows(rows.users)))
    if propensity is not None:
        checks.append((PROPENSITY, ~((propensity > 0) & (propensity <= 1))))
    if rows.micros is not None:
        checks.append((TIME, (rows.micros < EARLIEST) | (rows.micros > LATEST)))
    good = _refuse(rows, checks, faults)
    if not len(good):
        return None
    whole = len(good) == len(rows.pool)
    articles, pools, pool = _used(rows, good)
    micros = None if rows.micros is None else rows.micros[good]
    log = EventLog(
        users=rows.users if whole else take_contexts(rows.users, good),
        pool=pool,
        position=rows.position[good].astype(position_type(pools)),
        payoff=payoff[good],
        recorded_propensity=recorded(None if propensity is None else propensity[good], pool, pools),
        times=None if micros is None else Times.from_microseconds(micros),
        pool_table=pools,
        article_table=articles,
    )
    return Sifted(log, rows.lines[good])


def outcome_fault(position: int, size: int, payoff: float, propensity: float | None) -> str | None:
    """What `sift` will find wrong with a row, users and times aside, as far as can be told early.

    >>> outcome_fault(2, 2, 1.0, 0.5)
    'the shown article is not in the pool'
    """
    if not 0 <= position < size:
        return NOT_SHOWN
    if not abs(payoff) <= FLOAT32:
        return PAYOFF
    if propensity is not None and not _ABOVE < propensity <= _MOST:
        return PROPENSITY
    return None


def as_float(value: int | float) -> float:
    """A number as a float, infinite if it is too large for one.

    >>> as_float(10 ** 400)
    inf
    """
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _used(
    rows: Rows, good: npt.NDArray[np.intp]
) -> tuple[ArticleTable, PoolTable, npt.NDArray[np.int32]]:
    """The articles and pools of the good rows, and the pool of each."""
    articles, pools = rows.articles, rows.pools
    used, pool = np.unique(rows.pool[good], return_inverse=True)
    if len(used) < len(pools):
        pools = _some(pools, used)
    members = np.unique(pools.members)
    if not rows.listed and len(members) < len(articles.ids):
        features = articles.features
        articles = ArticleTable(
            tuple(articles.ids[i] for i in members.tolist()),
            None if features is None else features[members],
        )
        numbers = np.searchsorted(members, pools.members).astype(np.int32)
        pools = PoolTable(pools.offsets, numbers)
    return articles, pools, pool.astype(np.int32)


def _some(pools: PoolTable, which: npt.NDArray[np.int32]) -> PoolTable:
    sizes = pools.sizes[which]
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    # Each member's place: that of its pool's first one, and how far it is behind it.
    places = np.arange(offsets[-1]) + np.repeat(pools.offsets[which] - offsets[:-1], sizes)
    return PoolTable(offsets, pools.members[places])


def _refuse(rows: Rows, checks: Sequence[tuple[str, Mask]], faults: Faults) -> npt.NDArray[np.intp]:
    """Tell every bad row, each once and by its first reason; the numbers of the good ones."""
    told = list(rows.refused)
    bad = np.zeros(len(rows.pool), bool)
    for reason, mask in checks:
        for i in np.flatnonzero(mask & ~bad):
            told.append(Refusal(int(rows.lines[i]), reason, rows.text(int(i))))
        bad |= mask
    for line, reason, text in sorted(told, key=lambda refusal: refusal.line):
        faults.add(reason, rows.file, line, text)
    return np.flatnonzero(~bad)
