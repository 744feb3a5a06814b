"""The bytes of a file, gzipped or plain, in pieces; a damaged end costs one fault, not the file."""

from __future__ import annotations

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

TRUNCATED = "the gzip file ends too early: what came before was read"
DAMAGED = "the gzip file is damaged: what came before was read"
TOO_LONG = "a line of more than 1 MB"


def pieces(path: Path, progress: Progress) -> Iterator[bytes]:
    r"""The file's bytes, decompressed if they are gzip, whatever the file's name.

    Raises `DamagedFile` after the last piece that could be read.

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
            with closing(_decompressed(path)) as ahead:
                for piece, consumed in ahead:
                    progress(consumed)
                    if piece:
                        yield piece
        else:
            while piece := file.read(PIECE_BYTES):
                progress(len(piece))
                yield piece


class DamagedFile(ValueError):
    """A compressed file that is truncated or corrupt; `reason` is for `Faults`."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.reason = reason


def _decompressed(path: Path) -> Generator[tuple[bytes, int], None, None]:
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
            for item in _inflate(path):
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


def _inflate(path: Path) -> Iterator[tuple[bytes, int]]:
    from isal import igzip_lib

    broken: Any = igzip_lib.IsalError
    with path.open("rb", buffering=0) as file:
        data = file.read(COMPRESSED_BYTES)
        consumed = len(data)
        while data:
            # A file may hold several gzip streams end to end; zeros after the last are padding.
            stream = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
            while not stream.eof:
                try:
                    piece = stream.decompress(data, PIECE_BYTES)
                except broken:
                    raise DamagedFile(path, DAMAGED) from None
                yield piece, consumed
                data, consumed = b"", 0
                if stream.needs_input and not stream.eof:
                    data = file.read(COMPRESSED_BYTES)
                    consumed = len(data)
                    if not data:
                        raise DamagedFile(path, TRUNCATED)
            data = stream.unused_data.lstrip(b"\0")
            while not data and (more := file.read(COMPRESSED_BYTES)):
                consumed += len(more)
                data = more.lstrip(b"\0")
        yield b"", consumed
