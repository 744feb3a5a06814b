"""Exporting a log to the formats of other tools (docs/guides/exporting.md)."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from topstory.events.formats.registry import writer
from topstory.events.log import EventLog


def export_log(
    log: EventLog,
    to: str,
    out: str | PathLike[str],
    progress: Callable[[int], object] = lambda _: None,
) -> list[Path]:
    """Write the log for another tool, all or nothing; returns the files written.

    Args:
        log: the log.
        to: one of the formats that have a writer.
        out: the file; it is replaced if it exists.
        progress: called with the number of events done since the last call.

    >>> import numpy as np, tempfile
    >>> log = EventLog.from_arrays(np.ones((1, 1)), [["a", "b"]], [0], ["b"], [1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in export_log(log, "jsonl", f"{folder}/week.jsonl")]
    ['week.jsonl', 'week.articles.jsonl']
    """
    return writer(to)(log, Path(out), progress)


export = export_log  # its name in 0.1
