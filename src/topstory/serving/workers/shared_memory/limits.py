"""Limits that hold for all workers together: what is left of each key's rate, and connections.

It lies in memory that all workers have mapped. A worker's number of connections is written by that
worker alone. What is left of a key's rate is read and written by all without a lock: two that meet
within the same microsecond may let one request more through, and none is ever held up.
"""

from __future__ import annotations

import os
from mmap import mmap

from topstory.serving.workers.shared_memory.double_buffer import memory


class Board:
    """The board, on memory of its own or on that behind a descriptor.

    >>> board = Board(keys=2, workers=3)
    >>> board.tokens[1] = 10.0
    >>> again = Board(keys=2, workers=3, descriptor=board.descriptor)
    >>> again.tokens[1], again.connected(2, 5), board.connected(0, 1)
    (10.0, 5, 6)
    """

    def __init__(self, keys: int, workers: int, descriptor: int | None = None) -> None:
        length = 8 * (2 * keys + workers)
        if descriptor is None:
            descriptor = memory()
            os.truncate(descriptor, length)
        self.descriptor = descriptor
        places = memoryview(mmap(descriptor, length)).cast("d")
        self.tokens = places[:keys]
        self.seen = places[keys : 2 * keys]
        self._connections = places[2 * keys :]

    def connected(self, worker: int, connections: int) -> int:
        """Note how many a worker has; how many all have."""
        self._connections[worker] = connections
        return int(sum(self._connections))
