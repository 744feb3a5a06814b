"""A state as it was at one moment, copied a few articles at a time while it goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Self

import msgspec
import numpy as np

from topstory.policies import Policy
from topstory.serving.journal.records import Excluded
from topstory.serving.state.state import State

STEP_SECONDS = 0.005  # of copying without a break


@dataclass(frozen=True)
class StateCopy:
    """To be written to files."""

    number: int
    at: int
    dimension: int
    config: dict[str, Any]
    policies: Mapping[str, Policy]
    previous: Mapping[str, Policy]  # those before, where there is one
    facts: Mapping[str, bytes]  # articles, tallies and when they were taught, as JSON
    mark: bytes | None
    exclusions: tuple[Excluded, ...]
    cuts: dict[int, int]

    @classmethod
    def of(cls, state: State) -> StateCopy:
        """Copy all of it at once."""
        with StateCopying(state) as copying:
            while copying.step():
                pass
        return copying.copy


class StateCopying:
    """Makes a copy in steps; used as a context, which is left when all are done.

    Articles' matrices are nearly all of a state's memory: a gigabyte takes a second to copy. The
    rest is copied at once. Pools announce articles that are about to change, and those are copied
    before. So whatever happens between two steps, the copy is of the moment when it began.
    """

    def __init__(self, state: State) -> None:
        pools = self._pools = dict(state.pools)
        facts = {
            name: msgspec.json.encode(
                {
                    **{"articles": pool.articles, "tally": pool.tally, "taught": pool.taught},
                    **{"edits": pool.edits, "changes": pool.changes, "promoted": pool.promoted},
                    "seen": pool.seen_by_visitor(),
                }
            )
            for name, pool in pools.items()
        }
        self._policies = {name: PolicyCopying(pool.policy) for name, pool in pools.items()}
        # Their matrices do not change any more.
        previous = {
            name: PolicyCopying(pool.previous)
            for name, pool in pools.items()
            if pool.previous is not None
        }
        self._left = [*self._policies.values(), *previous.values()]
        self.copy = StateCopy(
            *(state.number, state.at, state.dimension, dict(state.config)),
            {name: each.copy for name, each in self._policies.items()},
            {name: each.copy for name, each in previous.items()},
            *(facts, state.mark, tuple(state.exclusions), dict(state.cuts)),
        )

    def step(self) -> bool:
        """Copy for some milliseconds; whether there is more to do."""
        while self._left:
            if self._left[-1].step():
                return True
            self._left.pop()
        return False

    def __enter__(self) -> Self:
        for name, each in self._policies.items():
            self._pools[name].sketches.append(each)
        return self

    def __exit__(self, *_: object) -> None:
        for name, each in self._policies.items():
            self._pools[name].sketches.remove(each)


class PolicyCopying:
    """A policy's copy, and the articles whose matrices are not in it yet."""

    def __init__(self, policy: Policy) -> None:
        model = policy.model
        whole = [
            getattr(model.state, field)
            for field, rows in model.learned().items()  # others may change by scoring, unannounced
            if field in model.per_article and rows.ndim > 2
        ]
        self._matrices = [(array, np.empty_like(array)) for array in whole]
        self._left = dict.fromkeys(range(len(model.roster.ids)))  # slots
        self.copy = deepcopy(policy, {id(array): twin for array, twin in self._matrices})

    def keep(self, slots: Iterable[int]) -> None:
        """Copy these articles now, unless that is done: they are about to change."""
        for slot in self._left.keys() & set(slots):
            self._copy(slot)

    def step(self) -> bool:
        """Copy for some milliseconds; whether there is more to do."""
        until = perf_counter() + STEP_SECONDS
        while self._matrices and self._left:
            self._copy(next(iter(self._left)))
            if perf_counter() > until:
                return bool(self._left)
        return False

    def _copy(self, slot: int) -> None:
        del self._left[slot]
        for array, twin in self._matrices:
            twin[slot] = array[slot]
