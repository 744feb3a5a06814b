"""What takes long to compute of the state: in a thread, once for all who ask."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from topstory.serving.state.sketch import StateSketch
from topstory.serving.state.state import State


@dataclass(frozen=True)
class StateInspection:
    """The state at one moment."""

    number: int  # of its last record
    fingerprint: str
    drift: dict[str, float]  # by pool: how far its model has drifted by rounding


class Inspector:
    """Inspects a state while it goes on, one inspection at a time."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._running: asyncio.Task[StateInspection] | None = None
        self.last: StateInspection | None = None

    async def inspect(self) -> StateInspection:
        """The state as it is now, or a little later."""
        asked = self._state.number
        while self.last is None or self.last.number < asked:
            running = self._run()
            await asyncio.wait([running])
            self.last = running.result()
        return self.last

    async def recent(self, seconds: float) -> StateInspection | None:
        """The state as it is now if that takes no longer than this, else the last inspection.

        The one that takes longer goes on, for those who ask later.
        """
        try:
            return await asyncio.wait_for(self.inspect(), seconds)
        except TimeoutError:
            return self.last

    def _run(self) -> asyncio.Task[StateInspection]:
        """The inspection that is under way: it goes on if those who wait for it are gone."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._inspect())
        return self._running

    async def _inspect(self) -> StateInspection:
        with self._state.sketch() as sketch:
            return await asyncio.to_thread(_read, sketch)


def _read(sketch: StateSketch) -> StateInspection:
    return StateInspection(sketch.number, sketch.fingerprint(), sketch.drift())
