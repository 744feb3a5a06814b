"""Editors and visitors of a pool take turns: however many edits wait, a visitor waits for one."""

from __future__ import annotations

import asyncio

PATIENCE = 0.1  # seconds that an edit waits for visitors: a worker may be gone with them


class Turns:
    """Who was held up by an edit of a pool, and so comes before the next one.

    >>> turns = Turns()
    >>> turns.hold("front", "a worker")
    >>> turns.held()
    ('front',)
    >>> turns.through("front", "a worker")
    >>> turns.held()
    ()
    """

    def __init__(self) -> None:
        self._held: dict[str, set[object]] = {}  # by pool
        self._through: dict[str, asyncio.Event] = {}

    def held(self) -> tuple[str, ...]:
        """The pools whose next edit has to wait."""
        return tuple(self._held)

    def hold(self, pool: str, who: object) -> None:
        """An edit made them wait: the next one waits for them."""
        if pool not in self._held:
            self._through[pool] = asyncio.Event()
        self._held.setdefault(pool, set()).add(who)

    def through(self, pool: str, who: object) -> None:
        """They were decided for."""
        held = self._held.get(pool)
        if held is not None:
            held.discard(who)
            if not held:
                self._let_go(pool)

    async def wait(self, pool: str) -> None:
        """Until those who were held up are through."""
        through = self._through.get(pool)
        if through is None:
            return
        try:
            async with asyncio.timeout(PATIENCE):
                await through.wait()
        except TimeoutError:
            if self._through.get(pool) is through:
                self._let_go(pool)

    def _let_go(self, pool: str) -> None:
        del self._held[pool]
        self._through.pop(pool).set()
