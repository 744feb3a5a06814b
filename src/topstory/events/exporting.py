"""A log into the files of other tools (docs/exporting.md)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from os import PathLike
from pathlib import Path

from topstory.events.log import EventLog

# Format -> what it is for; the module of that name in `writers` has the function write_<format>.
EXPORTS = {
    "obp": "Open Bandit Pipeline: the bandit_feedback dictionary, as .npz",
    "dsjson": "Vowpal Wabbit: decision-service JSON lines",
    "jsonl": "plain layout: one JSON object a line, and the articles beside it",
    "r6a": "Yahoo! Today Module, version 1: text; gzipped if OUT ends in .gz",
}


def export(
    log: EventLog,
    to: str,
    out: str | PathLike[str],
    progress: Callable[[int], object] = lambda _: None,
) -> list[Path]:
    """Write the log for another tool; returns the files written, each whole or not at all.

    Args:
        log: the log.
        to: one of EXPORTS.
        out: the file; it is replaced if it exists.
        progress: told how many more events are done.

    >>> import numpy as np, tempfile
    >>> log = EventLog.from_arrays(np.ones((1, 1)), [["a", "b"]], [0], ["b"], [1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in export(log, "jsonl", f"{folder}/week.jsonl")]
    ['week.jsonl', 'week.articles.jsonl']
    """
    if to not in EXPORTS:
        raise ValueError(f"there is no export to {to!r}; there are {', '.join(EXPORTS)}")
    module = import_module(f"topstory.events.writers.{to}")
    write: Callable[..., list[Path]] = getattr(module, f"write_{to}")
    return write(log, Path(out), progress)
