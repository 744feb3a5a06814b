"""What the last visitors of a pool are expected to pay for each article: levers' costs need it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from time import monotonic
from typing import NamedTuple

import numpy as np

from topstory.kernels.compilation import Floats
from topstory.serving.service.admission import UNIT_SECONDS
from topstory.serving.service.sequencer.recent_decisions import RecentDecisions
from topstory.serving.state.decider import Decider
from topstory.serving.state.pool import context

VISITORS = 50  # the last ones
MIN_VISITORS = 5
WORK_SECONDS, TURN_SECONDS = 0.5, 0.005  # of estimating, about: in all, and without a break
KEEP_SECONDS = 5.0
ATTEMPTS = 3


class Estimates(NamedTuple):
    """By visitor and article."""

    places: dict[str, int]  # columns of articles
    expected: Floats  # (visitors, articles)
    made: float  # when


class RecentEstimates:
    """Estimates once for all who ask within some seconds, a few visitors at a time.

    With many articles and long contexts one visitor takes as long as a decision.
    """

    def __init__(self, deciders: Mapping[str, Decider], recent: RecentDecisions) -> None:
        self._deciders, self._recent = deciders, recent
        self._kept: dict[str, Estimates] = {}
        self._turn = asyncio.Lock()

    async def of(self, pool: str, article: str) -> Estimates | None:
        """With a column for this article; None if nobody came yet, or the pool changes too fast."""
        async with self._turn:
            for _ in range(ATTEMPTS):
                kept = self._kept.get(pool)
                if kept and monotonic() - kept.made < KEEP_SECONDS and article in kept.places:
                    return kept
                made = await self._make(pool)
                if made is None:
                    break
                self._kept[pool] = made
        return None

    async def _make(self, name: str) -> Estimates | None:
        pool = self._deciders[name].pool
        ids = list(pool.articles)
        each = UNIT_SECONDS * max(1, len(ids)) * pool.dimension**2  # seconds for one visitor
        last = self._recent.newest(max(MIN_VISITORS, min(VISITORS, int(WORK_SECONDS / each))), name)
        users = np.array([context(one.decided.user) for one in last])
        size = max(1, int(TURN_SECONDS / each))
        rows = []
        for done in range(0, len(users), size):
            if list(pool.articles) != ids:
                break  # an article came or went: what there is must do
            rows.append(pool.policy.estimates_all(users[done : done + size], ids))
            await asyncio.sleep(0)
        if not rows:
            return None
        places = {article: place for place, article in enumerate(ids)}
        return Estimates(places, np.concatenate(rows), monotonic())
