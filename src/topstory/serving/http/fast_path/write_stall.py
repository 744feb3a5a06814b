"""Answers that a client does not read: it is waited for as long as it reads some of them."""

from __future__ import annotations


class Unread:
    """How long nothing has been read of what waits for a client.

    >>> unread = Unread()
    >>> unread.since(size=500, now=10.0), unread.since(size=500, now=30.0)
    (10.0, 10.0)
    >>> unread.since(size=400, now=40.0)
    40.0
    """

    def __init__(self) -> None:
        self._size: int | None = None
        self._since = 0.0

    def since(self, size: int, now: float) -> float:
        """The time of the last look at which less waited than before; `size` bytes wait now."""
        if self._size is None or size < self._size:
            self._since = now
        self._size = size
        return self._since

    def forget(self) -> None:
        """Enough was read."""
        self._size = None
