"""A small world of raw profiles whose groups are known, after the model of the Today Module."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from topstory.events import EventLog

Floats = npt.NDArray[np.float64]
GROUPS = 5
SHARES = np.array([0.27, 0.23, 0.20, 0.17, 0.13])
URLS, EDITORS, LOCATIONS = 42, 40, 200


@dataclass(frozen=True)
class RawWorld:
    """Users of five groups with soft membership, articles of five topics, and their clicks."""

    users: int = 10_000
    articles: int = 150
    behaviours: int = 400
    telling: float = 0.4  # share of behaviours that differ between groups
    preference: float = 0.42
    seed: int = 0

    @cached_property
    def groups(self) -> Floats:
        """(V, 5) how much a user belongs to each group."""
        return np.random.default_rng([self.seed, 0]).dirichlet(0.75 * SHARES, self.users)

    @cached_property
    def topics(self) -> Floats:
        """(A, 5) how much an article is about each topic."""
        return np.random.default_rng([self.seed, 1]).dirichlet([0.15] * GROUPS, self.articles)

    @cached_property
    def profiles(self) -> dict[str, list[object]]:
        """Gender, age, location and behaviours of each user."""
        random = np.random.default_rng([self.seed, 2])
        group = self._showing(random)
        female = np.array([0.3, 0.7, 0.45, 0.62, 0.38])[group]
        gender = np.where(random.random(self.users) < female, "f", "m").tolist()
        centre = np.array([2.0, 3.5, 5.0, 6.5, 8.0])[self._showing(random)]
        age = np.rint(random.normal(centre, 1.8)).clip(0, 9).astype(int)
        tilt = random.lognormal(0, 0.5, (GROUPS, LOCATIONS)) / np.arange(1, LOCATIONS + 1)
        place = np.empty(self.users, int)
        group = self._showing(random)
        for g in range(GROUPS):
            rows = group == g
            place[rows] = random.choice(LOCATIONS, rows.sum(), p=tilt[g] / tilt[g].sum())
        unknown = random.random((2, self.users)) < 0.1
        return {
            "gender": [None if u else g for g, u in zip(gender, unknown[0], strict=True)],
            "age": [None if u else f"age-{a}" for a, u in zip(age, unknown[1], strict=True)],
            "location": [f"place-{p}" for p in place],
            "behaviours": self._habits(random),
        }

    def _showing(self, random: np.random.Generator) -> npt.NDArray[np.intp]:
        draw = random.random((self.users, 1))
        return np.asarray((draw > self.groups.cumsum(axis=1)[:, :-1]).sum(axis=1))

    def _habits(self, random: np.random.Generator) -> list[object]:
        base = np.exp(random.uniform(np.log(0.005), np.log(0.15), self.behaviours))
        tilt = random.normal(0, 1.6, (GROUPS, self.behaviours))
        tilt *= random.random(self.behaviours) < self.telling
        rates = 1 / (1 + np.exp(-(np.log(base / (1 - base)) + tilt)))
        rates *= base / (SHARES @ rates)
        activity = random.lognormal(-0.15, 0.55, (self.users, 1))
        names = np.array([f"likes-{b}" for b in range(self.behaviours)])
        found: list[object] = []
        for start in range(0, self.users, 4096):
            part = slice(start, start + 4096)
            chance = np.minimum(self.groups[part] @ rates * activity[part], 0.9)
            on = random.random(chance.shape) < chance
            found += [names[row].tolist() for row in on]
        return found

    @cached_property
    def article_profiles(self) -> dict[str, list[object]]:
        """URL and editor categories of each article."""
        random = np.random.default_rng([self.seed, 3])

        def tags(kind: str, count: int, low: int, high: int) -> list[object]:
            owner = random.permutation(np.arange(count) % GROUPS)
            found: list[object] = []
            for mix in self.topics:
                chosen = set()
                for _ in range(random.integers(low, high + 1)):
                    own = np.flatnonzero(owner == random.choice(GROUPS, p=mix))
                    faithful = random.random() < 0.92
                    chosen.add(int(random.choice(own if faithful else count)))
                found.append([f"{kind}-{tag}" for tag in sorted(chosen)])
            return found

        return {
            "url_categories": tags("url", URLS, 1, 2),
            "editor_categories": tags("editor", EDITORS, 2, 4),
        }

    @cached_property
    def log_odds(self) -> Floats:
        """(5, A) of a click, for a user who is all of one group."""
        random = np.random.default_rng([self.seed, 4])
        M = 2.2 * np.eye(GROUPS) + random.normal(size=(GROUPS, GROUPS))
        M -= M.mean(axis=0, keepdims=True)
        M -= M.mean(axis=1, keepdims=True)
        M /= M.std()
        popularity = random.normal(0, 0.24, self.articles)
        rates = np.array([0.45, -0.55, 0.25, -0.15, -0.05])
        own = random.normal(0, 0.08, (GROUPS, self.articles))
        return -3.5 + rates[:, None] + popularity + self.preference * M @ self.topics.T + own

    def chances(self, users: npt.NDArray[np.intp], articles: npt.NDArray[np.intp]) -> Floats:
        """(n,) of a click."""
        odds = (self.groups[users] * self.log_odds.T[articles]).sum(axis=1)
        return np.asarray(1 / (1 + np.exp(-odds)))

    def log(self, events: int, seed: int = 0, pool: int = 20, hours: int = 100) -> EventLog:
        """A raw log: articles drawn uniformly from an hourly pool."""
        random = np.random.default_rng([self.seed, 5, seed])
        visitor = (self.users * random.random(events) ** 2).astype(int)
        hour = np.arange(events) * hours // events
        first = np.arange(hours) * (self.articles - pool) // max(1, hours - 1)
        shown = first[hour] + random.integers(pool, size=events)
        ids = [f"article-{a}" for a in range(self.articles)]
        return EventLog.from_arrays(
            None,
            pools=[ids[start : start + pool] for start in first],
            pool=hour,
            shown=np.array(ids)[shown],
            payoff=random.random(events) < self.chances(visitor, shown),
            articles=dict.fromkeys(ids),
            timestamps=1_238_544_000 + np.arange(events) * hours * 3600 // events,
            visitor=visitor,
            profiles=self.profiles,
            article_profiles=self.article_profiles,
        )
