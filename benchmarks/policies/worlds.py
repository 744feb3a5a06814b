"""Simulated weeks, what an earlier log teaches about them, and live play in them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

import topstory as ts
from benchmarks.measuring import say

EARLIER, WEEK, USERS = "2009-04-20", "2009-05-03", 10_000
EXPLORED = 300_000  # events of the earlier log
DEPLOYED_EVERY = 3  # visits: how often the greedy choice is asked for, beside the policy's own
DRIFT = {"taste_turn": 0.1, "popularity_drift": 0.05}  # of a world whose tastes move

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Week:
    """The visits of a week, with every click decided in advance, and what came before it."""

    users: Floats  # (n, d)
    seconds: Floats  # (n,) when
    pools: list[tuple[str, ...]]  # of each visit
    chances: list[Floats]  # the true click probabilities of each visit's pool
    clicks: list[npt.NDArray[np.bool_]]
    teaches: Floats  # (n,) uniform: a visit teaches at a size above it, whatever the policy
    articles: dict[str, Any]
    prior: ts.Prior
    offset: dict[str, Any]

    def policy(self, name: str, seed: int, given: dict[str, Any]) -> ts.Policy:
        """A policy that knows the articles, and what the earlier log teaches."""
        learned: dict[str, Any] = {"prior": self.prior} if name.endswith("-prior") else {}
        if name.endswith("-warm"):
            learned["offset"] = self.offset
        made = ts.policy(name, seed=seed, **given, **learned)
        for article, features in self.articles.items():
            made.add_article(article, features)
        return made

    def play(self, policy: ts.Policy, size: float = 1.0, delay: float = 0.0) -> dict[str, float]:
        """The true relative CTR of both buckets, by live play.

        Args:
            policy: it chooses at every visit, and learns.
            size: from which share of the visits.
            delay: minutes after which it learns what a visit paid.
        """
        deployed = ts.Policy(policy.model, ts.Greedy(), policy.seed)  # it sees the same model
        waiting: deque[int] = deque()
        shown = np.empty(len(self.users), np.int64)
        sums, counts = np.zeros(3), np.zeros(2)
        start = 0
        while start < len(self.users):
            policy.advance(float(self.seconds[start]))
            while waiting and self._known(waiting[0], delay) <= self.seconds[start]:
                i = waiting.popleft()
                article = self.pools[i][shown[i]]
                policy.learn(self.users[i], article, float(self.clicks[i][shown[i]]))
            stop, pool = self._stop(start, size, delay, waiting), self.pools[start]
            place = {article: j for j, article in enumerate(pool)}
            rows = self.users[start:stop]
            chosen = (
                policy.choose_all(rows, pool)
                if stop - start > 1
                else [policy.choose(rows[0], pool)]
            )
            asked = range(-start % DEPLOYED_EVERY, stop - start, DEPLOYED_EVERY)
            best = deployed.choose_all(rows[asked], pool) if len(asked) else []
            for offset, choice in enumerate(chosen):
                i = start + offset
                shown[i] = place[choice.article]
                sums += (0.0, self.chances[i][shown[i]], self.chances[i].mean())
                if self.teaches[i] < size:
                    waiting.append(i)
            for offset, choice in zip(asked, best, strict=True):
                sums[0] += self.chances[start + offset][place[choice.article]]
            counts += (len(asked), stop - start)
            start = stop
        random = sums[2] / counts[1]
        deployment, learning = sums[:2] / counts / random
        return {"deployment": float(deployment), "learning": float(learning)}

    def _known(self, visit: int, delay: float) -> float:
        return float(self.seconds[visit] + 60 * delay)

    def _stop(self, start: int, size: float, delay: float, waiting: deque[int]) -> int:
        """Up to which visit nothing is learned and the pool stays, so that all are one batch."""
        due = self._known(waiting[0], delay) if waiting else np.inf
        stop, end = start, len(self.users)
        while stop < end and self.pools[stop] is self.pools[start] and self.seconds[stop] < due:
            if self.teaches[stop] < size:
                due = min(due, self._known(stop, delay))
            stop += 1
        return max(stop, start + 1)


@lru_cache(maxsize=1)  # a week takes a hundred megabytes, and runs go world by world
def week(seed: int, visits: int, taste_turn: float = 0.0, popularity_drift: float = 0.0) -> Week:
    """The week of one world; its features were learned from the fortnight before.

    Args:
        seed: the world's.
        visits: how many the week has.
        taste_turn: radians a day.
        popularity_drift: of stories' log-odds, an hour.
    """
    say(f"simulating world {seed}")
    world = ts.TodayModule(
        seed, users=USERS, taste_turn=taste_turn, popularity_drift=popularity_drift
    )
    raw = world.random_log(EXPLORED, EARLIER, 12, seed=1, raw=True)
    builder = ts.FeatureBuilder(support=0.01, engine="serial").fit(raw)
    explored = builder.apply(raw)
    found = list(world.visits(visits, WEEK, 7, seed=2, features=builder))
    random = np.random.default_rng(seed)
    chances = [visit.chances for visit in found]
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    # Of every article of the week: its features, as the builder makes them.
    articles = world.random_log(20 * 24 * 7, WEEK, 7, seed=3, features=builder).articles
    return Week(
        users=np.array([visit.user for visit in found], np.float64),
        seconds=np.array([visit.timestamp.timestamp() for visit in found]),
        pools=[known.setdefault(visit.pool, visit.pool) for visit in found],
        chances=chances,
        clicks=[random.random(len(each)) < each for each in chances],
        teaches=random.random(visits),
        articles=dict(articles),
        prior=ts.fit_prior(explored),
        offset=dict(ts.fit_warm_offset(explored).table(articles)),
    )
