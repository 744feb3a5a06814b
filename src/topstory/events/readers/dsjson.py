"""Vowpal Wabbit's decision-service JSON: one event a line (docs/importing.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from topstory.events.log import EventLog
from topstory.events.readers.actions import CHANGED, Actions
from topstory.events.readers.decision import NoEvent, decode, described, parsed, shared_features
from topstory.events.readers.encodings import ArrayEncoding, Encoding, HashEncoding, Unfit
from topstory.events.readers.faults import Faults
from topstory.events.readers.gathering import NOWHERE, Gathering, Pool, pool_fault
from topstory.events.readers.lines import line_blocks
from topstory.events.readers.named_features import Named
from topstory.events.readers.reader import Progress
from topstory.events.readers.settings import Settings
from topstory.events.readers.sifting import sift
from topstory.events.times import moment

SKIPPED = "_skipLearn is true"
DROPPED = "pdrop: others like it were dropped at random, and nothing makes up for them"
REMEMBERED = 1 << 14  # lists of actions that are kept at hand

Changed = str | None  # the first action of a pool that has other features than before


class DsjsonReader:
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

    def read(
        self, files: Sequence[Path], faults: Faults, progress: Progress, **options: Any
    ) -> Iterator[EventLog]:
        """The events whose action, cost and probability are known."""
        settings = Settings(self.name, options, self.options)
        encoding: Encoding = HashEncoding(settings.whole("dimensions", 32, least=2))
        if settings.choice("features", "hash", "arrays") == "arrays":
            encoding = ArrayEncoding()
        key = settings.text("id")
        lines = _Lines(encoding, faults, None if key is None else tuple(key.split(".")))
        for path in files:
            gathering = Gathering(str(path))
            for block in line_blocks(path, faults, progress):
                for number, line in enumerate(block.lines(), block.first):
                    lines.take(number, line, gathering)
                    if gathering.full:
                        yield from lines.finish(gathering)
                        gathering = Gathering(str(path))
            yield from lines.finish(gathering)


class _Lines:
    """Takes in line after line, and remembers the actions."""

    def __init__(self, encoding: Encoding, faults: Faults, key: tuple[str, ...] | None) -> None:
        self._encoding, self._faults, self._key = encoding, faults, key
        self._actions = Actions(encoding)
        self._pools: dict[bytes, tuple[Pool, Changed]] = {}
        self._timed: bool | None = None

    def take(self, number: int, line: bytes, gathering: Gathering) -> None:
        """One line: an event, a refusal, or nothing."""
        if not line.strip():
            return
        try:
            decision, context = decode(line)
            if decision.skip:
                self._faults.left_out(SKIPPED, gathering.file, number, line)
                return
            at = decision.at()
            payoff, propensity = decision.payoff(), decision.propensity()
            multi = bytes(context["_multi"])  # the same bytes are the same actions
            named = None if multi in self._pools else self._named(multi)
            user = self._encoding.user(shared_features(context))
            micros = self._micros(decision.timestamp)
            # Last: an action keeps the features it is first met with, so the event must be good.
            pool, changed = self._pools[multi] if named is None else self._meet(multi, named)
        except (NoEvent, Unfit) as error:
            gathering.refuse(number, str(error), line)
            return
        if changed is not None:
            self._faults.note(CHANGED, gathering.file, number, changed)
        if decision.pdrop:
            self._faults.note(DROPPED, gathering.file, number, line)
        place = at if 0 <= at < len(pool) else NOWHERE
        gathering.add(number, user, pool, place, payoff, propensity, micros, line)

    def finish(self, gathering: Gathering) -> Iterator[EventLog]:
        """The good events."""
        users = np.empty((0, 1), np.float32)  # when there are but refusals to tell
        if gathering.users:
            users = self._encoding.users(gathering.users)
        log = sift(gathering.rows(users, self._actions.table(gathering.pools)), self._faults)
        if log is not None:
            yield log

    def _named(self, multi: bytes) -> list[tuple[str, list[Named]]]:
        """The ids of the actions and their features."""
        actions = parsed(multi)
        if not isinstance(actions, list):
            raise NoEvent("_multi is not a list of actions")
        named = [described(action, self._key) for action in actions]
        fault = pool_fault([key for key, _ in named])
        if fault is not None:
            raise NoEvent(f"{fault} (each action needs an id of its own)")
        return named

    def _meet(self, multi: bytes, named: list[tuple[str, list[Named]]]) -> tuple[Pool, Changed]:
        """The pool, once its actions are remembered; raises Unfit."""
        changed = [key for key, features in named if not self._actions.meet(key, features)]
        if len(self._pools) >= REMEMBERED:
            self._pools.clear()
        found = tuple(key for key, _ in named), changed[0] if changed else None
        self._pools[multi] = found
        return found

    def _micros(self, timestamp: datetime | None) -> int | None:
        if self._timed is None:
            self._timed = timestamp is not None
        if not self._timed:
            return None
        if timestamp is None:
            raise NoEvent("there is no Timestamp, though lines before it have one")
        return moment(timestamp)


READERS = (DsjsonReader(),)
