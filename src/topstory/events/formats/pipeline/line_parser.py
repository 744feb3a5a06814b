"""Blocks of lines into events: what readers of one event a line, or a few, have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple

from topstory.events.formats.faults import Faults, NoEvent
from topstory.events.formats.pipeline.first_event import Shape
from topstory.events.formats.pipeline.lines import Block
from topstory.events.formats.pipeline.row_batch import Gathering
from topstory.events.formats.pipeline.validation import Rows, Sifted, sift


class Parsed(NamedTuple):
    """A block, parsed."""

    events: Sifted | None  # None: there are none
    faults: Faults


class LineParser(ABC):
    """Parses block after block.

    Once there was an event, its shape is decided, and a block's events depend on nothing but the
    block: then another process's parser of the same shape finds the same.
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def parse(self, file: str, block: Block) -> Parsed:
        """The events of a block, and the faults in it."""
        gathering, faults = Gathering(file), Faults()
        for number, row in self.rows(file, block):
            try:
                self.take(number, row, gathering, faults)
                self.shape.keep()
            except NoEvent as error:
                self.shape.drop()
                first = row if isinstance(row, bytes) else row[0][1]
                line, text = (number, first) if error.line is None else (error.line, error.text)
                gathering.refuse(line, str(error), text)
        return Parsed(sift(self.finish(gathering), faults), faults)

    def rows(self, file: str, block: Block) -> Iterable[tuple[int, Any]]:
        """What may be an event each, with the number of its first line: the lines, but blank ones.

        A row is a line, or a list of numbered lines.
        """
        for number, line in enumerate(block.lines(), block.first):
            if line and not line.isspace():
                yield number, line

    @abstractmethod
    def take(self, number: int, row: Any, gathering: Gathering, faults: Faults) -> None:
        """Gather one event; raises NoEvent if it is none."""

    @abstractmethod
    def finish(self, gathering: Gathering) -> Rows:
        """What was gathered, to be sifted."""
