"""A log prepared for replay: its columns as kernels take them, and its own sums."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from topstory.evaluation.blocks import Blocks
from topstory.evaluation.visitor_groups import VisitorGroups, VisitorSums
from topstory.events import EventLog, Rejection, SparseContexts, Uniformity
from topstory.events.quality.chance import no_chance, one_article_each
from topstory.events.quality.checks import SIGNIFICANCE_LEVEL, randomness_checks
from topstory.events.quality.independence import evenly_spaced
from topstory.events.quality.rejection import MAX_MISSING, rejection
from topstory.events.quality.verdict import MAX_SURVIVORS, failure_text
from topstory.kernels.compilation import Floats, Slots
from topstory.kernels.scans.log_sums import sum_log
from topstory.kernels.scans.replay import TRIALS, LogColumns, Pools
from topstory.models.contexts import kernel_rows
from topstory.models.input_range import MAX_MAGNITUDE, in_range

CHUNK_EVENTS = 1 << 16  # events between two reports of progress, and two chances to stop
ALL = np.zeros(0, bool)  # no selection: every event counts
MAX_QUIET_LOSS = 0.9  # rejection sampling may lose this share of events without a warning


class NotUniformWarning(UserWarning):
    """The log's articles were not shown uniformly at random: replay misleads, or loses most of it.

    >>> issubclass(NotUniformWarning, UserWarning)
    True
    """


class EstimatedPropensityWarning(UserWarning):
    """The log's propensities were estimated, not recorded, so a result is as right as they are.

    >>> issubclass(EstimatedPropensityWarning, UserWarning)
    True
    """


def warn_if_estimated(how: str | None, called: str = "log", stacklevel: int = 4) -> None:
    """Warn if a log's propensities are an estimate, and say how they were estimated."""
    if how is not None:
        warnings.warn(
            f"the {called}'s propensities were estimated, not recorded ({how}), so a result is "
            "only as right as they are",
            EstimatedPropensityWarning,
            stacklevel=stacklevel,
        )


@dataclass(frozen=True)
class PreparedLog:
    """What all replays of a log share: which events count, their blocks, the log's own sums."""

    traffic: LogColumns
    blocks: Blocks
    by_block: Floats  # (blocks, 4)
    by_article: Floats  # (articles, 2), by the log's article index
    binary: bool
    uniformity: Uniformity
    rejection: Rejection | None  # None: the log is uniform, and no event is rejected
    keep: NDArray[np.bool_]  # which events rejection leaves; empty: all
    out_of_range: str  # the first number that models do not take, and where; or nothing
    estimate: str | None  # how propensities were estimated; None: they were not
    groups: VisitorGroups | None  # None: no visitor is known to have returned
    visitors: VisitorSums | None  # the log's own

    @property
    def clusters(self) -> int:
        """How many sums a replay keeps: blocks or, where visitors return, cells of those."""
        return self.blocks.count if self.groups is None else self.groups.count

    def cluster_numbers(self, log: EventLog, start: int, stop: int) -> Slots:
        """The block, or the cell, of each of the events start … stop − 1."""
        blocks = self.blocks.numbers(log, start, stop)
        return blocks if self.groups is None else self.groups.cells(blocks, start)

    def folded(self, sums: Floats) -> tuple[Floats, VisitorSums | None]:
        """Sums (…, clusters, 4) by block; and what they say of visitors."""
        return (sums, None) if self.groups is None else self.groups.folded(sums)

    @property
    def events(self) -> int:
        """How many events rejection sampling left."""
        return round(float(self.by_article[:, TRIALS].sum()))

    def by_fold(self, log: EventLog, folds: int) -> tuple[Floats, Floats]:
        """(articles, folds) each: how often an article was shown, and what it paid."""
        shape = (len(log.article_ids), folds)
        shows, payoff, shown = np.zeros(shape), np.zeros(shape), log.shown_index
        for start, stop in chunks(len(log)):
            cell = shown[start:stop].astype(np.int64) * folds + np.arange(start, stop) % folds
            paid = log.payoff[start:stop].astype(np.float64)
            if len(self.keep):
                cell, paid = cell[self.keep[start:stop]], paid[self.keep[start:stop]]
            shows += np.bincount(cell, minlength=shows.size).reshape(shape)
            payoff += np.bincount(cell, paid, minlength=payoff.size).reshape(shape)
        return shows, payoff

    def check_range(self) -> None:
        """Raise ValueError if the log has numbers that models do not take."""
        _refuse(self.out_of_range)

    def warn(self, log: EventLog, called: str = "log") -> None:
        """Warn if the log, which this is, is not uniform, or if replay loses most of it."""
        found, logged, rejected = self.uniformity, len(self.traffic.pool), self.rejection
        warn_if_estimated(self.estimate, called)
        if self.events < (1 - MAX_QUIET_LOSS) * logged:
            warnings.warn(
                f"rejection sampling keeps only {self.events:,} of {logged:,} events of the "
                f"{called}, since the smallest propensity is {self.traffic.least:.2g} times the "
                "uniform one; a log whose propensities vary less loses less",
                NotUniformWarning,
                stacklevel=3,
            )
        if rejected is not None and not rejected.honest:
            warnings.warn(
                f"the {called}'s propensities p contradict its pools of K articles: the mean of "
                f"1/(K p) is {rejected.mean_weight:.3g} where right ones give 1, so replay is "
                "biased; `topstory inspect` says more",
                NotUniformWarning,
                stacklevel=3,
            )
        elif rejected is not None and rejected.missing > MAX_MISSING:
            warnings.warn(
                f"{rejected.capped:,} events of the {called} have propensities far below all "
                f"others; rejection sampling keeps each of them once, and up to "
                f"{rejected.missing:.1%} of uniform traffic is missing from what it keeps",
                NotUniformWarning,
                stacklevel=3,
            )
        if found.p_value < SIGNIFICANCE_LEVEL and one_article_each(log):
            why = no_chance("each pool always shows the same article")
            message = f"these numbers are of what was shown, not of the policies: {why}"
            warnings.warn(message, NotUniformWarning, stacklevel=3)
        elif found.p_value < SIGNIFICANCE_LEVEL:
            named = ", ".join(repr(s.article) for s in found.standouts[:5])
            warnings.warn(
                f"the {called}'s articles were not shown uniformly at random (chi-square "
                f"{found.statistic:.1f} with {found.degrees_of_freedom} degrees of freedom, "
                f"p = {found.p_value:.2g}), so replay is biased"
                + (f"; standing out: {named}" if named else "")
                + ". Record the propensities with which articles were shown, and replay corrects "
                "for them.",
                NotUniformWarning,
                stacklevel=3,
            )
        elif pattern := shown_by_pattern(log, found, self.keep):
            warnings.warn(
                f"the {called}'s articles were not shown uniformly at random{pattern}, so replay "
                "is biased; `topstory inspect` says more",
                NotUniformWarning,
                stacklevel=3,
            )


