"""How much one visitor may teach: so many decisions an hour."""

from __future__ import annotations

from topstory.serving.journal.clock import SECOND

HOUR = 3_600 * SECOND
MAX_VISITORS = 200_000  # remembered at a time


class VisitorCaps:
    """Counts the decisions of each visitor in this hour. Each process counts its own.

    >>> caps = VisitorCaps(2)
    >>> [caps.teaches("ann", at=0) for _ in range(3)], caps.teaches("ann", at=HOUR)
    ([True, True, False], True)
    """

    def __init__(self, cap: int) -> None:
        self._cap, self._hour = cap, 0
        self._counts: dict[str, int] = {}
        self.exceeded = 0  # decisions that did not teach

    def teaches(self, visitor: str, at: int) -> bool:
        """Count a decision; whether the policy may learn from it."""
        counts = self._counts
        if at // HOUR != self._hour or len(counts) > MAX_VISITORS:
            self._hour = at // HOUR
            counts.clear()
        counts[visitor] = count = counts.get(visitor, 0) + 1
        self.exceeded += count > self._cap
        return count <= self._cap
