"""Reading exports by a mapping: any columns of CSV, JSON lines or Parquet, or a query over them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from topstory.events.columns.visitors import Visitors
from topstory.events.formats.faults import Faults
from topstory.events.formats.mapped.fields import clean_texts
from topstory.events.formats.mapped.mapping import ColumnMapping, load_mapping
from topstory.events.formats.mapped.numbering import Numbering
from topstory.events.formats.mapped.parser import MappedParser
from topstory.events.formats.reader import Progress
from topstory.events.formats.tabular.csv_tables import csv_tables
from topstory.events.formats.tabular.json_tables import json_tables
from topstory.events.formats.tabular.parquet_tables import parquet_tables
from topstory.events.formats.tabular.table_part import TablePart
from topstory.events.formats.tabular.text_columns import text_hashes
from topstory.events.log import EventLog

FORMATS = ("csv", "jsonl", "parquet")
SAME_EVENT = "an event with this id came before: it counts once"
OPTIONS: Mapping[str, str] = {
    "map": "the mapping: a TOML file (--map), or in Python also a dict",
    "query": "an SQL query over the files, which are the table `events` (--query)",
    **{
        name: f"{name} of the mapping, over what the file says"
        for name in ColumnMapping.__struct_fields__
    },
}
# Stands for the users while they are still being numbered.
_NOT_YET = np.ones((0, 1), np.float32)
_NOT_YET.flags.writeable = False


def is_mapped(format: str, options: Mapping[str, Any], plain: Mapping[str, str]) -> bool:
    """Whether an import is one by a mapping: it has an option that the plain layout does not have.

    >>> is_mapped("csv", {"shown": "item"}, {"articles": "", "constant": ""})
    True
    """
    own = {name.split(".")[0] for name in options if name not in plain}
    return format in FORMATS and not own.isdisjoint(OPTIONS)


class MappedReader:
    """Reads one of the tabular formats by a mapping."""

    parallel = False
    options = OPTIONS

    def __init__(self, format: str) -> None:
        self.name = format
        self.sort = True
        self._parser: MappedParser | None = None

    def users(self) -> Visitors | None:
        """The users of all events that have been read."""
        people = None if self._parser is None else self._parser.people
        return None if people is None else people.visitors()

    def read(
        self,
        files: Sequence[Path],
        faults: Faults,
        progress: Progress,
        workers: int = 1,
        **options: Any,
    ) -> Iterator[tuple[Path, EventLog]]:
        """The events; their users are numbered, and known when all have been read."""
        given, query = options.pop("map", None), options.pop("query", None)
        mapping, folder = load_mapping(given, options)
        self.sort = mapping.sort
        parser = self._parser = MappedParser(mapping, folder, faults)
        repeats = _Repeats(mapping, faults)
        tables = self._tables(files, faults, progress, parser, query)
        for path, part in tables:
            valid = parser.events(path, part)
            if valid is None:
                continue
            rows = np.searchsorted(part.lines, valid.lines)
            keep = repeats.first(path, part, rows)
            log, rows = (valid.log, rows) if keep is None else (valid.log[keep], rows[keep])
            if not len(log):
                continue
            number = parser.users(path, part, rows)
            if number is not None:
                log = replace(log, visitors=Visitors(number, _NOT_YET, None))
            yield path, log

    def _tables(
        self,
        files: Sequence[Path],
        faults: Faults,
        progress: Progress,
        parser: MappedParser,
        query: str | None,
    ) -> Iterator[tuple[Path, TablePart]]:
        encoding = parser.encoding
        if encoding is not None and (query is not None or self.name != "csv"):
            raise ValueError(f"encoding is for CSV files without a query, got {encoding!r}")
        if query is not None:
            from topstory.events.formats.mapped.query import query_tables

            yield from query_tables(query, self.name, files, faults, progress, parser.check)
            return
        read = {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}[self.name]
        for path in files:
            for part in read(path, faults, progress, parser):
                yield path, part


Read = Callable[[Path, Faults, Progress, MappedParser], Iterator[TablePart]]


def _csv(
    path: Path, faults: Faults, progress: Progress, parser: MappedParser
) -> Iterator[TablePart]:
    names: dict[str, None] = {}

    def wanted(name: str) -> bool:
        names[name] = None
        return name in parser.columns

    for block in csv_tables(path, faults, progress, wanted, parser.encoding):
        parser.check(path, list(names))
        yield TablePart(block.columns, block.lines, block.rejected, block.text)


def _parquet(
    path: Path, faults: Faults, progress: Progress, parser: MappedParser
) -> Iterator[TablePart]:
    return parquet_tables(
        path, progress, parser.columns.__contains__, lambda names: parser.check(path, names)
    )


def _jsonl(
    path: Path, faults: Faults, progress: Progress, parser: MappedParser
) -> Iterator[TablePart]:
    """A column that a block lacks is missing there; one that the whole file lacks is an error."""
    names: dict[str, None] = {}

    def wanted(name: str) -> bool:
        names[name] = None
        return name in parser.columns

    for part in json_tables(path, faults, progress, wanted):
        for name in parser.columns - set(part.columns):
            part.columns[name] = pa.nulls(len(part.lines), pa.string())
        yield part
    parser.check(path, list(names))


class _Repeats:
    """Events whose id came before, which an export that was joined or sent twice has."""

    def __init__(self, mapping: ColumnMapping, faults: Faults) -> None:
        self._column, self._faults = mapping.event, faults
        self._missing = frozenset(mapping.missing)
        self._seen = Numbering()
        self._keys = secrets.randbits(64), secrets.randbits(64)

    def first(self, path: Path, part: TablePart, rows: Any) -> Any:
        """Which of the rows are not repeats; None: none is one. A missing id is no repeat."""
        if self._column is None:
            return None
        ids = clean_texts(part.columns[self._column].take(pa.array(rows)), self._missing)
        _, fresh = self._seen(*text_hashes(ids, self._keys))
        if len(fresh) == len(rows):
            return None
        keep = np.zeros(len(rows), bool)
        keep[fresh] = True
        if ids.null_count:
            keep |= np.asarray(ids.is_null().to_numpy(zero_copy_only=False), bool)
        repeat = ~keep
        if not repeat.any():
            return None
        at = int(rows[int(repeat.argmax())])
        self._faults.left_out(
            SAME_EVENT, str(path), int(part.lines[at]), part.text(at), int(repeat.sum())
        )
        return np.flatnonzero(keep)
