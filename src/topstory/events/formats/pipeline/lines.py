"""A text file in blocks of whole lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from topstory.events.formats.faults import Faults
from topstory.events.formats.pipeline.sources import Damage, pieces
from topstory.events.formats.reader import Progress

SIZE = 1 << 22  # bytes of a block, about: as Python objects they take ten times as much
LONGEST = 1 << 26  # bytes of a row; one that is longer would fill the memory

_BOM = b"\xef\xbb\xbf"


class Block(NamedTuple):
    """Whole lines, the first of which is the file's line `first` (counted from 1)."""

    first: int
    data: bytes

    def lines(self) -> list[bytes]:
        r"""The lines, without their ends.

        >>> Block(1, b"a\r\nb").lines()
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
) -> Iterator[Block]:
    r"""The file's lines in blocks of some megabytes; gzip that breaks off is one fault.

    `end` says where the last whole row of some text ends, 0 if none does.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"a\nb\nc") and file.flush()
    ...     list(line_blocks(Path(file.name), Faults(), lambda bytes: None))
    [Block(first=1, data=b'a\nb\nc')]
    """
    number, rest, begun = 1, b"", False
    try:
        for piece in pieces(path, progress):
            rest += piece if begun else piece.removeprefix(_BOM)
            begun = True
            if len(rest) < SIZE:
                continue
            if whole := end(rest):
                yield Block(number, rest[:whole])
                number += rest.count(b"\n", 0, whole)
                rest = rest[whole:]
            if len(rest) > LONGEST:
                raise ValueError(
                    f"{path}:{number}: more than {LONGEST >> 20} MB without the end of a row; "
                    "this is not a text file with one event after the other"
                )
    except Damage as damage:
        if whole := end(rest):
            yield Block(number, rest[:whole])
            number += rest.count(b"\n", 0, whole)
        # The row that is cut off counts as the bad row.
        faults.add(damage.reason, str(path), number, rest[whole:][:200])
        return
    if rest:
        yield Block(number, rest)
