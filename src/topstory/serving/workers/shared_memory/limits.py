"""Limits that hold for all workers together: each key's rate, and connections.

They lie in memory that all workers have mapped. Each worker alone writes its own number of
connections. All read and write a key's tokens without a lock: if two meet within the same
microsecond, one request too many may pass, but nobody ever waits.
"""

from __future__ import annotations

import os
from mmap import mmap

from topstory.serving.workers.shared_memory.double_buffer import memory


class SharedLimits:
    """The limits, in memory of their own or in that behind a descriptor.

    >>> limits = SharedLimits(keys=2, workers=3)
    >>> limits.tokens[1] = 10.0
    >>> again = SharedLimits(keys=2, workers=3, descriptor=limits.descriptor)
    >>> again.tokens[1], again.connected(2, 5), limits.connected(0, 1)
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
        """Set how many connections a worker has; returns how many all have."""
        self._connections[worker] = connections
        return int(sum(self._connections))
