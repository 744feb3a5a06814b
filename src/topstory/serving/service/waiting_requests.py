"""Requests for decisions that wait for their turn, by pool."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from topstory.serving.service.proposals import PendingRequest


class WaitingRequests:
    """Lines of requests: first come, first served.

    What is done with them in a turn takes as long as those that are served: not as long as all.
    """

    def __init__(self) -> None:
        self._lines: dict[str, deque[PendingRequest]] = {}  # none of them is empty

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, request: PendingRequest) -> None:
        """It comes last."""
        line = self._lines.get(request.pool)
        if line is None:
            line = self._lines[request.pool] = deque()
        line.append(request)

    def add_first(self, requests: Sequence[PendingRequest]) -> None:
        """These come before all others, in this order."""
        for each in reversed(requests):
            if each.pool not in self._lines:
                self._lines[each.pool] = deque()
            self._lines[each.pool].appendleft(each)

    def counts(self) -> dict[str, int]:
        """How many wait, by pool."""
        return {pool: len(line) for pool, line in self._lines.items()}

    def take_before(self, time: float) -> list[PendingRequest]:
        """Those at the heads of the lines that were asked before this time."""
        taken = []
        for pool, line in list(self._lines.items()):
            while line and line[0].asked < time:
                taken.append(line.popleft())
            if not line:
                del self._lines[pool]
        return taken

    def take(self, pool: str, most: int) -> list[PendingRequest]:
        """The first ones of a line, or all."""
        line = self._lines[pool]
        if len(line) <= most:
            del self._lines[pool]
            return list(line)
        return [line.popleft() for _ in range(most)]
