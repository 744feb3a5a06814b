"""The newsroom: which articles appear, what they are about, and which are in the pool."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import Floats
from topstory.events.simulator.settings import GROUPS, WorldSettings

# Articles leave as newer ones appear; older ones than this have surely left.
MAX_AGE_HOURS = 96


@dataclass(frozen=True, eq=False)
class SimulatedArticle:
    """An article, as the newsroom knows it."""

    id: str
    born: int  # hour
    topics: Floats  # (GROUPS,) how much it is about each; the sum is 1
    popularity: float  # log-odds when it is new
    decay: float  # what it loses of them an hour
    appeal: Floats  # (GROUPS,) to each group, beyond its topics
    luck: float  # hours that it stays longer than others
    url_categories: tuple[str, ...]
    editor_categories: tuple[str, ...]


class Newsroom:
    """Articles and pools of any hour since 1970: the same hour always has the same ones.

    An article's random numbers depend only on (seed, hour of birth). So a window of time can be
    made without the ones before it, and windows that overlap agree.

    >>> newsroom = Newsroom(WorldSettings(), seed=0)
    >>> hour = 345_000  # 2009-05-11, 00:00 UTC
    >>> now, later = newsroom.pool(hour), newsroom.pool(hour + 6)
    >>> len(now), now[-1].id[:8], set(now) == set(later), set(now) == set(newsroom.pool(hour))
    (21, '20090511', False, True)
    """

    def __init__(self, settings: WorldSettings, seed: int) -> None:
        self.settings = settings
        self._seed = seed
        self._born: dict[int, tuple[SimulatedArticle, ...]] = {}
        random = np.random.default_rng([seed, 1])
        self.topic_popularity = np.array(settings.topic_popularity)
        self._urls = _owners(settings.url_categories, random)
        self._editors = _owners(settings.editor_categories, random)

    def pool(self, hour: int) -> tuple[SimulatedArticle, ...]:
        """The articles of an hour, oldest first: the youngest and luckiest so far.

        Two articles keep their order for life, so one that has left does not come back while
        births are at least as many as the places that open by day.
        """
        living = [a for past in range(MAX_AGE_HOURS, -1, -1) for a in self.born(hour - past)]
        kept = sorted(living, key=lambda a: (a.born + a.luck, a.id), reverse=True)
        return tuple(sorted(kept[: self.size(hour)], key=lambda a: a.id))

    def size(self, hour: int) -> int:
        """The size of the pool: largest in the early evening, smallest early in the morning."""
        low, high = self.settings.pool
        return round((low + high) / 2 + (high - low) / 2 * day_curve(hour))

    def born(self, hour: int) -> tuple[SimulatedArticle, ...]:
        """The articles that an hour brings."""
        found = self._born.get(hour)
        if found is None:
            # Hours before 1970 are negative, and seeds must not be.
            random = np.random.default_rng([self._seed, 2, hour + 2**40])
            # A binomial keeps days alike, as editors do; a Poisson number would vary more.
            chances = math.ceil(2 * self.settings.births)
            count = int(random.binomial(chances, self.settings.births / max(1, chances)))
            found = tuple(self._article(hour, n, random) for n in range(count))
            self._born[hour] = found
        return found

    def article(self, id: str) -> SimulatedArticle:
        """The article with this id, which contains its hour of birth."""
        try:
            when = datetime.strptime(id[:11], "%Y%m%d-%H").replace(tzinfo=UTC)
            found = [a for a in self.born(int(when.timestamp()) // 3600) if a.id == id]
        except ValueError:
            found = []
        if not found:
            raise KeyError(f"there is no article {id!r} in this world")
        return found[0]

    def odds(self, article: SimulatedArticle, hour: int) -> float:
        """Log-odds of a click in an hour, without the user's part and the overall level."""
        have, age = self.settings, hour - article.born
        aged = article.popularity - article.decay * age
        if have.novelty:
            aged += have.novelty * 0.5 ** (age / have.novelty_hours)
        if have.popularity_drift:
            aged += self._walked(article, hour)
        return aged + self.settings.daily * day_curve(hour)

    def _walked(self, article: SimulatedArticle, hour: int) -> float:
        """Where the random walk of an article's log-odds is: a step for each hour of its life."""
        key = [self._seed, 7, article.born + 2**40, int(article.id.rpartition("-")[2])]
        steps = np.random.default_rng(key).normal(0, 1, max(0, hour - article.born))
        return float(self.settings.popularity_drift * steps.sum())

    def _article(self, hour: int, number: int, random: np.random.Generator) -> SimulatedArticle:
        have = self.settings
        topics = random.dirichlet(np.full(GROUPS, have.topic_mixing))
        if not np.isfinite(topics).all():  # with very little mixing all shares underflow
            topics = np.eye(GROUPS)[random.integers(GROUPS)]
        when = datetime.fromtimestamp(hour * 3600, UTC)
        return SimulatedArticle(
            id=f"{when:%Y%m%d-%H}-{number}",
            born=hour,
            topics=topics,
            popularity=float(random.normal(0, have.popularity) + self.topic_popularity @ topics),
            decay=float(random.uniform(0, have.decay)),
            appeal=random.normal(0, have.own_appeal, GROUPS),
            luck=float(random.gumbel(0, 1) * have.staying),
            url_categories=self._tags("url", self._urls, topics, (1, 2), random),
            editor_categories=self._tags("editor", self._editors, topics, (2, 4), random),
        )

    def _tags(
        self,
        kind: str,
        owners: npt.NDArray[np.int64],
        topics: Floats,
        between: tuple[int, int],
        random: np.random.Generator,
    ) -> tuple[str, ...]:
        """Categories of the article's topics, and occasionally one of another topic."""
        tags = set()
        for _ in range(int(random.integers(between[0], between[1] + 1))):
            topic = random.choice(GROUPS, p=topics)
            own = np.flatnonzero(owners == topic)
            faithful = random.random() < self.settings.fidelity and len(own)
            tags.add(int(random.choice(own if faithful else len(owners))))
        return tuple(f"{kind}-{tag:02}" for tag in sorted(tags))


def _owners(categories: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """(categories,) the topic that each belongs to."""
    return random.permutation(np.arange(categories) % GROUPS)


def day_curve(hour: float) -> float:
    """From -1 at six in the morning to 1 at six in the evening, UTC."""
    return math.sin((hour - 12) * math.pi / 12)


def topics_of(articles: Iterable[SimulatedArticle]) -> Floats:
    """(A, GROUPS)."""
    return np.array([article.topics for article in articles]).reshape(-1, GROUPS)
