"""A file of JSON lines in tables of some thousand rows, with line numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.json as pajson

from topstory.events.formats.faults import Faults
from topstory.events.formats.pipeline.lines import LineBlock, line_blocks
from topstory.events.formats.pipeline.validation import RejectedRow
from topstory.events.formats.reader import Progress
from topstory.events.formats.tabular.arrow_columns import Column
from topstory.events.formats.tabular.table_part import TablePart

NOT_JSON = "not a JSON object"
_OBJECT = msgspec.json.Decoder(dict[str, Any])


def json_tables(
    path: Path, faults: Faults, progress: Progress, wanted: Callable[[str], bool]
) -> Iterator[TablePart]:
    """The columns that are wanted, block by block; a block lacks those that none of its lines has.

    A value within an object is a column, too: `user.city` of {"user": {"city": "Rome"}}.
    Arrow parses the blocks; one that it cannot parse is decoded line by line.
    """
    for block in line_blocks(path, faults, progress):
        yield _by_arrow(block, wanted) or _by_line(block, wanted)


def _by_arrow(block: LineBlock, wanted: Callable[[str], bool]) -> TablePart | None:
    data = block.data
    rows = data.count(b"\n") + (not data.endswith(b"\n"))
    if b"\n\n" in data or b"\r" in data or data[:1] == b"\n":
        return None
    try:
        table = pajson.read_json(
            BytesIO(data), pajson.ReadOptions(use_threads=False, block_size=len(data) + 1)
        ).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return None
    if table.num_rows != rows:  # Arrow found other rows than there are lines
        return None
    while objects := [field for field in table.schema if pa.types.is_struct(field.type)]:
        for field in objects:
            parts = [f"{field.name}.{each.name}" for each in field.type]
            if wanted(field.name) and not any(map(wanted, parts)):
                return None  # an object as a whole
        table = table.flatten()
    if len(set(table.column_names)) < table.num_columns:
        return None
    columns: dict[str, Column] = {
        name: table.column(name).combine_chunks() for name in table.column_names if wanted(name)
    }
    lines = np.arange(rows) + block.first
    return TablePart(columns, lines, [], lambda row: block.lines()[row])


def _by_line(block: LineBlock, wanted: Callable[[str], bool]) -> TablePart:
    rejected: list[RejectedRow] = []
    found: list[dict[str, Any]] = []
    lines: list[int] = []
    texts: list[bytes] = []
    for number, line in enumerate(block.lines(), block.first):
        if not line.strip():
            continue
        try:
            found.append(_with_parts(_OBJECT.decode(line)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            rejected.append(RejectedRow(number, NOT_JSON, line))
            continue
        lines.append(number)
        texts.append(line)
    names = dict.fromkeys(name for row in found for name in row if wanted(name))
    for whole in {name.rpartition(".")[0] for name in names}:
        names.pop(whole, None)  # its parts are there instead
    columns = {name: json_column([row.get(name) for row in found]) for name in names}
    return TablePart(columns, np.array(lines, np.int64), rejected, texts.__getitem__)


def _with_parts(row: dict[str, Any]) -> dict[str, Any]:
    """The row, and what its objects hold, by their names and dots.

    >>> _with_parts({"user": {"city": "Rome", "age": {"years": 7}}})["user.age.years"]
    7
    """
    found: dict[str, Any] = {}
    for name, value in row.items():
        found[name] = value
        if isinstance(value, dict):
            found |= {f"{name}.{part}": each for part, each in _with_parts(value).items()}
    return found


def json_column(values: list[Any]) -> Column:
    """Values of any types as one column; of mixed types, or objects, as texts.

    >>> json_column([1, "a", None]).to_pylist()
    ['1', 'a', None]
    """
    try:
        column: Column = pa.array(values)
        if not pa.types.is_struct(column.type):
            return column
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    texts = [
        value if isinstance(value, str | None) else msgspec.json.encode(value).decode()
        for value in values
    ]
    return pa.array(texts, pa.string())
