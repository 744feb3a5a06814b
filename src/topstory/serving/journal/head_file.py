"""The last batch that was committed, in a file beside the journal.

A database that lost its last records, such as a replica that was promoted too early, looks whole by
itself. This file shows that it is not. It is not synced: after a power cut, or if it could not be
written, it may be older than the journal, which does no harm.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from struct import Struct
from zlib import crc32

from topstory.serving.journal.chain import MARK_BYTES, Head

HEAD = "head"  # its name in the data folder
_HEAD = Struct(f"<q{MARK_BYTES}s")
_CHECKSUM = Struct("<I")

log = logging.getLogger("topstory.serving")


class HeadFile:
    """The file, open for writing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = HeadFile(Path(folder, "head"))
    ...     file.write(Head(7, bytes(16)))
    ...     read_head(Path(folder, "head")).number
    7
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._failed = False  # whether the last write did

    def write(self, head: Head) -> None:
        """Replace what it says, if the disk takes it; a killed process leaves the old or the new.

        The batch is in the journal, which may be elsewhere: that must not fail with this file.
        """
        packed = _HEAD.pack(*head)
        try:
            os.pwrite(self._file, packed + _CHECKSUM.pack(crc32(packed)), 0)
            self._failed = False
        except OSError as error:
            if not self._failed:
                log.error("could not note the last commit in the file `head`: %s", error)
            self._failed = True

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def read_head(path: Path) -> Head | None:
    """What the file says; None if there is none, or a power cut damaged it."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    packed = content[: _HEAD.size]
    if content != packed + _CHECKSUM.pack(crc32(packed)) or len(packed) != _HEAD.size:
        return None
    return Head(*_HEAD.unpack(packed))
