"""Edits and visitors of a pool take turns: a request waits for at most one edit."""

from __future__ import annotations

import asyncio

WAIT_SECONDS = 0.1  # an edit waits no longer for a front end: its worker may have died


class EditTurns:
    """The front ends that an edit of a pool delayed, and that so come before the next edit.

    >>> turns = EditTurns()
    >>> turns.delay("front", "a worker")
    >>> list(turns.delayed)
    ['front']
    >>> turns.served("front", "a worker")
    >>> list(turns.delayed)
    []
    """

    def __init__(self) -> None:
        self.delayed: dict[str, set[object]] = {}  # by pool: its next edit waits for them
        self._served: dict[str, asyncio.Event] = {}

    def delay(self, pool: str, source: object) -> None:
        """An edit made this front end wait: the next edit waits for it."""
        if pool not in self.delayed:
            self._served[pool] = asyncio.Event()
        self.delayed.setdefault(pool, set()).add(source)

    def served(self, pool: str, source: object) -> None:
        """The front end has its answers."""
        waiting = self.delayed.get(pool)
        if waiting is not None:
            waiting.discard(source)
            if not waiting:
                self._release(pool)

    async def wait(self, pool: str) -> None:
        """Until those who were delayed have been served."""
        served = self._served.get(pool)
        if served is None:
            return
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await served.wait()
        except TimeoutError:
            if self._served.get(pool) is served:
                self._release(pool)

    def _release(self, pool: str) -> None:
        del self.delayed[pool]
        self._served.pop(pool).set()
