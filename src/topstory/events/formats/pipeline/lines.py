"""A text file in blocks of complete lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from topstory.events.formats.faults import Faults
from topstory.events.formats.pipeline.sources import CutOff, pieces
from topstory.events.formats.reader import Progress

BLOCK_BYTES = 1 << 22  # about; as Python objects they take ten times as much
MAX_ROW_BYTES = 1 << 26  # a longer one would fill the memory

BOM = b"\xef\xbb\xbf"


class LineBlock(NamedTuple):
    """Complete lines; the first is line `first` of the file (counted from 1)."""

    first: int
    data: bytes

    def lines(self) -> list[bytes]:
        r"""The lines, without their ends.

        >>> LineBlock(1, b"a\r\nb").lines()
        [b'a', b'b']
        """
        lines = self.data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        if b"\r" in self.data:
            return [line.removesuffix(b"\r") for line in lines]
        return lines


def line_end(data: bytes) -> int:
    r"""Where the last whole line ends.

    >>> line_end(b"a\nb\nc")
    4
    """
    return data.rfind(b"\n") + 1


def line_blocks(
    path: Path, faults: Faults, progress: Progress, end: Callable[[bytes], int] = line_end
) -> Iterator[LineBlock]:
    r"""The file's lines in blocks of some megabytes; truncated gzip counts as one fault.

    `end` returns where the last complete row of some text ends; 0 if there is none.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"a\nb\nc") and file.flush()
    ...     list(line_blocks(Path(file.name), Faults(), lambda bytes: None))
    [LineBlock(first=1, data=b'a\nb\nc')]
    """
    number, rest, begun = 1, b"", False
    try:
        for piece in pieces(path, progress, faults.intact.get(str(path))):
            rest += piece if begun else piece.removeprefix(BOM)
            begun = True
            if len(rest) < BLOCK_BYTES:
                continue
            if whole := end(rest):
                yield LineBlock(number, rest[:whole])
                number += rest.count(b"\n", 0, whole)
                rest = rest[whole:]
            if len(rest) > MAX_ROW_BYTES:
                raise ValueError(
                    f"{path}:{number}: more than {MAX_ROW_BYTES >> 20} MB without the end of a "
                    "row; this is not a text file with one event after the other"
                )
    except CutOff as damage:
        if whole := end(rest):
            yield LineBlock(number, rest[:whole])
            number += rest.count(b"\n", 0, whole)
        # The incomplete last row counts as the bad row.
        faults.add(damage.reason, str(path), number, rest[whole:][:200])
        return
    if rest:
        yield LineBlock(number, rest)
