"""Bounds on how much the policy learns from one visitor, one API key or one context.

The sequencer asks, which sees the decisions of all processes, and records the answer: so a fold of
the journal needs none of the counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from struct import Struct

import msgspec

from topstory.models.linear import LinearModel
from topstory.serving.config.schema import Config
from topstory.serving.journal.clock import SECOND
from topstory.serving.journal.records import Decided
from topstory.serving.state.state import State

HOUR = 3_600 * SECOND
MAX_COUNTED = 200_000  # visitors remembered at a time


class HourlyCounts:
    """How often each visitor or key came in this hour.

    >>> counts = HourlyCounts()
    >>> [counts.add("ann", at=0) for _ in range(3)], counts.add("ann", at=HOUR)
    ([1, 2, 3], 1)
    """

    def __init__(self) -> None:
        self._hour = 0
        self._counts: dict[Hashable, int] = {}

    def add(self, who: Hashable, at: int) -> int:
        """Count one more; how many there are now."""
        counts = self._counts
        if at // HOUR != self._hour or len(counts) > MAX_COUNTED:
            self._hour = at // HOUR
            counts.clear()
        counts[who] = count = counts.get(who, 0) + 1
        return count


class Influence:
    """Which decisions and payoffs the policy learns from, and with what weight."""

    def __init__(self, config: Config, state: State) -> None:
        limits = config.limits
        self._state = state
        self._visitor_cap = limits.visitor_decisions
        self._key_caps = {
            key.name: key.taught_per_hour for key in config.keys if key.taught_per_hour is not None
        }
        self.caps_keys = bool(self._key_caps)
        self._visitors, self._keys, self._payoffs = HourlyCounts(), HourlyCounts(), HourlyCounts()
        norm, accepted = limits.taught_norm, limits.context_norm
        shorter = norm is not None and (accepted is None or norm < accepted)
        self._squared = None if norm is None or not shorter else norm**2
        self._unpack = Struct(f"<{config.context}d").unpack
        self._bounded: Counter[str] = Counter()

    def bounded(self, decided: Sequence[Decided], at: int) -> Sequence[Decided]:
        """The decisions, each with whether the policy may learn from it, and how much."""
        result: list[Decided] | None = None
        for place, each in enumerate(decided):
            if not each.teaches:
                continue
            weight: bool | float = True
            cap = self._key_caps.get(each.key) if self._key_caps else None
            # A visitor's pseudonym is of one pool; each pool has a model of its own.
            if each.visitor and self._visitors.add(each.visitor, at) > self._visitor_cap:
                self._bounded["visitor"] += 1
                weight = False
            elif cap is not None and self._keys.add((each.pool, each.key), at) > cap:
                self._bounded["key"] += 1
                weight = False
            elif self._squared is not None:
                weight = self._clipped(each, self._squared)
            if weight != 1:
                result = list(decided) if result is None else result
                result[place] = msgspec.structs.replace(each, teaches=weight)
        return decided if result is None else result

    def _clipped(self, decided: Decided, most: float) -> bool | float:
        """The weight with which a context counts no more than one of the greatest length taught.

        With weight w, A grows by w·x·xᵀ. Since A is at least ridge·I, the leverage w·xᵀA⁻¹x is at
        most w·|x|²/ridge. Models that only count are not moved by a context's length.
        """
        if not isinstance(self._state.pools[decided.pool].policy.model, LinearModel):
            return True
        squared = sum(value * value for value in self._unpack(decided.user))
        if squared <= most:
            return True
        self._bounded["leverage"] += 1
        return float(most / squared)

    def counts_payoff(self, pool: str, key: str, at: int) -> bool:
        """Whether the policy may learn from one more payoff that this key reports."""
        cap = self._key_caps.get(key) if self._key_caps else None
        if cap is None or self._payoffs.add((pool, key), at) <= cap:
            return True
        self._bounded["key"] += 1
        return False

    def take(self) -> dict[str, int]:
        """What was bounded since the last call, by why."""
        taken = {kind: self._bounded[kind] for kind in ("visitor", "key", "leverage")}
        self._bounded.clear()
        return taken
