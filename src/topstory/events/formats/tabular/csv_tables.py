"""A CSV file in tables of some thousand rows, with line numbers."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv

from topstory.events.formats.faults import Faults
from topstory.events.formats.pipeline.lines import LineBlock, line_blocks
from topstory.events.formats.pipeline.validation import RejectedRow
from topstory.events.formats.reader import Progress
from topstory.events.formats.tabular.arrow_columns import Column
from topstory.events.formats.tabular.encodings import as_utf8

WRONG_FIELD_COUNT = "the row has another number of fields than the header"
NOT_CSV = "not a row of CSV: a quote is not closed, or a field is too long"

DELIMITERS = ",;\t|"  # a file has the first of them that is in its header


class CsvHeader(NamedTuple):
    """The names of the columns, and what stands between them."""

    names: list[str]
    delimiter: str = ","


@dataclass(frozen=True)
class CsvTable:
    """The rows of a block that have all fields, as columns of bytes without nulls."""

    columns: dict[str, Column]
    lines: npt.NDArray[np.int64]
    rejected: list[RejectedRow]
    block: LineBlock

    def text(self, row: int) -> bytes:
        """The line of a row."""
        return self._texts[int(self.lines[row]) - self.block.first]

    @cached_property
    def _texts(self) -> list[bytes]:
        return self.block.lines()  # once for all rows that are asked for


def csv_tables(
    path: Path,
    faults: Faults,
    progress: Progress,
    wanted: Callable[[str], bool],
    encoding: str | None = None,
) -> Iterator[CsvTable]:
    """The columns that are wanted, block by block. A value holds no line break.

    Arrow parses the blocks; those that it might read differently are parsed line by line by Python.
    """
    head: CsvHeader | None = None
    for first, written in line_blocks(path, faults, progress):
        data = as_utf8(written, encoding)
        if head is None:
            header, _, data = data.partition(b"\n")
            first += 1
            head = _header(header, path)
        if data:
            yield _table(LineBlock(first, data), head, wanted)
    if head is None and str(path) not in faults.intact:
        raise ValueError(f"{path}: the file is empty; its first line must name the columns")


def delimiter_of(header: str) -> str:
    r"""What stands between the columns of a header.

    >>> [delimiter_of(header) for header in ("id;price", "id\tprice", "id,a;b", "id")]
    [';', '\t', ',', ',']
    """
    return next((each for each in DELIMITERS if each in header), ",")


def _header(header: bytes, path: Path) -> CsvHeader:
    try:
        text = header.decode("utf-8").rstrip("\r")
        delimiter = delimiter_of(text)
        names = next(csv.reader([text], delimiter=delimiter, strict=True), [])
    except UnicodeDecodeError:
        raise ValueError(
            f"{path}:1: the names of its columns are not in UTF-8: save it as UTF-8, or import it "
            'by a mapping with its encoding, such as encoding = "cp1252"'
        ) from None
    except csv.Error:
        raise ValueError(
            f"{path}:1: not a CSV file: its first line must name the columns"
        ) from None
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{path}:1: the column {twice!r} is named twice; name each once")
    if not names:
        raise ValueError(f"{path}:1: the first line is blank; it must name the columns")
    return CsvHeader(names, delimiter)


def _table(block: LineBlock, head: CsvHeader, wanted: Callable[[str], bool]) -> CsvTable:
    if len(head.names) == 1:
        return _by_python(block, head, wanted)
    if _is_odd(block.data, head.delimiter):
        return _by_both(block, head, wanted) or _by_python(block, head, wanted)
    return _by_arrow(block, head, wanted) or _by_python(block, head, wanted)


def _by_arrow(block: LineBlock, head: CsvHeader, wanted: Callable[[str], bool]) -> CsvTable | None:
    """None if Arrow cannot tell the rows."""
    data, names = block.data, head.names
    rejected: list[RejectedRow] = []
    skipped: list[int] = []

    def skip(row: pacsv.InvalidRow) -> Literal["skip"]:
        assert row.number is not None
        skipped.append(row.number)
        rejected.append(RejectedRow(block.first + row.number - 1, WRONG_FIELD_COUNT, row.text))
        return "skip"

    include = [name for name in names if wanted(name)]
    ends = np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    count = int(ends) + (not data.endswith(b"\n"))
    try:
        table = pacsv.read_csv(
            BytesIO(data),
            pacsv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
            pacsv.ParseOptions(
                delimiter=head.delimiter,
                quote_char='"' if b'"' in data else False,
                invalid_row_handler=skip,
            ),
            pacsv.ConvertOptions(
                column_types=dict.fromkeys(include, pa.binary()),
                include_columns=include,
                strings_can_be_null=False,
            ),
        ).combine_chunks()
    except pa.ArrowInvalid:
        return None
    good = np.ones(count, bool)
    good[np.array(skipped, np.int64) - 1] = False
    lines = np.flatnonzero(good) + block.first
    if table.num_rows != len(lines):  # Arrow found other rows than there are lines
        return None
    columns = {name: _whole(table.column(name)) for name in include}
    return CsvTable(columns, lines, rejected, block)


def _is_odd(data: bytes, delimiter: str) -> bool:
    """Whether Arrow's rows may differ from the file's lines, or its values from the text."""
    ends = np.frombuffer(data, np.uint8) == ord("\n")  # ten times as fast as a search for "\n\n"
    blank = data[:1] in (b"\n", b"\r") or bool((ends[1:] & ends[:-1]).any())
    returned = b"\r" in data
    returns = returned and data.count(b"\r") != data.count(b"\r\n")
    quotes = b'"' in data and not _quotes_whole_fields(data, delimiter)
    return blank or (returned and b"\n\r\n" in data) or returns or quotes or not _is_text(data)


def _by_both(block: LineBlock, head: CsvHeader, wanted: Callable[[str], bool]) -> CsvTable | None:
    """Arrow parses the ordinary lines, Python the odd ones; None if Arrow cannot."""
    data = block.data if block.data.endswith(b"\n") else block.data + b"\n"
    odd = _odd_lines(data, head.delimiter)
    text = np.frombuffer(data, np.uint8)
    sizes = np.diff(np.flatnonzero(text == ord("\n")), prepend=-1)
    ordinary = text[np.repeat(~odd, sizes)].tobytes()
    if not ordinary:
        return None
    quick = _by_arrow(LineBlock(1, ordinary), head, wanted)
    if quick is None:
        return None
    numbers = np.flatnonzero(~odd) + block.first  # the line of each of Arrow's
    rest = block.lines()
    slow = _by_python(
        block, head, wanted, [(i + block.first, rest[i]) for i in np.flatnonzero(odd).tolist()]
    )
    lines = np.concatenate((numbers[quick.lines - 1], slow.lines))
    order = np.argsort(lines)
    return CsvTable(
        {
            name: pa.concat_arrays([column, slow.columns[name]]).take(pa.array(order))
            for name, column in quick.columns.items()
        },
        lines[order],
        [row._replace(line=int(numbers[row.line - 1])) for row in quick.rejected] + slow.rejected,
        block,
    )


def _odd_lines(data: bytes, delimiter: str = ",") -> npt.NDArray[np.bool_]:
    r"""(lines,) which lines Arrow may read differently from Python; each ends with a line feed.

    >>> _odd_lines(b'1,2\n\n"a","b"\r\n"a ""b"" c",1\n\xff,1\na\rb,1\n').tolist()
    [False, True, False, True, True, True]
    """
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    starts = np.concatenate(([0], ends[:-1] + 1))
    odd: npt.NDArray[np.bool_] = (starts == ends) | (
        (ends - starts == 1) & (text[starts] == ord("\r"))
    )
    returns = np.flatnonzero(text == ord("\r"))
    odd[np.searchsorted(ends, returns[text[returns + 1] != ord("\n")])] = True
    quotes = np.flatnonzero(text == ord('"'))
    line = np.searchsorted(ends, quotes)
    unpaired = np.bincount(line, minlength=len(ends)) % 2 == 1
    odd |= unpaired
    paired = ~unpaired[line]
    quotes, line = quotes[paired], line[paired]
    opening, closing = quotes[0::2], quotes[1::2]
    before, after = _around(delimiter)
    begun = (opening == 0) | np.isin(text[np.maximum(opening - 1, 0)], before)
    odd[line[0::2][~(begun & np.isin(text[closing + 1], after))]] = True
    if not _is_text(data):
        foreign = np.unique(np.searchsorted(ends, np.flatnonzero(text > 127)))
        odd[[i for i in foreign.tolist() if not _is_text(data[starts[i] : ends[i]])]] = True
    return odd


def _around(delimiter: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """What may stand before a quote that opens a field, and after one that closes it."""
    edge = delimiter.encode() + b"\n"
    return np.frombuffer(edge, np.uint8), np.frombuffer(edge + b"\r", np.uint8)


def _quotes_whole_fields(data: bytes, delimiter: str = ",") -> bool:
    r"""Whether quotes only enclose whole fields within a line: then all parsers agree.

    >>> _quotes_whole_fields(b'1,"a,b",""\n'), _quotes_whole_fields(b'1,"a ""b"" c"\n')
    (True, False)
    """
    text = np.frombuffer(data, np.uint8)
    places = np.flatnonzero(text == ord('"'))
    if len(places) % 2:
        return False
    opening, closing = places[0::2], places[1::2]
    before, after = _around(delimiter)
    begun = np.isin(text[np.maximum(opening - 1, 0)], before) | (opening == 0)
    ended = np.isin(text[np.minimum(closing + 1, len(text) - 1)], after)
    ended |= closing == len(text) - 1
    newlines = np.flatnonzero(text == ord("\n"))
    lines = np.searchsorted(newlines, opening) == np.searchsorted(newlines, closing)
    return bool(begun.all() and ended.all() and lines.all())


def _is_text(data: bytes) -> bool:
    # Arrow reports bad rows as text, which fails if they are not UTF-8.
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _by_python(
    block: LineBlock,
    head: CsvHeader,
    wanted: Callable[[str], bool],
    only: list[tuple[int, bytes]] | None = None,
) -> CsvTable:
    """The same with Python's parser: slower, for unusual quoting; `only` these lines."""
    names, delimiter = head
    rejected: list[RejectedRow] = []
    lines: list[int] = []
    rows: list[list[str]] = []
    for number, line in enumerate(block.lines(), block.first) if only is None else only:
        if not line:
            continue
        try:
            text = line.decode("utf-8", "surrogateescape")
            row = next(csv.reader([text], delimiter=delimiter, strict=True), [])
        except csv.Error:
            rejected.append(RejectedRow(number, NOT_CSV, line))
            continue
        if len(row) != len(names):
            rejected.append(RejectedRow(number, WRONG_FIELD_COUNT, line))
            continue
        lines.append(number)
        rows.append(row)
    columns: dict[str, Column] = {
        name: pa.array([row[i].encode("utf-8", "surrogateescape") for row in rows], pa.binary())
        for i, name in enumerate(names)
        if wanted(name)
    }
    return CsvTable(columns, np.array(lines, np.int64), rejected, block)


def _whole(column: Column) -> Column:
    return column.chunk(0) if column.num_chunks == 1 else pa.array([], column.type)
