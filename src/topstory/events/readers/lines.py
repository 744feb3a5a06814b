"""A text file in blocks of whole lines, plain or gzipped, whatever its length."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from topstory.events.readers.faults import Faults

BLOCK = 1 << 23  # bytes read at a time
LONGEST = 1 << 26  # a line beyond this is no event, and would fill the memory

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


class Block(NamedTuple):
    """Whole lines, the first of which is the file's line `first` (counted from 1)."""

    first: int
    data: bytes

    def lines(self) -> list[bytes]:
        """The lines, without their ends.

        >>> Block(1, b"a\\r\\nb").lines()
        [b'a', b'b']
        """
        lines = self.data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        if b"\r" in self.data:
            return [line.removesuffix(b"\r") for line in lines]
        return lines


def line_blocks(
    path: Path, faults: Faults, progress: Callable[[int], object], size: int = BLOCK
) -> Iterator[Block]:
    """The file's blocks; `progress` gets the bytes consumed of the file as it is stored.

    A gzipped file that breaks off gives the lines before the break, and counts one fault.
    """
    first, rest, told = 1, b"", 0
    with path.open("rb") as stored:
        packed = stored.read(2) == _GZIP
        stored.seek(0)
        stream: IO[bytes] | Any = gzip.GzipFile(fileobj=stored) if packed else stored
        while True:
            try:
                piece = stream.read(size)
            except (EOFError, OSError, zlib.error) as error:
                if not packed:
                    raise
                faults.add("the gzipped file is cut short or damaged", str(path), first, str(error))
                piece = b""
            if first == 1 and not told:
                piece = piece.removeprefix(_BOM)
            end = piece.rfind(b"\n") + 1 if piece else 0
            data, rest = (rest + piece[:end], piece[end:]) if end else (b"", rest + piece)
            if not piece:
                data, rest = rest, b""
            if len(rest) > LONGEST:
                raise ValueError(
                    f"{path}:{first + data.count(10)}: a line of more than {LONGEST >> 20} MB; "
                    "is this a text file with one event a line?"
                )
            if data:
                yield Block(first, data)
                first += data.count(b"\n")
            at = stored.tell()
            progress(at - told)
            told = at
            if not piece:
                return
