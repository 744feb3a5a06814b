"""The bytes of a file, gzipped or plain, in pieces.

A gzip file is one or more members, each with a checksum at its end. If that fails, or the member
cannot be decompressed, any of it may be wrong, and nothing says where: `DamagedFile`. So a reader
starts again, with what is `intact`: the members before it.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from topstory.events.formats.reader import Progress

# With 2 MB, which leave the cache between the two threads, reading gzip was a quarter slower.
PIECE_BYTES = 1 << 20
COMPRESSED_BYTES = 1 << 17
MAX_PIECES_AHEAD = 4  # decompressed in advance
MAX_LINE_BYTES = 1 << 20  # no format has longer rows
MAX_SHIFT = 1 << 14  # bytes that a flipped bit may add to what follows it, or take away

TRUNCATED = "the gzip file ends too early: what came before was read"
DAMAGED = "the gzip file is damaged: what its checksums do not vouch for was not read"
TOO_LONG = "a line of more than 1 MB"


def pieces(path: Path, progress: Progress, intact: int | None = None) -> Iterator[bytes]:
    r"""The file's bytes, decompressed if they are gzip, whatever the file's name.

    Raises `DamagedFile` if they cannot be trusted; and `CutOff` after the last piece, if the file
    breaks off, or after the `intact` bytes of a file that is known to be damaged.

    >>> import gzip, tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(gzip.compress(b"a\nb")) and file.flush()
    ...     list(pieces(Path(file.name), lambda bytes: None))
    [b'a\nb']
    """
    with path.open("rb", buffering=0) as file:
        gzipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if gzipped:
            with closing(_decompressed(path, intact)) as ahead:
                for piece, consumed in ahead:
                    progress(consumed)
                    if piece:
                        yield piece
        else:
            while piece := file.read(PIECE_BYTES):
                progress(len(piece))
                yield piece


class CutOff(ValueError):
    """Nothing more of a compressed file can be read; `reason` is for `Faults`."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.reason = reason


class DamagedFile(ValueError):
    """A compressed file of which only the first `intact` bytes, as on disk, can be trusted."""

    def __init__(self, path: Path, intact: int) -> None:
        super().__init__(f"{path}: {DAMAGED}")
        self.path, self.intact = path, intact


def _decompressed(path: Path, intact: int | None) -> Generator[tuple[bytes, int], None, None]:
    """(piece, compressed bytes consumed), decompressed by a second thread, a few pieces ahead."""
    ready: queue.Queue[tuple[bytes, int] | None] = queue.Queue(MAX_PIECES_AHEAD)
    failed: list[BaseException] = []
    stop = threading.Event()

    def put(item: tuple[bytes, int] | None) -> bool:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for item in _inflate(path, intact):
                if not put(item):
                    return
        except BaseException as error:
            failed.append(error)
        put(None)

    thread = threading.Thread(target=work, name=f"decompress {path.name}", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            yield item
        if failed:
            raise failed[0]
    finally:
        stop.set()
        thread.join()


def _inflate(path: Path, intact: int | None) -> Iterator[tuple[bytes, int]]:
    from isal import igzip_lib

    broken: Any = igzip_lib.IsalError
    with path.open("rb", buffering=0) as file:
        data = file.read(COMPRESSED_BYTES)
        consumed = len(data)
        while data:
            member = file.tell() - len(data)  # where it begins
            if intact is not None and member >= intact:
                yield b"", consumed
                raise CutOff(path, DAMAGED)
            # A file may hold several gzip streams end to end; zeros after the last are padding.
            stream = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
            length = 0
            while not stream.eof:
                try:
                    piece = stream.decompress(data, PIECE_BYTES)
                except broken:
                    raise DamagedFile(path, member) from None
                yield piece, consumed
                length, data, consumed = length + len(piece), b"", 0
                if stream.needs_input and not stream.eof:
                    data = file.read(COMPRESSED_BYTES)
                    consumed = len(data)
                    if not data and _looks_whole(path, length):
                        raise DamagedFile(path, member)
                    if not data:
                        raise CutOff(path, TRUNCATED)
            data = stream.unused_data.lstrip(b"\0")
            while not data and (more := file.read(COMPRESSED_BYTES)):
                consumed += len(more)
                data = more.lstrip(b"\0")
        yield b"", consumed


def _looks_whole(path: Path, length: int) -> bool:
    """Whether a member that seems cut off has its end, which gives the length of its content.

    A bit that flips in the last block may hide that block's end. The checksum is then read as if it
    were content, and nothing else tells this from a file that is cut off. Of those, whose last
    bytes are anything, one in 130,000 looks whole.
    """
    if not length:
        return False
    with path.open("rb") as file:
        file.seek(-4, os.SEEK_END)
        size = int.from_bytes(file.read(4), "little")
    apart = abs(size - length % (1 << 32))
    return min(apart, (1 << 32) - apart) <= MAX_SHIFT
