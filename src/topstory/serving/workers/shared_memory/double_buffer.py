"""Two buffers of memory that one process writes and others read in place.

    head: turn, what each buffer holds (0: it is being written), how long each is
    buffer 0, buffer 1: turn t is in buffer t % 2

The writer fills the buffer that readers do not use, then switches to it: so a reader never waits,
even if the writer dies. Only a reader that was suspended over two turns finds its buffer
overwritten, and reads again. The memory has no name: it is freed with the last process that has it.
"""

from __future__ import annotations

import os
import tempfile
import threading
from mmap import PAGESIZE, mmap

_TURN, _HOLDS, _LENGTH = 0, 1, 3  # places in the head


class Writer:
    """The one process that writes.

    >>> writer = Writer()
    >>> reader = Reader(writer.descriptors)
    >>> writer.begin(5)[:5] = b"hello"
    >>> writer.publish()
    >>> turn, buffer = reader.latest()
    >>> buffer[:5], reader.holds(turn)
    (b'hello', True)
    """

    def __init__(self) -> None:
        self.descriptors = (memory(), memory(), memory())
        os.truncate(self.descriptors[0], PAGESIZE)
        self._head = memoryview(mmap(self.descriptors[0], PAGESIZE)).cast("Q")
        self._buffers = [self._sized(place, PAGESIZE) for place in (0, 1)]

    @property
    def turn(self) -> int:
        """How often it was published."""
        return self._head[_TURN]

    @property
    def next(self) -> int:
        """The buffer that is written next."""
        return (self._head[_TURN] + 1) % 2

    def begin(self, length: int) -> mmap:
        """The unused buffer, at least this long; the same object as long as it is long enough."""
        place = self.next
        self._head[_HOLDS + place] = 0
        _fence()
        if len(self._buffers[place]) < length:
            longer = max(length, 2 * len(self._buffers[place]))
            self._buffers[place] = self._sized(place, -longer // PAGESIZE * -PAGESIZE)
        return self._buffers[place]

    def publish(self) -> None:
        """Have readers use what was written, from now on."""
        place, turn = self.next, self._head[_TURN] + 1
        _fence()
        self._head[_HOLDS + place] = turn
        _fence()
        self._head[_TURN] = turn

    def _sized(self, place: int, length: int) -> mmap:
        """Buffers only grow: a reader that has the shorter one mapped can go on."""
        os.truncate(self.descriptors[1 + place], length)
        self._head[_LENGTH + place] = length
        return mmap(self.descriptors[1 + place], length)


class Reader:
    """A process that reads what was published last."""

    def __init__(self, descriptors: tuple[int, int, int]) -> None:
        self._descriptors = descriptors
        self._head = memoryview(mmap(descriptors[0], PAGESIZE)).cast("Q")
        self._buffers: list[mmap | None] = [None, None]

    def latest(self) -> tuple[int, mmap]:
        """The turn and its buffer: the same object as before, unless it has grown."""
        turn = self._head[_TURN]
        place = turn % 2
        buffer, length = self._buffers[place], self._head[_LENGTH + place]
        if buffer is None or len(buffer) < length:
            buffer = self._buffers[place] = mmap(self._descriptors[1 + place], length)
        return turn, buffer

    def holds(self, turn: int) -> bool:
        """Whether everything that was read since `latest` gave this turn belongs to it."""
        _fence()
        return self._head[_HOLDS + turn % 2] == turn


_lock = threading.Lock()


def _fence() -> None:
    """A memory barrier: on x86 not needed for these, elsewhere by the lock."""
    with _lock:
        pass


def memory() -> int:
    """The descriptor of anonymous memory that can be mapped and grown."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("topstory")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
