"""All log formats by name, with their readers and writers."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from topstory.events.formats.reader import FormatReader
    from topstory.events.log import EventLog

    Writer = Callable[[EventLog, Path, Callable[[int], object]], list[Path]]


class Format(NamedTuple):
    """One format; its reader and writer are "module:name", imported when first used."""

    about: str
    reader: str | None = None
    writer: str | None = None


FORMATS = {
    "r6a": Format(
        "Yahoo! Today Module, version 1: text, gzipped if the name ends in .gz",
        reader="yahoo.r6a:R6AReader",
        writer="yahoo.write_r6a:write_r6a",
    ),
    "r6b": Format("Yahoo! Today Module, version 2", reader="yahoo.r6b:R6BReader"),
    "obd": Format("Open Bandit Dataset", reader="obd.reader:ObdReader"),
    "obp": Format(
        "Open Bandit Pipeline: the bandit_feedback dictionary, as .npz",
        writer="obd.write_obp:write_obp",
    ),
    "dsjson": Format(
        "Vowpal Wabbit: decision-service JSON lines",
        reader="vw.dsjson:DsjsonReader",
        writer="vw.write_dsjson:write_dsjson",
    ),
    "vw": Format("Vowpal Wabbit: cb_adf text", reader="vw.text:VwReader"),
    "jsonl": Format(
        "plain layout: one JSON object a line, and the articles beside it",
        reader="plain.jsonl:JsonlReader",
        writer="plain.write_jsonl:write_jsonl",
    ),
    "csv": Format("plain layout: CSV", reader="plain.csv:CsvReader"),
    "parquet": Format("plain layout: Parquet", reader="plain.parquet:ParquetReader"),
}
READERS = tuple(name for name, each in FORMATS.items() if each.reader)
WRITERS = tuple(name for name, each in FORMATS.items() if each.writer)


def reader(name: str) -> FormatReader:
    """The reader of a format.

    >>> reader("r6a").name
    'r6a'
    >>> reader("r7")
    Traceback (most recent call last):
    ...
    ValueError: there is no format 'r7'; there are r6a, r6b, ...
    """
    if name not in READERS:
        raise ValueError(f"there is no format {name!r}; there are {', '.join(READERS)}")
    made: FormatReader = _found(FORMATS[name].reader)()
    return made


def writer(name: str) -> Writer:
    """The writer of a format; called with log, path and progress, it returns the files written."""
    if name not in WRITERS:
        raise ValueError(f"there is no export to {name!r}; there are {', '.join(WRITERS)}")
    found: Writer = _found(FORMATS[name].writer)
    return found


def _found(where: str | None) -> Any:
    assert where is not None
    module, name = where.split(":")
    return getattr(import_module(f"{__package__}.{module}"), name)
