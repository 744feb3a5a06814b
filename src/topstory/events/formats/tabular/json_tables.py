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
    columns: dict[str, Column] = {
        name: table.column(name).combine_chunks() for name in table.column_names if wanted(name)
    }
    if any(pa.types.is_struct(column.type) for column in columns.values()):
        return None
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
            found.append(_OBJECT.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            rejected.append(RejectedRow(number, NOT_JSON, line))
            continue
        lines.append(number)
        texts.append(line)
    names = dict.fromkeys(name for row in found for name in row if wanted(name))
    columns = {name: json_column([row.get(name) for row in found]) for name in names}
    return TablePart(columns, np.array(lines, np.int64), rejected, texts.__getitem__)


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
