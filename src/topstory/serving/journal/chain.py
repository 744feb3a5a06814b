"""Checksums of records, and the chain of batches: each batch depends on all that came before."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from struct import Struct
from typing import Any, NamedTuple
from zlib import crc32

from topstory.serving.journal.journal import DamagedJournal

_place = Struct("<qq").pack
_epoch = Struct("<I")
MARK_BYTES = 16


@lru_cache(maxsize=256)  # those of a commit's usual sizes are not made anew each time
def _integers(count: int, kind: str) -> Struct:
    """So many integers of 32 bits, with a sign (i) or without (I)."""
    return Struct(f"<{count}{kind}")


class Head(NamedTuple):
    """The end of a batch: the number of its last record, and its mark."""

    number: int
    mark: bytes  # the owner's epoch, and a hash of the batch and of the mark before it


def checksum(number: int, at: int, body: bytes) -> int:
    """The checksum of a record in its place, as 32 bits with a sign.

    >>> checksum(1, 1_000, b"body") == checksum(2, 1_000, b"body")
    False
    """
    return (crc32(body, crc32(_place(number, at))) ^ 0x80000000) - 0x80000000


def checksums_of(
    numbers: Sequence[int], times: Sequence[int], bodies: Sequence[bytes]
) -> list[int]:
    """The checksum of each record of a batch, without a call of ours for each.

    >>> checksums_of([1, 2], [1_000, 1_000], [b"a", b"b"])[1] == checksum(2, 1_000, b"b")
    True
    """
    unsigned = map(crc32, bodies, map(crc32, map(_place, numbers, times)))
    return list(_integers(len(bodies), "i").unpack(_integers(len(bodies), "I").pack(*unsigned)))


def mark_of(previous: bytes, epoch: int, checksums: Sequence[int]) -> bytes:
    """The mark of a batch: no other batch, and no other owner's, has the same.

    >>> first = mark_of(bytes(16), 1, [7])
    >>> len(first), first == mark_of(bytes(16), 2, [7]), first == mark_of(first, 1, [7])
    (16, False, False)
    """
    owner = _epoch.pack(epoch)
    body = _integers(len(checksums), "i").pack(*checksums)
    return owner + blake2b(previous + owner + body, digest_size=MARK_BYTES - 4).digest()


class ChainCheck:
    """Checks records in their order against the marks of their batches.

    Up to the record `start.number` some may be missing, since they were archived. From there on
    every record must be there.
    """

    def __init__(self, start: Head) -> None:
        self.head = start  # the last batch that was whole
        self._number = 0
        self._checksums: list[int] = []

    def add(self, number: int, found: int | None, mark: Any) -> None:
        """The next record, its checksum, and the mark if a batch ends with it."""
        if found is None:
            raise DamagedJournal(f"record {number} is damaged: it has no checksum")
        if number <= self.head.number:
            return
        self._number = number
        self._checksums.append(found)
        if mark is None:
            return
        known = isinstance(mark, bytes) and len(mark) == MARK_BYTES
        (epoch,) = _epoch.unpack_from(mark) if known else (0,)
        if mark_of(self.head.mark, epoch, self._checksums) != mark:
            raise DamagedJournal(
                f"the batch after record {self.head.number}, up to record {number}, is damaged: "
                "records are missing or were changed"
            )
        self.head, self._checksums = Head(number, mark), []

    def finish(self, end: int = 0) -> None:
        """No record follows, and the last one should be this at least."""
        if self._checksums:
            raise DamagedJournal(f"the batch of the last record, {self._number}, has no end")
        if self.head.number < end:
            raise DamagedJournal(f"records after {self.head.number}, up to {end}, are missing")
