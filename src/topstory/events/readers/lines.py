"""A text file in blocks of whole lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from topstory.events.readers.faults import Faults
from topstory.events.readers.reader import Progress
from topstory.events.readers.sources import Damage, pieces

LONGEST = 1 << 26  # bytes of a line; one that is longer would fill the memory

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


def line_blocks(path: Path, faults: Faults, progress: Progress) -> Iterator[Block]:
    r"""The file's lines in blocks of some megabytes; gzip that breaks off is one fault.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"a\nb\nc") and file.flush()
    ...     list(line_blocks(Path(file.name), Faults(), lambda bytes: None))
    [Block(first=1, data=b'a\nb\n'), Block(first=3, data=b'c')]
    """
    number, rest, begun = 1, b"", False
    try:
        for piece in pieces(path, progress):
            rest += piece if begun else piece.removeprefix(_BOM)
            begun = True
            end = rest.rfind(b"\n", max(0, len(rest) - len(piece))) + 1
            if end:
                yield Block(number, rest[:end])
                number += rest.count(b"\n", 0, end)
                rest = rest[end:]
            if len(rest) > LONGEST:
                raise ValueError(
                    f"{path}:{number}: a line of more than {LONGEST >> 20} MB; "
                    "this is not a text file with one event a line"
                )
    except Damage as damage:
        # The line that is cut off counts as the bad row.
        faults.add(damage.reason, str(path), number, rest[:200])
        return
    if rest:
        yield Block(number, rest)
