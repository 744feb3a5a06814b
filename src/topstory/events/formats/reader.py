"""The interface of a reader of another log format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from topstory.events.formats.faults import Faults
from topstory.events.log import EventLog

Progress = Callable[[int], object]

MAX_BATCH_EVENTS = 1 << 17  # events in a batch, at most: some megabytes


class FormatReader(Protocol):
    """Turns the files of one format into batches of events."""

    name: str  # what `topstory import` calls the format
    options: Mapping[str, str]  # further options of `read`: name -> help
    parallel: bool  # whether other processes make it faster

    def read(
        self,
        files: Sequence[Path],
        faults: Faults,
        progress: Progress,
        workers: int = 1,
        **options: Any,
    ) -> Iterator[tuple[Path, EventLog]]:
        """Batches of valid events and the file they are from, in the order of the files.

        Each batch has its own pools and articles, and some megabytes of events at most; all
        batches have the same context dimension, are all timed or all untimed. A row that cannot be
        an event goes to `faults.add`; one that is kept with a remark, to `faults.note`.
        `progress(n)` is called when n more bytes of the files, as they are on disk, have been
        consumed. With more than one worker, a `parallel` reader parses in other processes; the
        batches are the same. Option values from the command line are strings. A problem with a
        whole file, or with an option, is a ValueError or an OSError that names it.
        """
        ...