_PATTERNS: WeakKeyDictionary[EventLog, str] = WeakKeyDictionary()


def shown_by_pattern(log: EventLog, found: Uniformity, keep: NDArray[np.bool_] = ALL) -> str:
    """What tests find besides that of the articles: a logger that knows its users, say.

    A sequence, such as a rotation, is none: what it shows does not depend on who comes.

    Args:
        log: whose events are tested, once: not for each draw of survivors.
        found: the test of the articles.
        keep: which events rejection leaves; empty: all.
    """
    if log not in _PATTERNS:
        rows = np.flatnonzero(keep)
        tested = log[rows[evenly_spaced(len(rows), MAX_SURVIVORS)]] if len(keep) else log
        checks = randomness_checks(tested, found) if len(tested) else ()
        _PATTERNS[log] = failure_text(tuple(each for each in checks if each.name != "sequence"))
    return _PATTERNS[log]


_PREPARED: WeakKeyDictionary[EventLog, dict[int, PreparedLog]] = WeakKeyDictionary()


def prepared(log: EventLog, seed: int) -> PreparedLog:
    """Prepare a log: once, or once for each seed if its propensities make replay reject events."""
    known = _PREPARED.setdefault(log, {})
    key = 0 if log.recorded_propensity is None else seed
    if key not in known:
        known[key] = _prepare(log, key)
    return known[key]


def _prepare(log: EventLog, seed: int) -> PreparedLog:
    recorded, rejected = log.recorded_propensity, rejection(log)
    traffic = LogColumns(
        contexts=kernel_rows(log.users),
        pool=log.pool,
        position=log.position,
        payoff=log.payoff,
        propensity=np.zeros(0, np.float32) if recorded is None else recorded,
        least=1.0 if rejected is None else rejected.rate,
    )
    articles = len(log.article_ids)
    pools = Pools(log.pool_offsets, log.pool_members, np.zeros(0, np.uint64))
    blocks = Blocks.of(log)
    groups = VisitorGroups.of(log, blocks)
    clusters = blocks.count if groups is None else groups.count
    by_cluster, by_article = np.zeros((clusters, 4)), np.zeros((articles, 2))
    keep = np.zeros(0 if recorded is None else len(log), bool)
    for start, stop in chunks(len(log)):
        numbers = blocks.numbers(log, start, stop)
        numbers = numbers if groups is None else groups.cells(numbers, start)
        sum_log(start, traffic, pools, numbers, np.uint64(seed), keep, by_cluster, by_article)
    by_block, visitors = (by_cluster, None) if groups is None else groups.folded(by_cluster)
    binary = all(
        bool(((part == 0) | (part == 1)).all())
        for part in (log.payoff[start:stop] for start, stop in chunks(len(log)))
    )
    uniformity = log.uniformity(keep if len(keep) else None)
    return PreparedLog(
        *(traffic, blocks, by_block, by_article, binary, uniformity, rejected, keep),
        _out_of_range(log),
        *(log.propensity_estimate, groups, visitors),
    )


def check_range(log: EventLog) -> None:
    """Raise ValueError if a log has numbers that models do not take."""
    _refuse(_out_of_range(log))


def _refuse(out_of_range: str) -> None:
    if out_of_range:
        raise ValueError(
            f"{out_of_range}; policies take numbers up to {MAX_MAGNITUDE:g}: give it in a larger "
            "unit, or leave it out"
        )


def _out_of_range(log: EventLog) -> str:
    columns = [("payoff", log.payoff.reshape(-1, 1))]
    if not isinstance(log.users, SparseContexts):  # those are 0 or 1
        columns.append(("context", log.users))
    for called, column in columns:
        for start, stop in chunks(len(log)):
            part = column[start:stop]
            if not in_range(part):
                row, place = np.argwhere(~(np.abs(part) <= MAX_MAGNITUDE))[0]
                number = f" (number {place})" if called == "context" else ""
                return f"the {called}{number} of event {start + row} is {part[row, place]:g}"
    return ""


def chunks(events: int) -> Iterator[tuple[int, int]]:
    """The log in pieces, from start to stop."""
    for start in range(0, events, CHUNK_EVENTS):
        yield start, min(start + CHUNK_EVENTS, events)
