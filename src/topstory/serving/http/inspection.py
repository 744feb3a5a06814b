"""What takes long to compute of the state: from a copy, in a thread, once for all who ask."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from topstory.serving.state.state import State, StateSketch


@dataclass(frozen=True)
class Inspection:
    """The state at one moment."""

    number: int  # of its last record
    fingerprint: str
    drift: dict[str, float]  # by pool: how far its model has drifted by rounding


class Inspector:
    """Inspects a state while it goes on. Everybody who asks gets one that began after that."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._lock = asyncio.Lock()
        self._begun = 0
        self._last: tuple[int, Inspection] | None = None

    async def inspect(self) -> Inspection:
        """The state as it is now, or a little later."""
        asked = self._begun
        async with self._lock:
            if self._last is not None and self._last[0] > asked:
                return self._last[1]
            self._begun += 1
            begun, sketch = self._begun, self._state.sketch()
            found = await asyncio.to_thread(_inspect, sketch)
            self._last = begun, found
            return found


def _inspect(sketch: StateSketch) -> Inspection:
    drift = {
        name: policy.model.drift() if len(policy.model.roster) else 0.0
        for name, (_, policy) in sketch.pools.items()
    }
    return Inspection(sketch.number, sketch.fingerprint(), drift)
