"""Importing logs of other formats: in bounded memory, all or nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec

from topstory.events.folder.append import Appender
from topstory.events.folder.contents import check_replaceable
from topstory.events.formats.damage import check_loss, lost_bytes, total_bytes
from topstory.events.formats.faults import (
    BLANK_PROPENSITY,
    CHANGED_FEATURES,
    Fault,
    Faults,
)
from topstory.events.formats.mapped.reader import MappedReader, is_mapped
from topstory.events.formats.pipeline.sources import DamagedFile
from topstory.events.formats.reader import FormatReader
from topstory.events.formats.registry import reader
from topstory.events.formats.source_files import FileOrder, Paths, find_files, sort_by_time
from topstory.files import replaced_folder

MAX_BAD_SHARE = 0.01
# Smaller imports do not start worker processes, which takes a second: on two cores 80 MB of dsjson
# gained nothing, 490 MB were read 1.7 times as fast.
MIN_PARALLEL_BYTES = 1 << 27
MAX_WORKERS = 4  # this process merges and writes what they parse, and cannot keep up with more
MAX_EXCESS_BAD_ROWS = 200_000  # more bad rows than good ones by this many: it is another format
MAX_BAD_ROWS_ALIKE = 1_000  # rows before any event, all bad for one reason: so will the others be


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
    lost_bytes: int = 0  # of damaged files, which could not be trusted

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
    max_bad: float = MAX_BAD_SHARE,
    workers: int | None = 1,
    progress: Callable[[int], object] | None = None,
    **options: Any,
) -> ImportReport:
    r"""Turn files of another format into the folder of a log (docs/guides/importing.md).

    Args:
        format: one of the formats that have a reader.
        files: read in this order; a pattern such as "logs/*.gz" stands for its files, sorted
            by name, day2 before day10.
        out: the folder; written all or nothing. An existing log is replaced.
        strict: the first bad row is an error.
        max_bad: a larger share of bad rows is an error, or of bytes in damaged files.
        workers: processes that parse dsjson, vw and jsonl besides this one, if more than 1; the
            log is the same. None: as many as help. They are spawned, so a script that asks for
            them must start its work under `if __name__ == "__main__":`.
        progress: called with the number of bytes that have been read since the last call.
        options: further options of the format's reader. csv, jsonl and parquet take a mapping of
            any columns: `map=` a TOML file or a dict, and its settings one by one, such as
            `shown="item"` (docs/guides/your-data.md).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as room:
    ...     file = Path(room, "day1.txt")
    ...     _ = file.write_text("1317513291 id-2 1 |user 1 11 13 |id-1 |id-2\n")
    ...     report = import_log("r6b", file, Path(room, "log"))
    >>> report.events, report.skipped
    (1, {})
    """
    source = _source(format, options)
    if not 0 <= max_bad <= 1:
        raise ValueError(f"max_bad is a share of the rows, 0 to 1, got {max_bad!r}")
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers!r}")
    check_options(format, options)
    paths = find_files(files)
    began, read = perf_counter(), 0

    def follow(more: int) -> None:
        nonlocal read
        read += more
        if progress is not None:
            progress(more)

    intact: dict[str, int] = {}
    while True:
        try:
            report = _import(
                source, paths, Path(out), Faults(strict, intact), max_bad, workers, follow, options
            )
            return msgspec.structs.replace(report, seconds=perf_counter() - began)
        except DamagedFile as damage:
            if damage.path not in paths or str(damage.path) in intact:
                raise
            intact[str(damage.path)] = damage.intact
            check_loss(paths, intact, max_bad, strict)
            follow(-read)  # start again, without what is damaged


def _import(
    source: FormatReader,
    paths: Sequence[Path],
    out: Path,
    faults: Faults,
    max_bad: float,
    workers: int | None,
    progress: Callable[[int], object],
    options: Mapping[str, Any],
) -> ImportReport:
    """One attempt."""
    format, order, events = source.name, FileOrder(faults), 0
    count = usual_workers(format, paths) if workers is None else workers

    def follow(read: int) -> None:
        progress(read)
        alike = not events and len(faults.counts) == 1 and faults.bad > MAX_BAD_ROWS_ALIKE
        excess = faults.bad > events + faults.omitted + MAX_EXCESS_BAD_ROWS
        if max_bad < 0.5 and (alike or excess):
            raise ValueError(_too_many_bad_rows(faults, events, source, max_bad))

    with replaced_folder(out, check_replaceable) as fresh, Appender(fresh) as appender:
        # Ignored: an Iterator by its type; every reader is a generator, which closes.
        with closing(source.read(paths, faults, follow, count, **options)) as batches:  # type: ignore[type-var]
            for path, batch in batches:
                order.follow(path, batch)
                appender.append(batch)
                events += len(batch)
        rows = events + faults.bad + faults.omitted
        if faults.bad > max_bad * rows:
            raise ValueError(_too_many_bad_rows(faults, events, source, max_bad))
        if not events:
            names = ", ".join(map(str, paths[:3])) + (", …" if len(paths) > 3 else "")
            raise ValueError(
                f"{names}: there are no events in it{_reasons(faults)}; nothing was written"
            )
        if not appender.propensities_recorded:
            faults.forget(BLANK_PROPENSITY)  # the log has none at all
        for key, count in appender.articles.changed.items():
            faults.note(CHANGED_FEATURES, str(paths[0]), 0, key, count)
        mapped = source if isinstance(source, MappedReader) else None
        appender.finish(None if mapped is None else mapped.users())
        if mapped is not None and mapped.sort and not order.ascending:
            sort_by_time(fresh, faults, str(paths[0]))
    return ImportReport(
        format=format,
        files=tuple(map(str, paths)),
        events=events,
        rows=rows,
        skipped=faults.counts,
        left_out=faults.omissions,
        noted=faults.notes,
        first=faults.first,
        bytes=total_bytes(paths),
        seconds=0.0,
        lost_bytes=lost_bytes(paths, faults.intact),
    )


def check_options(format: str, options: Mapping[str, Any]) -> None:
    """Raise ValueError for an option that the format does not have.

    >>> check_options("r6a", {"position": "1"})
    Traceback (most recent call last):
    ...
    ValueError: r6a has no option 'position'; its options: none
    """
    source = _source(format, options)
    known = source.options
    names = {name.split(".")[0] if isinstance(source, MappedReader) else name for name in options}
    if unknown := names - set(known):
        takes = ", ".join(known) or "none"
        raise ValueError(f"{format} has no option {sorted(unknown)[0]!r}; its options: {takes}")


def _source(format: str, options: Mapping[str, Any]) -> FormatReader:
    """The format's reader: by a mapping, if there is anything of one among the options."""
    plain = reader(format)
    return MappedReader(format) if is_mapped(format, options, plain.options) else plain


