"""A stretch of time in the simulated world: its articles, its pools, and what draws clicks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import ArrayRecord, Floats
from topstory.events.columns.pools import PoolTable
from topstory.events.simulator.newsroom import Newsroom, SimulatedArticle, day_curve, topics_of
from topstory.events.simulator.settings import WorldSettings
from topstory.events.simulator.taste import Taste


@dataclass(frozen=True, eq=False)
class WorldWindow(ArrayRecord):
    """Hours from `start` on, laid out for the kernels.

    An hour's pool and the log-odds of a click on each of its articles do not change within it.
    """

    start: int  # hours since 1970
    articles: tuple[SimulatedArticle, ...]  # of all pools, in order of birth
    offsets: npt.NDArray[np.int64]  # (H + 1,) where the pool of each hour begins in members
    members: npt.NDArray[np.int32]  # indices into articles
    intercept: Floats  # beside members: log-odds of a click for a user of no group at all
    appeal: Floats  # (A, GROUPS) what each group adds to them
    share: Floats  # (H + 1,) the share of the visits that come before each hour

    @classmethod
    def of(
        cls, newsroom: Newsroom, taste: Taste, start: int, hours: int, level: float
    ) -> WorldWindow:
        """Lay out the hours from `start`; `level` is added to all log-odds."""
        pools = [newsroom.pool(hour) for hour in range(start, start + hours)]
        articles = tuple(sorted({a for pool in pools for a in pool}, key=lambda a: a.id))
        place = {article.id: i for i, article in enumerate(articles)}
        intercept = [
            level + newsroom.odds(a, hour) for hour, pool in enumerate(pools, start) for a in pool
        ]
        return cls(
            start=start,
            articles=articles,
            offsets=np.cumsum([0, *map(len, pools)], dtype=np.int64),
            members=np.array([place[a.id] for pool in pools for a in pool], np.int32),
            intercept=np.array(intercept),
            appeal=taste.appeal(articles),
            share=_shares(newsroom.settings, start, hours),
        )

    @property
    def hours(self) -> int:
        """How many."""
        return len(self.offsets) - 1

    @cached_property
    def index(self) -> dict[str, int]:
        """Article id -> index."""
        return {article.id: i for i, article in enumerate(self.articles)}

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Of the articles, in order."""
        return tuple(article.id for article in self.articles)

    @cached_property
    def topics(self) -> Floats:
        """(A, GROUPS) what the articles are about."""
        return topics_of(self.articles)

    @cached_property
    def pools(self) -> PoolTable:
        """The hours' pools."""
        return PoolTable(self.offsets, self.members)

    def chances(self, hour: int, mixes: npt.NDArray[np.float32]) -> Floats:
        """(n, K) the probability that each user clicks on each article of an hour's pool."""
        rows = slice(self.offsets[hour], self.offsets[hour + 1])
        odds = self.intercept[rows] + mixes @ self.appeal[self.members[rows]].T
        chances: Floats = 1 / (1 + np.exp(-odds))
        return chances


def _shares(have: WorldSettings, start: int, hours: int) -> Floats:
    swing = min(have.busy_hours, 0.99)
    visits = [1 + swing * day_curve(hour) for hour in range(start, start + hours)]
    total: Floats = np.cumsum([0.0, *visits])
    total /= total[-1]
    return total
