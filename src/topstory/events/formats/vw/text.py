"""Vowpal Wabbit's text formats: cb_adf, ccb and slates (docs/guides/importing.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from topstory.events.formats.faults import Faults, NotAnEvent
from topstory.events.formats.options import ReaderOptions
from topstory.events.formats.pipeline.descriptions import ArticleDescription, description_table
from topstory.events.formats.pipeline.first_event import FirstEvent
from topstory.events.formats.pipeline.line_parser import LineParser
from topstory.events.formats.pipeline.line_reader import LineReader
from topstory.events.formats.pipeline.lines import LineBlock, line_end
from topstory.events.formats.pipeline.memo import Memo
from topstory.events.formats.pipeline.row_batch import RowBatch
from topstory.events.formats.pipeline.validation import ParsedRows, outcome_fault
from topstory.events.formats.vw.encodings import HashEncoding
from topstory.events.formats.vw.identical_actions import (
    MERGED,
    MERGED_UNKNOWN,
    copies,
    merged_pool,
)
from topstory.events.formats.vw.named_features import Named, feature_id, shortest_text
from topstory.events.formats.vw.slots import (
    ONE_COST,
    SlotLabel,
    ccb,
    slates,
    slot_events,
)
from topstory.events.formats.vw.text_line import Label, VwLine, vw_line

MAX_EXAMPLE_LINES = 1 << 16  # a file without blank lines would fill the memory

NumberedLine = tuple[int, bytes]
LabelledAction = tuple[ArticleDescription, Label | None]


class VwReader(LineReader):
    """Reads multi-line examples: a shared line, one line an action, and a blank line.

    >>> VwReader().name
    'vw'
    """

    name = "vw"
    options: Mapping[str, str] = {
        "dimensions": "length of the hashed vectors, the constant included (default 32)",
        "id": "what names an action: tag, hash (made of its features), or a feature such as "
        "Action^article (default: the tag, else hash)",
    }
    described = True

    def parser(self, options: Mapping[str, Any], first_event: FirstEvent) -> LineParser:
        """A parser of examples in which exactly one action has a label."""
        chosen = ReaderOptions(self.name, options, self.options)
        encoding = HashEncoding(chosen.whole("dimensions", 32, least=2))
        return _ExampleParser(first_event, encoding, chosen.text("id"))

    def row_end(self, data: bytes) -> int:
        """After the last blank line; after any line if there are too many without a blank one."""
        last = end = line_end(data)
        for _ in range(MAX_EXAMPLE_LINES + 1):
            begin = data.rfind(b"\n", 0, max(0, end - 1)) + 1
            if not data[begin:end].strip():
                return end
            end = begin
        return last


class _ExampleParser(LineParser):
    def __init__(self, first_event: FirstEvent, encoding: HashEncoding, key: str | None) -> None:
        super().__init__(first_event)
        self._encoding, self._key = encoding, key
        self._known = Memo[LabelledAction | list[Named]](self._line)
        self._actions = Memo[ArticleDescription](self._action)

    def rows(self, file: str, block: LineBlock) -> Iterator[tuple[int, list[NumberedLine]]]:
        """The lines of each example, with their numbers."""
        example: list[NumberedLine] = []
        for number, line in enumerate(block.lines(), block.first):
            if line.strip():
                example.append((number, line))
            elif example:
                yield example[0][0], example
                example = []
            if len(example) > MAX_EXAMPLE_LINES:
                raise ValueError(
                    f"{file}:{example[0][0]}: more than {MAX_EXAMPLE_LINES} lines without a "
                    "blank one; a blank line ends each example of cb_adf"
                )
        if example:
            yield example[0][0], example

    def parse_row(
        self, number: int, row: list[NumberedLine], batch: RowBatch, faults: Faults
    ) -> None:
        """One example."""
        if row[0][1].split(None, 1)[0] in (b"ccb", b"slates"):
            self._parse_slots(number, row, batch, faults)
            return
        shared: list[Named] = []
        pool: list[ArticleDescription] = []
        chosen: list[tuple[int, Label]] = []
        for line, text in row:
            try:
                # The first line is usually the user, who rarely repeats.
                found = self._line(text) if line == number else self._known[text]
                if isinstance(found, list):
                    if line != number:
                        raise NotAnEvent("a shared line is not the first of its example")
                    shared = found
                    continue
            except NotAnEvent as error:
                raise NotAnEvent(str(error), line, text) from None
            action, label = found
            if label is not None:
                chosen.append((len(pool), label))
            pool.append(action)
        actions, places = merged_pool(pool)
        if len(chosen) != 1:
            raise NotAnEvent("not exactly one action of the example has a label")
        [(at, (cost, probability))] = chosen
        fault = outcome_fault(at, len(pool), 0.0 - cost, probability)
        if fault is not None:
            raise NotAnEvent(fault)
        user = self._encoding.user(shared)
        if len(actions) < len(pool):
            remark = MERGED_UNKNOWN if copies(places, at) else MERGED
            faults.note(remark, batch.file, number, row[0][1])
        batch.add(number, user, actions, places[at], 0.0 - cost, probability, text=row[0][1])

    def _parse_slots(
        self, number: int, row: list[NumberedLine], batch: RowBatch, faults: Faults
    ) -> None:
        """An event for each slot, once all of them are known to be events."""
        shared: list[Named] = []
        cost: float | None = None
        pool: list[ArticleDescription] = []
        slot_of: list[int | None] = []
        slots: list[tuple[SlotLabel | None, list[Named]]] = []
        first = row[0][1]
        name = first.split(None, 1)[0]
        for line, text in row:
            if text.split(None, 1)[0] != name:
                raise NotAnEvent(f"a line of the example does not begin with {name.decode()}")
            try:
                found = vw_line(text.decode("utf-8", "surrogateescape"))
                part = found.part
                if part is None or (part.kind == "shared") != (line == number):
                    raise NotAnEvent("a shared line is not the first of its example")
                if part.kind == "shared":
                    shared, cost = found.features, part.cost
                elif part.kind == "action":
                    pool.append(self._actions[text])
                    slot_of.append(part.slot)
                else:
                    slots.append((part.label, found.features))
            except NotAnEvent as error:
                raise NotAnEvent(str(error), line, text) from None
        labels = [label for label, _ in slots]
        one_cost = name == b"slates"
        decided = slates(labels, slot_of, cost) if one_cost else ccb(labels, len(pool))
        own = [features for _, features in slots]
        events, remarks = slot_events(decided, pool, self._encoding, shared, own)
        if one_cost:
            remarks.add(ONE_COST)
        for text_of in sorted(remarks):
            faults.note(text_of, batch.file, number, first)
        for event in events:
            batch.add(number, *event, text=first)

    def finish(self, batch: RowBatch) -> ParsedRows:
        """Users as vectors, and one article per description of an action."""
        found = list(batch.members())
        index = {action: i for i, action in enumerate(found)}
        users = self._encoding.users(batch.users)
        return batch.rows(users, description_table(found), index)

    def _line(self, text: bytes) -> LabelledAction | list[Named]:
        """An action and its label, or the features of a shared line."""
        line = vw_line(text.decode("utf-8", "surrogateescape"))
        if line.shared:
            return line.features
        return ArticleDescription(self._id(line), self._encoding.article(line.features)), line.label

    def _action(self, text: bytes) -> ArticleDescription:
        line = vw_line(text.decode("utf-8", "surrogateescape"))
        return ArticleDescription(self._id(line), self._encoding.article(line.features))

    def _id(self, line: VwLine) -> str:
        if self._key == "hash" or (self._key is None and not line.tag):
            return feature_id(line.features)
        if self._key in (None, "tag"):
            return line.tag
        own = f"{self._key}="
        for name, value in line.features:
            if name.startswith(own):
                return name.removeprefix(own)
            if name == self._key:
                return shortest_text(value)
        raise NotAnEvent(f"an action has no feature {self._key}, which was to be its id")
