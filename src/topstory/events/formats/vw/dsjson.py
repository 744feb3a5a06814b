"""Vowpal Wabbit's decision-service JSON: a decision a line (docs/guides/importing.md)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from topstory.events.columns.times import parse_time
from topstory.events.formats.faults import Faults, NotAnEvent
from topstory.events.formats.options import ReaderOptions
from topstory.events.formats.pipeline.descriptions import ArticleDescription, description_table
from topstory.events.formats.pipeline.first_event import FirstEvent
from topstory.events.formats.pipeline.line_parser import LineParser
from topstory.events.formats.pipeline.line_reader import LineReader
from topstory.events.formats.pipeline.memo import Memo
from topstory.events.formats.pipeline.row_batch import RowBatch
from topstory.events.formats.pipeline.validation import ParsedRows, outcome_fault
from topstory.events.formats.vw.dsjson_decision import (
    LoggedDecision,
    actions,
    decode,
    id_and_features,
    parse_json,
    shared_features,
    slot_features,
    slot_number,
)
from topstory.events.formats.vw.encodings import ArrayEncoding, Encoding, HashEncoding
from topstory.events.formats.vw.identical_actions import (
    MERGED,
    MERGED_UNKNOWN,
    MergedPool,
    copies,
    merged_pool,
)
from topstory.events.formats.vw.slots import ONE_COST, ccb, slates, slot_events

SKIPPED_LEARNING = "_skipLearn is true"
BAD_PDROP = "pdrop is outside [0, 1): a line that is always dropped cannot be there"
CONTRADICTION = "_label_Action and _labelIndex name different actions: the first is taken"
DROPPED = "pdrop: others like it were dropped at random, and nothing makes up for them"


class DsjsonReader(LineReader):
    """Reads the lines that Vowpal Wabbit reads with `--dsjson`.

    >>> DsjsonReader().name
    'dsjson'
    """

    name = "dsjson"
    options: Mapping[str, str] = {
        "dimensions": "length of the hashed vectors, the constant included (default 32)",
        "features": "hash (default), or arrays: the arrays of numbers are the vectors",
        "id": "where an action's id is, such as i.id; hash makes one of its features "
        "(default: id, i.id or _tag, else hash)",
    }
    described = True

    def parser(self, options: Mapping[str, Any], first_event: FirstEvent) -> LineParser:
        """A parser of events whose action, cost and probability are known."""
        chosen = ReaderOptions(self.name, options, self.options)
        encoding: Encoding = HashEncoding(chosen.whole("dimensions", 32, least=2))
        if chosen.choice("features", "hash", "arrays") == "arrays":
            encoding = ArrayEncoding(first_event)
        key = chosen.text("id")
        return _DsjsonParser(first_event, encoding, None if key is None else tuple(key.split(".")))


class _DsjsonParser(LineParser):
    def __init__(
        self, first_event: FirstEvent, encoding: Encoding, key: tuple[str, ...] | None
    ) -> None:
        super().__init__(first_event)
        self._encoding, self._key = encoding, key
        # Lists of actions repeat from line to line; if not, the actions in them do.
        self._pools = Memo[MergedPool](self._pool)
        self._known = Memo[ArticleDescription](self._action)

    def parse_row(self, number: int, row: bytes, batch: RowBatch, faults: Faults) -> None:
        """One line."""
        decision, context = decode(row)
        if decision.skip:
            faults.left_out(SKIPPED_LEARNING, batch.file, number, row)
            return
        if decision.pdrop and not 0 <= decision.pdrop < 1:
            raise NotAnEvent(BAD_PDROP)
        if "_slots" in context:
            self._parse_slots(number, row, decision, context, batch, faults)
            return
        label = at = decision.at()
        payoff, propensity = decision.payoff(), decision.propensity()
        pool, places = self._pools[bytes(context["_multi"])]
        fault = outcome_fault(at, len(places), payoff, propensity)
        if fault is not None:
            raise NotAnEvent(fault)
        if len(pool) < len(places):
            others = copies(places, at)
            chance = decision.chance_of(others) if others else 0.0
            remark = MERGED if chance is not None else MERGED_UNKNOWN
            at, propensity = places[at], min(1.0, propensity + (chance or 0.0))
            faults.note(remark, batch.file, number, row)
        self._encoding.check(pool)
        user = self._encoding.user(shared_features(context))
        micros = self._micros(decision.timestamp)
        if decision.index is not None and label != decision.index:
            faults.note(CONTRADICTION, batch.file, number, row)
        if decision.pdrop:
            faults.note(DROPPED, batch.file, number, row)
        batch.add(number, user, pool, at, payoff, propensity, micros, row)

    def _parse_slots(
        self,
        number: int,
        row: bytes,
        decision: LoggedDecision,
        context: dict[str, msgspec.Raw],
        batch: RowBatch,
        faults: Faults,
    ) -> None:
        """An event for each slot, once all of them are known to be events."""
        texts, slots = actions(context["_multi"]), parse_json(context["_slots"])
        if not isinstance(slots, list):
            raise NotAnEvent("_slots is not a list")
        labels = decision.slot_labels(slots)
        slot_of = [slot_number(parse_json(text)) for text in texts]
        one_cost = any(each is not None for each in slot_of)
        decided = slates(labels, slot_of, decision.cost) if one_cost else ccb(labels, len(texts))
        shared, micros = shared_features(context), self._micros(decision.timestamp)
        listed, own = [self._known[text] for text in texts], list(map(slot_features, slots))
        found, remarks = slot_events(decided, listed, self._encoding, shared, own)
        if one_cost:
            remarks.add(ONE_COST)
        if decision.pdrop:
            remarks.add(DROPPED)
        for text in sorted(remarks):
            faults.note(text, batch.file, number, row)
        for event in found:
            batch.add(number, *event, micros, row)

    def finish(self, batch: RowBatch) -> ParsedRows:
        """Users as vectors, and one article per description of an action."""
        found = list(batch.members())
        index = {action: i for i, action in enumerate(found)}
        users = self._encoding.users(batch.users)
        return batch.rows(users, description_table(found), index)

    def _pool(self, multi: bytes) -> MergedPool:
        known = self._known
        return merged_pool([known[text] for text in actions(multi)])

    def _action(self, text: bytes) -> ArticleDescription:
        key, features = id_and_features(parse_json(text), self._key)
        return ArticleDescription(key, self._encoding.article(features))

    def _micros(self, timestamp: datetime | None) -> int | None:
        if not self.first_event.setdefault("timed", timestamp is not None):
            return None
        if timestamp is None:
            raise NotAnEvent("there is no Timestamp, though lines before it have one")
        return parse_time(timestamp)
