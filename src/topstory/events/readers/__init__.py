"""Readers of other people's logs, by the name of the format."""

from __future__ import annotations

from importlib import import_module

from topstory.events.readers.faults import BadRow, Fault, Faults
from topstory.events.readers.reader import Reader

# Format -> the module of this package whose READERS holds it; imported when first asked for.
FORMATS = {
    "r6a": "r6a",
    "r6b": "r6b",
    "obd": "obd",
    "dsjson": "dsjson",
    "vw": "vw",
    "jsonl": "plain",
    "csv": "plain",
    "parquet": "plain",
}

__all__ = ["FORMATS", "BadRow", "Fault", "Faults", "Reader", "reader"]


def reader(name: str) -> Reader:
    """The reader of a format.

    >>> reader("r6a").name
    'r6a'
    >>> reader("r7")
    Traceback (most recent call last):
    ...
    ValueError: there is no format 'r7'; there are r6a, r6b, obd, dsjson, vw, jsonl, csv, parquet
    """
    if name not in FORMATS:
        raise ValueError(f"there is no format {name!r}; there are {', '.join(FORMATS)}")
    module = import_module(f"{__name__}.{FORMATS[name]}")
    readers: tuple[Reader, ...] = module.READERS
    return next(each for each in readers if each.name == name)
