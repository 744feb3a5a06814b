"""Parsing blocks of lines into events: the common part of line-based formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple

from topstory.events.formats.faults import Faults, NotAnEvent
from topstory.events.formats.pipeline.first_event import FirstEvent
from topstory.events.formats.pipeline.lines import LineBlock
from topstory.events.formats.pipeline.row_batch import RowBatch
from topstory.events.formats.pipeline.validation import ParsedRows, ValidEvents, validate


class ParsedBlock(NamedTuple):
    """The events and faults of a block."""

    events: ValidEvents | None  # None: no valid event
    faults: Faults


class LineParser(ABC):
    """Parses block after block.

    After the first event, a block's events depend on nothing but the block, so a parser in another
    process that knows the first event finds the same.
    """

    def __init__(self, first_event: FirstEvent) -> None:
        self.first_event = first_event

    def parse(self, file: str, block: LineBlock) -> ParsedBlock:
        """The events of a block, and the faults in it."""
        batch, faults = RowBatch(file), Faults()
        for number, row in self.rows(file, block):
            try:
                self.parse_row(number, row, batch, faults)
                self.first_event.keep()
            except NotAnEvent as error:
                self.first_event.drop()
                first = row if isinstance(row, bytes) else row[0][1]
                line, text = (number, first) if error.line is None else (error.line, error.text)
                batch.reject(line, str(error), text)
        return ParsedBlock(validate(self.finish(batch), faults), faults)

    def rows(self, file: str, block: LineBlock) -> Iterable[tuple[int, Any]]:
        """Candidate events, each with the number of its first line: all lines but blank ones.

        A row is a line, or a list of numbered lines.
        """
        for number, line in enumerate(block.lines(), block.first):
            if line and not line.isspace():
                yield number, line

    @abstractmethod
    def parse_row(self, number: int, row: Any, batch: RowBatch, faults: Faults) -> None:
        """Add one event to the batch; raises NotAnEvent if the row is not one."""

    @abstractmethod
    def finish(self, batch: RowBatch) -> ParsedRows:
        """The batch as rows to be validated."""
