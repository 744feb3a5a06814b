"""The numbers of events in a journal, as they were when its decisions were made."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.events import EventLog
from topstory.events.columns.varying import VaryingNumbers, starts_of
from topstory.serving.config.feature_model import EventFeatures, event_features
from topstory.serving.journal.records import ArticleFacts, Decided
from topstory.serving.state.pool import SeenArticles

Numbers = npt.NDArray[np.float32]


class PastNumbers:
    """Computes again which numbers each article of a pool had; the shown one's were recorded."""

    def __init__(self) -> None:
        self._declared: EventFeatures | None = None
        self._seen: SeenArticles | None = None
        self._later: deque[tuple[int, Decided]] = deque()  # shows that were not yet known

    def configure(self, config: dict[str, Any]) -> None:
        """The service was configured anew; ValueError if its contexts mean something else now."""
        event = config.get("event")
        declared = None if not event else event_features(event)
        if self._declared is not None and declared != self._declared:
            raise ValueError(
                "the features of events changed while this journal was written, so its contexts "
                "do not fit into one log"
            )
        self._declared = declared
        if declared is not None and "seen_before" in declared.used and self._seen is None:
            self._seen = import_module("topstory.features.event.seen_articles").SeenArticles()

    def note(self, number: int, decided: Decided) -> None:
        """An article was shown: the state knew of it from that record on."""
        if self._seen is not None and decided.visitor:
            self._later.append((number, decided))

    def of(self, at: int, decided: Decided, facts: Sequence[ArticleFacts]) -> Numbers | None:
        """(K, k) for a decision at this time among these articles; None: there are none."""
        declared = self._declared
        if declared is None or not declared.per_article:
            return None
        counts: Any = {}
        if self._seen is not None:
            while self._later and self._later[0][0] <= decided.model_version:
                _, shown = self._later.popleft()
                self._seen.note(shown.visitor, shown.article)
            if decided.visitor:
                counts = self._seen.counts(decided.visitor)
        numbers = declared.of_articles(
            at,
            [each.begins or 0 if each.published is None else each.published for each in facts],
            [counts.get(each.id, 0) for each in facts],
        )
        recorded = np.frombuffer(decided.user, "<f8")[-1 - declared.per_article : -1]
        numbers[[each.id for each in facts].index(decided.article)] = recorded
        return numbers

    def added(self, log: EventLog, numbers: Sequence[Numbers | None]) -> EventLog:
        """The log with the numbers of its events."""
        if self._declared is None:
            return log
        there = [each for each in numbers if each is not None]
        varying = None
        if there:
            sizes = log.pool_sizes[log.pool]
            varying = VaryingNumbers(np.concatenate(there), starts_of(sizes))
        return replace(
            log,
            event_numbers=len(self._declared.columns),
            varying=varying,
            event_features=len(self._declared.feature_columns),
        )
