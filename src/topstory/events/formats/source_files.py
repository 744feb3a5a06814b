"""The files of a log of another format: which they are, and whether they are in time order."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from topstory.events.columns.times import LATEST
from topstory.events.formats.faults import Faults
from topstory.events.log import EventLog

SORTED = "an event was older than one before it: the log was put in time order"
UNORDERED_FILES = "older than the end of the file before: files are not in time order"

Paths = str | PathLike[str] | Iterable[str | PathLike[str]]


def find_files(files: Paths) -> list[Path]:
    """The files, with patterns resolved; the error names a file that does not exist.

    >>> find_files("none.gz")
    Traceback (most recent call last):
    ...
    FileNotFoundError: none.gz: there is no such file
    """
    given = [files] if isinstance(files, str | PathLike) else list(files)
    paths: list[Path] = []
    for name in [fspath(each) for each in given]:
        if Path(name).is_file():
            paths.append(Path(name))
        elif matching := sorted(glob.glob(name), key=_natural) if glob.has_magic(name) else []:
            paths += [Path(match) for match in matching if Path(match).is_file()]
        else:
            reason = "there is no such file"
            if Path(name).is_dir():
                reason = "it is a folder; name its files"
            elif Path(name).exists():  # read twice, or from the end: a pipe will not do
                reason = "it is not a regular file; write what it holds to one, gzipped or not"
            raise FileNotFoundError(f"{name}: {reason}")
    if not paths:
        raise ValueError("there is nothing to import: name at least one file")
    return paths


def _natural(name: str) -> tuple[list[str | int], str]:
    """Sorts runs of digits as numbers: day2 before day10."""
    parts = re.split(r"([0-9]+)", name)  # text and digits alternate
    return [int(part) if i % 2 else part for i, part in enumerate(parts)], name


class FileOrder:
    """Notes events that are older than the end of the file before theirs, or than any before."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._file: Path | None = None
        self._early = False
        self.ascending, self._latest = True, -LATEST
        self._last = self._end = 0  # microseconds: of the last event; of the last file's last

    def follow(self, path: Path, batch: EventLog) -> None:
        """Check the next batch of events."""
        if batch.times is None:
            return
        micros = batch.times.microseconds()
        self.ascending &= int(micros[0]) >= self._latest and bool((np.diff(micros) >= 0).all())
        self._latest = max(self._latest, int(micros.max()))
        if self._file is not path:  # not the same object: a file may be given twice
            self._end = self._last
            self._early = self._file is not None and bool(micros[0] < self._end)
        self._file, self._last = path, int(micros[-1])
        if self._early:
            earlier = int((micros < self._end).sum())
            if earlier:
                self._faults.note(UNORDERED_FILES, str(path), 0, count=earlier)


def sort_by_time(folder: Path, faults: Faults, file: str) -> None:
    """Write the log again in time order; events of one time stay in order."""
    log = EventLog.read(folder)
    assert log.times is not None
    micros = log.times.microseconds()
    late = int((micros < np.maximum.accumulate(micros)).sum())
    faults.forget(UNORDERED_FILES)
    faults.note(SORTED, file, 0, count=late)
    log[np.argsort(micros, kind="stable")].write(folder)
