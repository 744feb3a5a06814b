"""Room for connections: who is closed when there are too many, and who is answered all the same."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

# Takes the number of connections of this process; returns that of all processes.
CountConnections = Callable[[int], int]

RESERVED = 64  # connections above the limit: for health checks, and to deliver errors


class Held(Protocol):
    """A connection, as far as it matters whether it can be spared."""

    known: bool  # it has sent a valid API key
    since: float  # when it was last heard of

    def spare(self) -> bool:
        """Whether nothing is owed to its client."""
        ...

    def evict(self) -> None:
        """Close it."""
        ...


class ConnectionRoom:
    """The connections of one process.

    With several processes, one that has no more than its share is never short: the others are to
    close theirs.
    """

    def __init__(
        self, limit: int, processes: int = 1, count: CountConnections = lambda here: here
    ) -> None:
        self._limit, self._share, self.count = limit, limit // processes, count
        self.evicted = 0  # closed for lack of room, but not gone yet

    def excess(self, here: int) -> int:
        """How many connections there are above the limit; 0 or less: there is room."""
        total = self.count(here) - self.evicted
        return min(total - self._limit, here - self.evicted - self._share)

    def made(self, others: Collection[Held]) -> int:
        """The excess with one more connection, after some that can be spared were closed.

        Strangers first, then the longest silent. Several at a time: looking for them takes long.
        """
        here = len(others) + 1
        excess = self.excess(here)
        if excess <= 0:
            return excess
        spare = sorted(
            (each for each in others if each.spare()),
            key=lambda each: (each.known, each.since),
        )
        for each in spare[: max(excess, self._limit // 64)]:
            self.evicted += 1
            each.evict()
        return self.excess(here)
