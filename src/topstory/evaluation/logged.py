"""A log made ready for replay: its columns as kernels take them, and what it says of itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from topstory.evaluation.blocks import Blocks
from topstory.events import EventLog, Uniformity
from topstory.events.quality.verdict import SIGNIFICANCE_LEVEL
from topstory.kernels.compilation import Floats
from topstory.kernels.replay import TRIALS, Pools, Traffic
from topstory.kernels.survey import survey
from topstory.models.contexts import kernel_rows

CHUNK = 1 << 16  # events between two reports of progress, and two chances to stop
MOST_LOST = 0.9  # the share of events that rejection sampling may cost without a word


class NotUniformWarning(UserWarning):
    """The log's articles were not shown uniformly at random: replay misleads, or loses most of it.

    >>> issubclass(NotUniformWarning, UserWarning)
    True
    """


@dataclass(frozen=True)
class Logged:
    """What every replay of a log shares: the same events kept, cut and compared alike."""

    traffic: Traffic
    blocks: Blocks
    by_block: Floats  # (blocks, 4)
    by_article: Floats  # (articles, 2), by the log's article index
    binary: bool
    uniformity: Uniformity

    @property
    def events(self) -> int:
        """How many events rejection sampling left."""
        return round(float(self.by_article[:, TRIALS].sum()))

    def warn(self, called: str = "log") -> None:
        """Say loudly that the log is not uniform, if it is not."""
        found, logged = self.uniformity, len(self.traffic.pool)
        if self.events < (1 - MOST_LOST) * logged:
            warnings.warn(
                f"rejection sampling keeps only {self.events:,} of {logged:,} events of the "
                f"{called}, since the smallest propensity is {self.traffic.least:.2g} times the "
                "uniform one; a log whose propensities vary less loses less",
                NotUniformWarning,
                stacklevel=3,
            )
        if found.p_value < SIGNIFICANCE_LEVEL:
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


_READY: WeakKeyDictionary[EventLog, dict[int, Logged]] = WeakKeyDictionary()


def ready(log: EventLog, seed: int) -> Logged:
    """The log made ready; done once for a log, and for each seed where events are rejected."""
    known = _READY.setdefault(log, {})
    key = 0 if log.recorded_propensity is None else seed
    if key not in known:
        known[key] = _prepare(log, key)
    return known[key]


def _prepare(log: EventLog, seed: int) -> Logged:
    recorded = log.recorded_propensity
    least = 1.0
    if recorded is not None:
        least = min(
            float((log.pool_sizes[log.pool[start:stop]] * recorded[start:stop]).min())
            for start, stop in chunks(len(log))
        )
    traffic = Traffic(
        contexts=kernel_rows(log.users),
        pool=log.pool,
        position=log.position,
        payoff=log.payoff,
        propensity=np.zeros(0, np.float32) if recorded is None else recorded,
        least=least,
    )
    articles = len(log.article_ids)
    pools = Pools(log.pool_offsets, log.pool_members, np.zeros(0, np.uint64))
    blocks = Blocks.of(log)
    by_block, by_article = np.zeros((blocks.count, 4)), np.zeros((articles, 2))
    keep = np.zeros(0 if recorded is None else len(log), bool)
    for start, stop in chunks(len(log)):
        numbers = blocks.numbers(log, start, stop)
        survey(start, traffic, pools, numbers, np.uint64(seed), keep, by_block, by_article)
    binary = all(
        bool(((part == 0) | (part == 1)).all())
        for part in (log.payoff[start:stop] for start, stop in chunks(len(log)))
    )
    uniformity = log.uniformity(keep if len(keep) else None)
    return Logged(traffic, blocks, by_block, by_article, binary, uniformity)


def chunks(events: int) -> Iterator[tuple[int, int]]:
    """The log in pieces, from start to stop."""
    for start in range(0, events, CHUNK):
        yield start, min(start + CHUNK, events)
