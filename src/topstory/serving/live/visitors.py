"""Simulated visitors: they come to a service over HTTP, and click as the simulator says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from topstory.events.columns.times import parse_time
from topstory.events.simulator import TodayModule
from topstory.events.simulator.newsroom import SimulatedArticle
from topstory.events.simulator.world import DEFAULT_START, HOUR
from topstory.serving.api.messages import BUCKETS
from topstory.serving.demo.stories import picture, story

START_HOUR = 12  # of the simulated day: the pool is then of middle size


class Page:
    """The simulated front page: its pool of this hour, as articles for the service.

    >>> page = Page(TodayModule(users=1000))
    >>> len(page.articles) > 15, sorted(next(iter(page.articles.values())))
    (True, ['features', 'picture', 'summary', 'title'])
    >>> gone, come = page.turn()
    >>> len(gone) <= 3, len(come) <= 3
    (True, True)
    """

    def __init__(self, world: TodayModule) -> None:
        self._world = world
        self.hour = int(parse_time(DEFAULT_START)) // HOUR + START_HOUR
        self._told: Counter[int] = Counter()  # stories by topic
        self.pool: tuple[SimulatedArticle, ...] = ()
        self.articles: dict[str, dict[str, Any]] = {}
        self.turn()

    def turn(self) -> tuple[list[str], list[str]]:
        """Go on to the next hour; the articles that left, and those that came."""
        self.hour += bool(self.pool)
        self.pool = self._world.newsroom.pool(self.hour)
        ids = [article.id for article in self.pool]
        gone = [article for article in self.articles if article not in ids]
        come = [article for article in self.pool if article.id not in self.articles]
        for left in gone:
            del self.articles[left]
        for new in come:
            self.articles[new.id] = self._described(new)
        world = self._world
        odds = [world.newsroom.odds(article, self.hour) + world.level for article in self.pool]
        self._intercept, self._appeal = np.array(odds), world.taste.appeal(self.pool)
        return gone, [article.id for article in come]

    def chances(self, visitors: Any) -> Any:
        """(n, K) the true probability that each visitor clicks on each article of the pool."""
        groups = self._world.population.groups[visitors]
        return 1 / (1 + np.exp(-(self._intercept + groups @ self._appeal.T)))

    def _described(self, article: SimulatedArticle) -> dict[str, Any]:
        topic = int(article.topics.argmax())
        number = self._told[topic]
        self._told[topic] += 1
        told = story(topic, number)
        return {
            "features": [*np.round(article.topics, 4).tolist(), 1.0],
            "title": told.title,
            "summary": told.summary,
            "picture": picture(topic, number),
        }


class SimulatedVisitors:
    """Who comes, what they are shown, and what they click on; and the truth of all that."""

    def __init__(self, world: TodayModule, page: Page, seed: int) -> None:
        self._world, self._page = world, page
        self._random = np.random.default_rng([seed, 7])
        self.visits, self.best, self.random = 0.0, 0.0, 0.0
        self.shown = {bucket: [0.0, 0.0] for bucket in BUCKETS}

    def arrive(self, count: int) -> tuple[Any, list[dict[str, Any]]]:
        """So many visitors by number, and their requests."""
        have = self._world.settings
        numbers = (have.users * self._random.random(count) ** have.loyalty).astype(np.int64)
        contexts = self._world.population.groups[numbers].astype(float).tolist()
        asked = [
            {"user": [*user, 1.0], "visitor": f"v-{number}"}
            for user, number in zip(contexts, numbers.tolist(), strict=True)
        ]
        return numbers, asked

    def click(self, numbers: Any, answers: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The payoffs of those who click on what they were shown."""
        chances = self._page.chances(numbers)
        place = {article.id: i for i, article in enumerate(self._page.pool)}
        draws = self._random.random(len(answers))
        paid = []
        for row, answer in enumerate(answers):
            shown = place.get(answer.get("article", ""))
            if shown is None:  # refused, or the article has just left
                continue
            chance = float(chances[row, shown])
            bucket = self.shown[answer["bucket"]]
            bucket[0] += 1
            bucket[1] += chance
            self.visits += 1
            self.best += float(chances[row].max())
            self.random += float(chances[row].mean())
            if draws[row] < chance:
                paid.append({"decision": answer["decision"], "payoff": 1.0})
        return paid

    def truth(self) -> dict[str, Any]:
        """Sums since the beginning, as the service's page takes them."""
        return {
            "visits": self.visits,
            "best": self.best,
            "random": self.random,
            "shown": {bucket: tuple(sums) for bucket, sums in self.shown.items()},
        }
