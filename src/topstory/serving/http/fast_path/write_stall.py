"""How long a client has read nothing of its responses."""

from __future__ import annotations


class WriteStall:
    """Watches the bytes that wait to be read by a client.

    >>> stall = WriteStall()
    >>> stall.since(size=500, now=10.0), stall.since(size=500, now=30.0)
    (10.0, 10.0)
    >>> stall.since(size=400, now=40.0)
    40.0
    """

    def __init__(self) -> None:
        self._size: int | None = None
        self._since = 0.0

    def since(self, size: int, now: float) -> float:
        """When the client last read something, given that `size` bytes wait now."""
        if self._size is None or size < self._size:
            self._since = now
        self._size = size
        return self._since

    def reset(self) -> None:
        """The client has caught up."""
        self._size = None
