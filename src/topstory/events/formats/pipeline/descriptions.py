"""Articles that every row describes again, possibly with other features.

Vowpal Wabbit's formats have such rows, and call articles actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.pools import PoolTable
from topstory.events.formats.faults import Faults
from topstory.events.formats.pipeline.validation import ValidEvents
from topstory.events.log import EventLog

CHANGED_FEATURES = (
    "an action has other features than when its id was first seen: the first are kept"
)

Features = npt.NDArray[np.float64]


class ArticleDescription:
    """An action as one row describes it; each different description is an object of its own."""

    __slots__ = ("features", "id")

    def __init__(self, key: str, features: Features | None) -> None:
        self.id, self.features = key, features


def description_table(actions: Sequence[ArticleDescription]) -> ArticleTable:
    """One article per description, so an id may occur twice: see `FirstDescriptions.settle`."""
    rows = [action.features for action in actions if action.features is not None]
    return ArticleTable(
        tuple(action.id for action in actions), np.array(rows, np.float64) if rows else None
    )


class FirstDescriptions:
    """All actions of an import, each with the features that it first had.

    >>> def event(x: float) -> ValidEvents:
    ...     actions = [ArticleDescription("a", np.array([x])), ArticleDescription("b", np.ones(1))]
    ...     pools = PoolTable(np.array([0, 2]), np.array([0, 1], np.int32))
    ...     log = EventLog(
    ...         np.ones((1, 1), np.float32), np.zeros(1, np.int32), np.zeros(1, np.uint16),
    ...         np.ones(1, np.float32), None, None, pools,
    ...         description_table(actions))
    ...     return ValidEvents(log, np.array([7]))
    >>> actions, faults = FirstDescriptions(), Faults()
    >>> [actions.settle(event(x), "day1", faults).features.tolist() for x in (2.0, 3.0)]
    [[[2.0], [1.0]], [[2.0], [1.0]]]
    >>> faults.notes[CHANGED_FEATURES], faults.first[CHANGED_FEATURES].text
    (1, 'a')
    """

    def __init__(self) -> None:
        self._features: dict[str, Features | None] = {}

    def settle(self, events: ValidEvents, file: str, faults: Faults) -> EventLog:
        """The log of events whose articles are descriptions, with each article once.

        Events that describe an action differently from the first description are noted.
        """
        log, table, pools = events.log, events.log.article_table, events.log.pool_table
        index: dict[str, int] = {}
        new = np.empty(len(table.ids), np.int32)
        changed = np.zeros(len(table.ids), bool)
        for i, key in enumerate(table.ids):
            new[i] = index.setdefault(key, len(index))
            if key not in self._features:
                self._features[key] = None if table.features is None else table.features[i].copy()
            elif table.features is not None:
                # Ignored: if one description has features, all have.
                changed[i] = not np.array_equal(self._features[key], table.features[i])  # type: ignore[arg-type]
        if changed.any():
            _note_changes(events, changed, file, faults)
        rows = [row for row in map(self._features.__getitem__, index) if row is not None]
        return replace(
            log,
            pool_table=PoolTable(pools.offsets, new[pools.members]),
            article_table=ArticleTable(tuple(index), np.array(rows) if rows else None),
        )


def _note_changes(
    events: ValidEvents, changed: npt.NDArray[np.bool_], file: str, faults: Faults
) -> None:
    log, pools = events.log, events.log.pool_table
    members = changed[pools.members]
    concerned = np.logical_or.reduceat(members, pools.offsets[:-1])[log.pool]
    first = int(concerned.argmax())
    begin = pools.offsets[log.pool[first]]
    which = pools.members[begin + int(members[begin:].argmax())]
    text = log.article_table.ids[which]
    faults.note(CHANGED_FEATURES, file, int(events.lines[first]), text, int(concerned.sum()))