def usual_workers(format: str, paths: Sequence[Path]) -> int:
    """How many processes should parse the files: 1 if starting more would not pay.

    >>> usual_workers("r6a", [])
    1
    """
    if not reader(format).parallel or total_bytes(paths) < MIN_PARALLEL_BYTES:
        return 1
    return min(MAX_WORKERS, process_count())


def process_count() -> int:
    """How many processes can run at the same time."""
    if hasattr(os, "sched_getaffinity"):  # Linux: respects containers and `taskset`
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _reasons(faults: Faults) -> str:
    """Why rows were skipped or left out, the most frequent reason first."""
    counts = faults.counts | faults.omissions
    told = [
        f"{count:,} times {reason}, first at {_place(faults.first[reason])}"
        for reason, count in sorted(counts.items(), key=lambda item: -item[1])
    ]
    return f": {'; '.join(told)}" if told else ""


def _place(first: Fault) -> str:
    return f"{first.file}:{first.line}: {first.text!r}"


def _too_many_bad_rows(faults: Faults, events: int, source: FormatReader, max_bad: float) -> str:
    bad, rows = faults.bad, events + faults.bad + faults.omitted
    reason, count = max(faults.counts.items(), key=lambda item: item[1])
    first = faults.first[reason]
    mapped = isinstance(source, MappedReader)
    suspect = "the mapping names the right columns" if mapped else f"it is {source.name}"
    return (
        f"{bad:,} of {rows:,} rows are bad ({bad / rows:.1%}, more than {max_bad:.1%}): "
        f"{count:,} times {reason}, first at {_place(first)}; "
        f"nothing was written: see that {suspect}, or allow more bad rows (max_bad)"
    )
