"""Decisions made while the database cannot be reached: on this machine's disk until it can.

Each time has a node of its own, registered while the database was there. So the numbers of its
decisions are known before they are handed in, and can be answered with. A file that a process left
behind when it died is handed in by the next one that starts in the folder.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import IO

from msgspec.structs import replace

from topstory.files import locked, sync
from topstory.serving.fleet.inbox import Batch, Inbox, NewDecision
from topstory.serving.fleet.origins import origin_of
from topstory.serving.journal.records import Decided, decode, encode

log = logging.getLogger("topstory.serving")

FOLDER = "late"  # in the data folder
MAX_LATE = 200_000  # decisions that may wait here
HANDED_IN_AT_ONCE = 1_000
ANY_EDITION = 2**62  # nobody could see the edits that came meanwhile
_LENGTH = Struct("<I")


class Spool:
    """A file of decisions that wait. Writing and handing in are for one thread at a time."""

    def __init__(self, folder: Path, name: str = "") -> None:
        self._folder, self._name = folder / FOLDER, name
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # contexts are private
        self._node: int | None = None
        self._file: IO[bytes] | None = None
        self.waiting = 0

    @property
    def usable(self) -> bool:
        """Whether decisions can be made without the database."""
        return self._file is not None and self.waiting < MAX_LATE

    def prepare(self, inbox: Inbox) -> None:
        """Hand in what waits, and get ready for the next time; JournalError."""
        if self._file is not None:
            if not self.waiting:
                return
            self._file.close()
            self._file, self.waiting = None, 0
        for path in sorted(self._folder.glob("*.node")):
            self._hand_in(inbox, path)
        self._node = inbox.new_node(self._name, late=True)
        self._file = locked(self._folder / f"{self._node}.node")
        sync(self._folder)

    def write(self, decided: Sequence[Decided]) -> tuple[int, list[Decided]]:
        """Put decisions on the disk, marked; the origin of the first. OSError if that fails."""
        assert self._file is not None
        assert self._node is not None
        marked = [replace(each, late=True) for each in decided]
        bodies = [encode(each) for each in marked]
        self._file.write(b"".join(_LENGTH.pack(len(body)) + body for body in bodies))
        self._file.flush()
        os.fsync(self._file.fileno())
        first = origin_of(self._node, self.waiting + 1)
        self.waiting += len(marked)
        return first, marked

    def close(self) -> None:
        """Let the next process have the file."""
        if self._file is not None:
            self._file.close()
            if not self.waiting:
                (self._folder / f"{self._node}.node").unlink(missing_ok=True)

    def _hand_in(self, inbox: Inbox, path: Path) -> None:
        try:
            held = locked(path)
        except BlockingIOError:  # of another process that is alive
            return
        with held:
            records, node = list(_records(path.read_bytes())), int(path.stem)
            done, batch = inbox.progress(node)
            at = inbox.now()
            while done < len(records):
                rows = [
                    NewDecision(each.pool, ANY_EDITION, None, each)
                    for each in records[done : done + HANDED_IN_AT_ONCE]
                ]
                batch += 1
                inbox.hand_in(node, Batch(batch, at, 0, rows, ()))
                done += len(rows)
            if records:
                log.warning("%d decisions made without the database were handed in", len(records))
            path.unlink()


def _records(content: bytes) -> Iterator[Decided]:
    """The decisions in a file; the last one may be torn, then nobody was told of it."""
    begin = 0
    while begin + _LENGTH.size <= len(content):
        (length,) = _LENGTH.unpack_from(content, begin)
        begin += _LENGTH.size
        if begin + length > len(content):
            return
        record = decode(content[begin : begin + length])
        assert isinstance(record, Decided)
        yield record
        begin += length
