"""Vowpal Wabbit's text format with action-dependent features, cb_adf (docs/importing.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from topstory.events.formats.faults import Faults, NoEvent
from topstory.events.formats.options import Settings
from topstory.events.formats.pipeline.descriptions import Action, table_of
from topstory.events.formats.pipeline.first_event import Shape
from topstory.events.formats.pipeline.line_parser import LineParser
from topstory.events.formats.pipeline.line_reader import LineReader
from topstory.events.formats.pipeline.lines import Block, line_end
from topstory.events.formats.pipeline.memo import Remembered
from topstory.events.formats.pipeline.row_batch import Gathering, pool_fault
from topstory.events.formats.pipeline.validation import Rows, outcome_fault
from topstory.events.formats.vw.encodings import HashEncoding
from topstory.events.formats.vw.named_features import Named, exactly, feature_id
from topstory.events.formats.vw.text_line import Label, VwLine, vw_line

MOST = 1 << 16  # lines of an example; in a file without blank lines they would fill the memory

Numbered = tuple[int, bytes]
Described = tuple[Action, Label | None]


class VwReader(LineReader):
    """Reads multi-line examples: a shared line, one line an action, and a blank line.

    >>> VwReader().name
    'vw'
    """

    name = "vw"
    about = "Vowpal Wabbit: text with action-dependent features (cb_adf)"
    options: Mapping[str, str] = {
        "dimensions": "length of the hashed vectors, the constant included (default 32)",
        "id": "what names an action: tag, hash (made of its features), or a feature such as "
        "Action^article (default: the tag, else hash)",
    }
    described = True

    def parser(self, options: Mapping[str, Any], shape: Shape) -> LineParser:
        """For the examples in which exactly one action has a label."""
        settings = Settings(self.name, options, self.options)
        encoding = HashEncoding(settings.whole("dimensions", 32, least=2))
        return _Examples(shape, encoding, settings.text("id"))

    def row_end(self, data: bytes) -> int:
        """After the last blank line; anywhere, if there are too many lines without one."""
        last = end = line_end(data)
        for _ in range(MOST + 1):
            begin = data.rfind(b"\n", 0, max(0, end - 1)) + 1
            if not data[begin:end].strip():
                return end
            end = begin
        return last


class _Examples(LineParser):
    def __init__(self, shape: Shape, encoding: HashEncoding, key: str | None) -> None:
        super().__init__(shape)
        self._encoding, self._key = encoding, key
        self._known = Remembered[Described | list[Named]](self._line)

    def rows(self, file: str, block: Block) -> Iterator[tuple[int, list[Numbered]]]:
        """The lines of each example, with their numbers."""
        example: list[Numbered] = []
        for number, line in enumerate(block.lines(), block.first):
            if line.strip():
                example.append((number, line))
            elif example:
                yield example[0][0], example
                example = []
            if len(example) > MOST:
                raise ValueError(
                    f"{file}:{example[0][0]}: more than {MOST} lines without a blank one; "
                    "a blank line ends each example of cb_adf"
                )
        if example:
            yield example[0][0], example

    def take(self, number: int, row: list[Numbered], gathering: Gathering, faults: Faults) -> None:
        """One example."""
        shared: list[Named] = []
        pool: list[Action] = []
        chosen: list[tuple[int, Label]] = []
        for line, text in row:
            try:
                # The first is the user, as a rule, who does not come again.
                found = self._line(text) if line == number else self._known[text]
                if isinstance(found, list):
                    if line != number:
                        raise NoEvent("a shared line is not the first of its example")
                    shared = found
                    continue
            except NoEvent as error:
                raise NoEvent(str(error), line, text) from None
            action, label = found
            if label is not None:
                chosen.append((len(pool), label))
            pool.append(action)
        fault = pool_fault([action.id for action in pool])
        if fault is not None:
            raise NoEvent(f"{fault} (each action needs a tag of its own)")
        if len(chosen) != 1:
            raise NoEvent("not exactly one action of the example has a label")
        [(at, (cost, probability))] = chosen
        fault = outcome_fault(at, len(pool), 0.0 - cost, probability)
        if fault is not None:
            raise NoEvent(fault)
        user = self._encoding.user(shared)
        gathering.add(number, user, tuple(pool), at, 0.0 - cost, probability, text=row[0][1])

    def finish(self, gathering: Gathering) -> Rows:
        """The users as vectors, and an article for each description of an action."""
        found = list(gathering.members())
        index = {action: i for i, action in enumerate(found)}
        users = self._encoding.users(gathering.users)
        return gathering.rows(users, table_of(found), index)

    def _line(self, text: bytes) -> Described | list[Named]:
        """An action and its label, or the features of a shared line."""
        line = vw_line(text.decode("utf-8", "surrogateescape"))
        if line.shared:
            return line.features
        return Action(self._id(line), self._encoding.article(line.features)), line.label

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
                return exactly(value)
        raise NoEvent(f"an action has no feature {self._key}, which was to be its id")
