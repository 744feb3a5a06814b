"""Readers of line-based formats: files in blocks, parsed here or in other processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from topstory.events.formats.faults import Faults
from topstory.events.formats.pipeline.descriptions import FirstDescriptions
from topstory.events.formats.pipeline.first_event import FirstEvent
from topstory.events.formats.pipeline.line_parser import LineParser, ParsedBlock
from topstory.events.formats.pipeline.lines import line_blocks, line_end
from topstory.events.formats.pipeline.processes import ParserProcesses, Task
from topstory.events.formats.reader import Progress
from topstory.events.log import EventLog


class LineReader(ABC):
    """A `FormatReader` whose rows are a line each, or a few lines."""

    name: str
    options: Mapping[str, str]
    parallel = True
    described = False  # whether each row describes its articles, and so may contradict others

    def read(
        self,
        files: Sequence[Path],
        faults: Faults,
        progress: Progress,
        workers: int = 1,
        **options: Any,
    ) -> Iterator[tuple[Path, EventLog]]:
        """`FormatReader.read`."""
        descriptions = FirstDescriptions()
        with closing(self._parsed(files, progress, workers, options, faults.intact)) as found:
            for path, (events, others) in found:
                faults.merge(others)
                if events is not None:
                    settled = (
                        descriptions.settle(events, str(path), faults) if self.described else None
                    )
                    yield path, settled or events.log

    @abstractmethod
    def parser(self, options: Mapping[str, Any], first_event: FirstEvent) -> LineParser:
        """A parser; ValueError if an option is wrong."""

    def row_end(self, data: bytes) -> int:
        """Where the last complete row of some text ends; 0 if there is none."""
        return line_end(data)

    def _parsed(
        self,
        files: Sequence[Path],
        progress: Progress,
        workers: int,
        options: Mapping[str, Any],
        intact: Mapping[str, int],
    ) -> Generator[tuple[Path, ParsedBlock], None, None]:
        """The parsed blocks in order, whichever process parsed them."""
        parser = self.parser(options, FirstEvent())
        with closing(self._tasks(files, progress, intact)) as tasks:
            for path, task in tasks:
                parsed = task if isinstance(task, ParsedBlock) else parser.parse(str(path), task)
                yield path, parsed
                if workers > 1 and parsed.events is not None:
                    break  # the first event is known: other processes can start
            else:
                return
            make = partial(self.parser, options, parser.first_event)
            with ParserProcesses(workers, make) as processes:
                yield from processes.parse(tasks)

    def _tasks(
        self, files: Sequence[Path], progress: Progress, intact: Mapping[str, int]
    ) -> Generator[Task, None, None]:
        for path in files:
            damage = Faults(intact=intact)
            for block in line_blocks(path, damage, progress, self.row_end):
                yield path, block
            if damage.bad:
                yield path, ParsedBlock(None, damage)
