"""Export of the journal as an event log, for `topstory replay`.

A decision becomes an event. Its pool is what could be shown at that time, and its propensity is
over the whole traffic mix. The uniform bucket alone is a random-exploration log with propensities
1/K. Further columns say what the journal knows of the decision (`EventLog.decisions`). What an
operator excluded is left out: a decision with its event, a payoff as if none had come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from topstory.events import EventLog
from topstory.events.folder.append import Appender
from topstory.events.folder.contents import check_replaceable
from topstory.files import replaced_folder
from topstory.kernels.buckets import UNIFORM
from topstory.serving.api.messages import BUCKETS
from topstory.serving.journal.clock import SECOND
from topstory.serving.journal.journal import Journal, Payoff
from topstory.serving.journal.records import (
    ArticleFacts,
    Configured,
    Decided,
    Entry,
    Opened,
    Placed,
    Promoted,
    Removed,
)
from topstory.serving.state.exclusion import excludes
from topstory.serving.state.pool import FOREVER, context
from topstory.serving.upkeep.past_numbers import PastNumbers

EVENTS_PER_BATCH = 20_000

Part = Literal["all", "uniform"]
Features = tuple[float, ...] | None


class Exported(msgspec.Struct, frozen=True):
    """What was written."""

    pool: str
    part: str
    events: int
    open: int  # left out: feedback may still arrive
    excluded: int = 0  # left out: an operator excluded them
    excluded_payoffs: int = 0  # left out, while their decisions are there
    earlier: int = 0  # left out: their contexts are those of a feature model before the last one


class NothingToExport(ValueError):
    """There is no final decision to export."""


def last_feature_model(journal: Journal, before: int = FOREVER) -> tuple[int, str | None]:
    """The record from which on contexts are those of the last feature model, and its identity.

    None: it is not known of all of them, since the service was begun without a model.
    """
    begin, of_all, last, started = 0, None, None, False
    for entry, _ in journal.history(before, before):  # no decisions
        record, found = entry.record, None
        if isinstance(record, Configured):
            found = record.config.get("feature_model")
            of_all = of_all if started else found
            started = True
        elif isinstance(record, Promoted):
            found = record.feature_model
        if found is not None and last not in (None, found):
            begin, of_all = entry.number, found
        last = found or last
    return begin, of_all


class _Event(NamedTuple):
    number: int
    at: int
    decided: Decided
    payoff: float
    shown: str
    pool: tuple[str, ...]
    numbers: npt.NDArray[np.float32] | None = None  # (K, k) those that differ between articles


def export(
    journal: Journal,
    out: Path,
    pool: str,
    part: Part = "all",
    now: int = FOREVER,
    before: int = FOREVER,
) -> Exported:
    """Write the decisions of a pool as a log folder, whole or not at all.

    Args:
        journal: the journal; its service may be running.
        out: the folder; an existing log is replaced.
        pool: which pool.
        part: all traffic, or the uniform bucket alone.
        now: decisions whose window ends later are left out: their payoff may still arrive.
        before: export only records below this number.
    """
    past = PastDecisions(journal, pool, part, now, before)
    events = 0
    with replaced_folder(out, check_replaceable) as fresh, Appender(fresh) as appender:
        batches = past.events()
        while chunk := list(islice(batches, EVENTS_PER_BATCH)):
            appender.append(past.columns(chunk))
            events += len(chunk)
        if events:
            appender.finish()
        elif pool not in past.pools:
            listed = ", ".join(past.pools) or "none yet"
            raise NothingToExport(f"the journal has no pool {pool!r}; there are {listed}")
        else:
            raise NothingToExport(
                f"pool {pool!r} has no decision to export yet ({past.open} may still get feedback, "
                f"{past.excluded} were excluded, {past.earlier} are of an earlier feature model)"
            )
    left_out = past.open, past.excluded, past.excluded_payoffs, past.earlier
    return Exported(pool, part, events, *left_out)


def _decisions(events: list[_Event]) -> dict[str, list[Any]]:
    """What the journal knows of these decisions beside the events; None: it was not recorded."""
    decided = [event.decided for event in events]
    return {
        "decision": [event.number for event in events],
        "request": [each.request for each in decided],
        # A pseudonym where the configuration said not to keep ids, or where it was not recorded.
        "visitor": [each.visitor_id or each.visitor.hex() or None for each in decided],
        "bucket": [BUCKETS[each.bucket] for each in decided],
        "bucket_propensity": [each.bucket_propensity or None for each in decided],
        "mixture_propensity": [each.propensity for each in decided],
        "model_version": [each.model_version for each in decided],
        "slot": [each.slot for each in decided],
    }


class PastDecisions:
    """The decisions of a pool in order, each with the articles that could have been shown."""

    def __init__(
        self, journal: Journal, pool: str, part: Part, now: int, before: int, after: int = 0
    ) -> None:
        self._journal, self._pool, self._part = journal, pool, part
        self._now, self._before, self._after = now, before, after
        self._articles: dict[str, ArticleFacts] = {}
        # An article of a log has one row of features. One that returned with other features is new.
        self._names: dict[tuple[str, Features], str] = {}
        self._features: dict[str, Features] = {}  # by those names
        self._listed: dict[str, str] = {}  # names by id
        self._listed_names: tuple[str, ...] = ()
        self._valid = (0, 0)  # the times for which that list is valid
        self.open = self.excluded = self.excluded_payoffs = self.earlier = 0
        self._begin, self._feature_model = last_feature_model(journal, before)
        self._exclusions = journal.exclusions()
        self.pools: list[str] = []  # all pools of the journal
        self._past = PastNumbers()

    def events(self) -> Iterator[_Event]:
        """The events in order."""
        for entry, paid in self._journal.history(self._before, self._after):
            record = entry.record
            if isinstance(record, Configured):
                self._past.configure(record.config)
            elif isinstance(record, Placed) and record.pool == self._pool:
                self._articles[record.article.id] = record.article
                self._name(record.article, entry.number)
                self._valid = (0, 0)
            elif isinstance(record, Promoted) and record.pool == self._pool:
                self._describe(record, entry.number)
            elif isinstance(record, Removed) and record.pool == self._pool:
                self._articles.pop(record.article, None)
                self._valid = (0, 0)
            elif isinstance(record, Decided) and record.pool == self._pool:
                self._past.note(entry.number, record)
                if self._part == "uniform" and record.bucket != UNIFORM:
                    continue
                if entry.number < self._begin:
                    self.earlier += 1
                    continue
                if record.expires >= self._now:
                    self.open += 1
                    continue
                if excludes(self._exclusions, entry, None):
                    self.excluded += 1
                    continue
                shown_from = self._shown_from(entry.at, record)
                shown, payoff = self._listed[record.article], self._payoff(paid, record)
                facts = [self._articles[id] for id in self._ids(record)]
                numbers = self._past.of(entry.at, record, facts)
                yield _Event(entry.number, entry.at, record, payoff, shown, shown_from, numbers)
            elif isinstance(record, Opened):
                self.pools.append(record.pool)

    def _payoff(self, paid: Payoff | None, decided: Decided) -> float:
        if paid is None:
            return 0.0
        if excludes(self._exclusions, Entry(*paid), decided):
            self.excluded_payoffs += 1
            return 0.0
        return paid.record.payoff

    def columns(self, events: list[_Event]) -> EventLog:
        """A log of these events."""
        pools = list(dict.fromkeys(event.pool for event in events))
        numbers = {ids: number for number, ids in enumerate(pools)}
        known = {article for ids in pools for article in ids}
        features = {
            article: self._features[article] for article in self._features if article in known
        }
        if len({None if row is None else len(row) for row in features.values()}) > 1:
            features = dict.fromkeys(
                features
            )  # the articles of a log have equally many features, or none
        sizes = np.array([len(event.pool) for event in events])
        mixed = [event.decided.propensity for event in events]
        log = EventLog.from_arrays(
            users=np.array([context(event.decided.user) for event in events]),
            pools=pools,
            pool=[numbers[event.pool] for event in events],
            shown=[event.shown for event in events],
            payoff=[event.payoff for event in events],
            articles=features,
            timestamps=np.array([event.at / SECOND for event in events]),
            propensity=1.0 / sizes if self._part == "uniform" else mixed,
            exact=True,  # as the journal has them: a fold of the log comes to the same model
            decisions=_decisions(events),
        )
        log = replace(log, feature_model=self._feature_model)
        return self._past.added(log, [event.numbers for event in events])

    def _shown_from(self, at: int, decided: Decided) -> tuple[str, ...]:
        if not self._valid[0] <= at < self._valid[1]:
            self._list(at)
        if not (decided.exclude or decided.withheld):
            return self._listed_names
        gone = {*decided.exclude, *decided.withheld}
        return tuple(name for id, name in self._listed.items() if id not in gone)

    def _ids(self, decided: Decided) -> list[str]:
        """The ids of `_shown_from`, in its order."""
        gone = {*decided.exclude, *decided.withheld}
        return [id for id in self._listed if id not in gone]

    def _describe(self, promoted: Promoted, number: int) -> None:
        """Another feature model makes other features; no exported event has the earlier ones."""
        if promoted.feature_model is not None:
            self._names.clear()
            self._features.clear()
            for facts in promoted.articles:
                self._articles[facts.id] = facts
            for facts in self._articles.values():
                self._name(facts, number)
            self._valid = (0, 0)

    def _name(self, facts: ArticleFacts, number: int) -> None:
        """Name an article by its id; with the record number if the id had other features before."""
        if (facts.id, facts.features) not in self._names:
            name = facts.id
            while name in self._features:
                name += f"@{number}"
            self._names[facts.id, facts.features] = name
            self._features[name] = facts.features

    def _list(self, at: int) -> None:
        begins, ends, listed = 0, FOREVER, {}
        for article, facts in self._articles.items():
            first, last = facts.begins or 0, FOREVER if facts.ends is None else facts.ends
            if first <= at < last:
                listed[article] = self._names[article, facts.features]
            for edge in (first, last):
                begins, ends = (
                    (max(begins, edge), ends) if edge <= at else (begins, min(ends, edge))
                )
        self._listed, self._valid = listed, (begins, ends)
        self._listed_names = tuple(listed.values())
