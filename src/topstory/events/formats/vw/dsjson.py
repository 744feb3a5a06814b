"""Vowpal Wabbit's decision-service JSON: one event a line (docs/importing.md)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from topstory.events.columns.times import moment
from topstory.events.formats.faults import Faults, NoEvent
from topstory.events.formats.options import Settings
from topstory.events.formats.pipeline.descriptions import Action, table_of
from topstory.events.formats.pipeline.first_event import Shape
from topstory.events.formats.pipeline.line_parser import LineParser
from topstory.events.formats.pipeline.line_reader import LineReader
from topstory.events.formats.pipeline.memo import Remembered
from topstory.events.formats.pipeline.row_batch import Gathering, pool_fault
from topstory.events.formats.pipeline.validation import Rows, outcome_fault
from topstory.events.formats.vw.dsjson_decision import (
    actions,
    decode,
    described,
    parsed,
    shared_features,
)
from topstory.events.formats.vw.encodings import ArrayEncoding, Encoding, HashEncoding

SKIPPED = "_skipLearn is true"
DROPPED = "pdrop: others like it were dropped at random, and nothing makes up for them"


class DsjsonReader(LineReader):
    """Reads the lines that Vowpal Wabbit reads with `--dsjson`.

    >>> DsjsonReader().name
    'dsjson'
    """

    name = "dsjson"
    about = "Vowpal Wabbit: decision-service JSON lines"
    options: Mapping[str, str] = {
        "dimensions": "length of the hashed vectors, the constant included (default 32)",
        "features": "hash (default), or arrays: the arrays of numbers are the vectors",
        "id": "where an action's id is, such as i.id; hash makes one of its features "
        "(default: id, i.id or _tag, else hash)",
    }
    described = True

    def parser(self, options: Mapping[str, Any], shape: Shape) -> LineParser:
        """For the events whose action, cost and probability are known."""
        settings = Settings(self.name, options, self.options)
        encoding: Encoding = HashEncoding(settings.whole("dimensions", 32, least=2))
        if settings.choice("features", "hash", "arrays") == "arrays":
            encoding = ArrayEncoding(shape)
        key = settings.text("id")
        return _Lines(shape, encoding, None if key is None else tuple(key.split(".")))


class _Lines(LineParser):
    def __init__(self, shape: Shape, encoding: Encoding, key: tuple[str, ...] | None) -> None:
        super().__init__(shape)
        self._encoding, self._key = encoding, key
        # Lists of actions repeat from line to line; where they do not, the actions in them do.
        self._pools = Remembered[tuple[Action, ...]](self._pool)
        self._known = Remembered[Action](self._action)

    def take(self, number: int, row: bytes, gathering: Gathering, faults: Faults) -> None:
        """One line."""
        decision, context = decode(row)
        if decision.skip:
            faults.left_out(SKIPPED, gathering.file, number, row)
            return
        at, payoff, propensity = decision.at(), decision.payoff(), decision.propensity()
        pool = self._pools[bytes(context["_multi"])]
        fault = outcome_fault(at, len(pool), payoff, propensity)
        if fault is not None:
            raise NoEvent(fault)
        self._encoding.check(pool)
        user = self._encoding.user(shared_features(context))
        micros = self._micros(decision.timestamp)
        if decision.pdrop:
            faults.note(DROPPED, gathering.file, number, row)
        gathering.add(number, user, pool, at, payoff, propensity, micros, row)

    def finish(self, gathering: Gathering) -> Rows:
        """The users as vectors, and an article for each description of an action."""
        found = list(gathering.members())
        index = {action: i for i, action in enumerate(found)}
        users = self._encoding.users(gathering.users)
        return gathering.rows(users, table_of(found), index)

    def _pool(self, multi: bytes) -> tuple[Action, ...]:
        known = self._known
        pool = tuple([known[text] for text in actions(multi)])
        fault = pool_fault([action.id for action in pool])
        if fault is not None:
            raise NoEvent(f"{fault} (each action needs an id of its own)")
        return pool

    def _action(self, text: bytes) -> Action:
        key, features = described(parsed(text), self._key)
        return Action(key, self._encoding.article(features))

    def _micros(self, timestamp: datetime | None) -> int | None:
        if not self.shape.first("timed", timestamp is not None):
            return None
        if timestamp is None:
            raise NoEvent("there is no Timestamp, though lines before it have one")
        return moment(timestamp)
