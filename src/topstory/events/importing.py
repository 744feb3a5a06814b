"""Other people's logs into ours: read in bounded memory, written whole or not at all."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from os import PathLike, fspath
from pathlib import Path
from time import perf_counter
from typing import Any, overload

import msgspec

from topstory.events.appending import Appender
from topstory.events.folder import check_replaceable
from topstory.events.log import EventLog
from topstory.events.readers import FORMATS as FORMATS
from topstory.events.readers import Fault, Faults, reader
from topstory.events.replacing import replacing

MAX_BAD = 0.01
HOPELESS = 200_000  # bad rows more than good ones: it is another format

CHANGED = "an article's features differ from those it had before: the first were kept"
DISORDER = "older than the end of the file before: files are not in time order"

Paths = str | PathLike[str] | Iterable[str | PathLike[str]]


class ImportReport(msgspec.Struct, frozen=True):
    """What an import read, and what it skipped."""

    format: str
    files: tuple[str, ...]
    events: int  # imported
    rows: int  # read: the events, the rows skipped and those left out
    skipped: dict[str, int]  # why -> how many bad rows
    left_out: dict[str, int]  # why -> how many rows that are not bad, but not wanted
    noted: dict[str, int]  # what was remarkable about events that were kept -> how many
    first: dict[str, Fault]  # of each of these, where it was first seen
    bytes: int  # of the files
    seconds: float

    @property
    def bad(self) -> float:
        """The share of bad rows."""
        return sum(self.skipped.values()) / self.rows if self.rows else 0.0


def import_log(
    format: str,
    files: Paths,
    out: str | PathLike[str],
    *,
    strict: bool = False,
    max_bad: float = MAX_BAD,
    progress: Callable[[int], object] | None = None,
    **options: Any,
) -> ImportReport:
    r"""Turn files of another format into the folder of a log (docs/importing.md).

    Args:
        format: one of FORMATS.
        files: read in this order; a pattern such as "logs/*.gz" stands for its files, sorted
            by name, day2 before day10.
        out: the folder; it is there whole or not at all, and replaces a log that is there.
        strict: the first bad row is an error.
        max_bad: a larger share of bad rows is an error.
        progress: called with the number of bytes that have been read since the last call.
        options: what the format's reader takes besides.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as room:
    ...     file = Path(room, "day1.txt")
    ...     _ = file.write_text("1317513291 id-2 1 |user 1 11 13 |id-1 |id-2\n")
    ...     report = import_log("r6b", file, Path(room, "log"))
    >>> report.events, report.skipped
    (1, {})
    """
    source = reader(format)
    if not 0 <= max_bad <= 1:
        raise ValueError(f"max_bad is a share of the rows, 0 to 1, got {max_bad!r}")
    if unknown := set(options) - set(source.options):
        takes = ", ".join(source.options) or "none"
        raise ValueError(f"{format} has no option {sorted(unknown)[0]!r}; its options: {takes}")
    paths = find_files(files)
    order = _Order(paths, faults := Faults(strict))
    began, events = perf_counter(), 0

    def follow(read: int) -> None:
        if progress is not None:
            progress(read)
        if max_bad < 0.5 and faults.bad > events + faults.omitted + HOPELESS:
            raise ValueError(_too_many(faults, events, format, max_bad))

    with replacing(Path(out), check_replaceable) as fresh, Appender(fresh) as appender:
        # Ignored: an Iterator by its type; every reader is a generator, which closes.
        with closing(source.read(order, faults, follow, **options)) as batches:  # type: ignore[type-var]
            for batch in batches:
                order.follow(batch)
                appender.append(batch)
                events += len(batch)
        rows = events + faults.bad + faults.omitted
        if faults.bad > max_bad * rows:
            raise ValueError(_too_many(faults, events, format, max_bad))
        if not events:
            names = ", ".join(map(str, paths[:3])) + (", …" if len(paths) > 3 else "")
            raise ValueError(f"{names}: there are no events in it; nothing was written")
        for key, count in appender.articles.changed.items():
            faults.note(CHANGED, str(paths[0]), 0, key, count)
        appender.finish()
    return ImportReport(
        format=format,
        files=tuple(map(str, paths)),
        events=events,
        rows=rows,
        skipped=faults.counts,
        left_out=faults.omissions,
        noted=faults.notes,
        first=faults.first,
        bytes=sum(path.stat().st_size for path in paths),
        seconds=perf_counter() - began,
    )


def find_files(files: Paths) -> list[Path]:
    """The files that are meant, patterns resolved, or an error that names what is not there.

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
            raise FileNotFoundError(
                f"{name}: it is a folder; name its files"
                if Path(name).is_dir()
                else f"{name}: there is no such file"
            )
    if not paths:
        raise ValueError("there is nothing to import: name at least one file")
    return paths


def _natural(name: str) -> tuple[list[str | int], str]:
    """Sorts runs of digits as numbers: day2 before day10."""
    parts = re.split(r"([0-9]+)", name)  # texts and digits take turns
    return [int(part) if i % 2 else part for i, part in enumerate(parts)], name


class _Order(Sequence[Path]):
    """The files as a reader goes through them, and whether their events are in order.

    A reader that yields the events of a file before it takes the next from its sequence of files
    lets this know which file a batch is of. Those of r6a and r6b go on from file to file in one
    batch, so that the order of their files is not seen.
    """

    def __init__(self, paths: Sequence[Path], faults: Faults) -> None:
        self._paths, self._faults = paths, faults
        self._at = self._file = 0  # the number of the file being read, and of the last batch's
        self._begun = self._early = False
        self._last = self._end = 0  # microseconds: of the last event; of the last file's last

    def __len__(self) -> int:
        return len(self._paths)

    @overload
    def __getitem__(self, at: int) -> Path: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Path]: ...
    def __getitem__(self, at: int | slice) -> Path | Sequence[Path]:
        return self._paths[at]

    def __iter__(self) -> Iterator[Path]:
        for at, path in enumerate(self._paths):
            self._at = at
            yield path

    def follow(self, batch: EventLog) -> None:
        """Note the events of a file that begins before the file before it ended."""
        if batch.times is None:
            return
        micros = batch.times.microseconds()
        if self._begun and self._at != self._file:
            self._end = self._last
            self._early = bool(micros[0] < self._end)
        self._begun, self._file, self._last = True, self._at, int(micros[-1])
        if self._early:
            earlier = int((micros < self._end).sum())
            if earlier:
                self._faults.note(DISORDER, str(self._paths[self._at]), 0, count=earlier)


def _too_many(faults: Faults, events: int, format: str, max_bad: float) -> str:
    bad, rows = faults.bad, events + faults.bad + faults.omitted
    reason, count = max(faults.counts.items(), key=lambda item: item[1])
    first = faults.first[reason]
    return (
        f"{bad:,} of {rows:,} rows are bad ({bad / rows:.1%}, more than {max_bad:.1%}): "
        f"{count:,} times {reason}, first at {first.file}:{first.line}: {first.text!r}; "
        f"nothing was written: see that it is {format}, or allow more bad rows (max_bad)"
    )
