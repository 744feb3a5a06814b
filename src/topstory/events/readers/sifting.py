"""From rows as they were read to a log of the good ones; the others are counted by reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from topstory.events.articles import ArticleTable
from topstory.events.columns import Mask
from topstory.events.contexts import SparseContexts, take_contexts, unfit_rows
from topstory.events.log import EventLog
from topstory.events.pools import PoolTable
from topstory.events.propensity import recorded
from topstory.events.readers.faults import Faults
from topstory.events.shown import Finder, position_type
from topstory.events.times import EARLIEST, LATEST, Times


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
    pools: Sequence[Sequence[str]]  # every article in them is in `articles`
    pool: npt.NDArray[np.int32]  # (n,)
    shown: npt.NDArray[np.int32]  # (n,) index of the article; -1: an id that is not known
    payoff: npt.NDArray[np.float64]  # (n,)
    propensity: npt.NDArray[np.float64] | None  # (n,) None: 1 / the pool's size
    micros: npt.NDArray[np.int64] | None  # (n,) None: untimed
    articles: ArticleTable
    refused: list[Refusal] = field(default_factory=list)
    text: Callable[[int], bytes | str] = lambda _: ""  # of row i, to be shown if it is bad


def sift(rows: Rows, faults: Faults) -> EventLog | None:
    """The log of the good rows, or None if there are none; faults are told in the file's order.

    >>> faults = Faults()
    >>> rows = Rows(
    ...     "a.csv", np.arange(2, 4), np.ones((2, 1), np.float32), [["x", "y"]],
    ...     np.zeros(2, np.int32), np.array([0, 1], np.int32), np.array([1.0, np.inf]),
    ...     None, None, ArticleTable(("x", "y")))
    >>> sift(rows, faults)
    <EventLog: 1 event, 2 articles, 1 pool, untimed, CTR 1.0000>
    """
    used, numbered = np.unique(rows.pool, return_inverse=True)
    pools = PoolTable.from_lists([rows.pools[i] for i in used], rows.articles)
    pool = numbered.astype(np.int32)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
        payoff = rows.payoff.astype(np.float32)
        propensity = None if rows.propensity is None else rows.propensity.astype(np.float32)
    position = Finder(pools, len(rows.articles.ids))(pool, np.maximum(rows.shown, 0))
    checks: list[tuple[str, Mask]] = [
        ("the shown article is not in the pool", (rows.shown < 0) | (position < 0)),
        ("the payoff is not a finite number", ~np.isfinite(payoff)),
    ]
    if not isinstance(rows.users, SparseContexts):
        checks.append(("a user feature is not a finite number", unfit_rows(rows.users)))
    if propensity is not None:
        outside = ~((propensity > 0) & (propensity <= 1))
        checks.append(("the propensity is outside (0, 1]", outside))
    if rows.micros is not None:
        never = (rows.micros < EARLIEST) | (rows.micros > LATEST)
        checks.append(("the timestamp is outside the years 1 to 9999", never))
    good = _refuse(rows, checks, faults)
    if not len(good):
        return None
    if len(good) < len(pool):  # whole pools may have gone with their rows
        used, numbered = np.unique(pool[good], return_inverse=True)
        pools = PoolTable.from_lists(
            [rows.pools[rows.pool[i]] for i in _first_of_each(pool, used)], rows.articles
        )
        pool, position = numbered.astype(np.int32), position[good]
        payoff = payoff[good]
        propensity = None if propensity is None else propensity[good]
    whole = len(good) == len(rows.pool)
    micros = None if rows.micros is None else rows.micros[good]
    return EventLog(
        users=rows.users if whole else take_contexts(rows.users, good),
        pool=pool,
        position=position.astype(position_type(pools)),
        payoff=payoff,
        recorded_propensity=recorded(propensity, pool, pools),
        times=None if micros is None else Times.from_microseconds(micros),
        pool_table=pools,
        article_table=rows.articles,
    )


def _first_of_each(pool: npt.NDArray[np.int32], wanted: npt.NDArray[np.int32]) -> Any:
    """The first row of each wanted pool."""
    numbers, first = np.unique(pool, return_index=True)
    return first[np.searchsorted(numbers, wanted)]


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
