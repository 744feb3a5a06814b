"""Small worlds with a known truth, and logs of them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from topstory.events import EventLog

Floats = npt.NDArray[np.float64]
HOUR = 3600


@dataclass(frozen=True)
class World:
    """Users of a few kinds, articles with features, and the payoff to expect of each pair."""

    users: Floats  # (kinds, d)
    features: Floats  # (articles, m)
    chances: Floats  # (kinds, articles)

    @property
    def ids(self) -> list[str]:
        return [f"article-{a}" for a in range(len(self.features))]

    def log(
        self,
        events: int,
        pools: list[list[int]],
        random: np.random.Generator,
        hourly: bool = True,
        propensities: Floats | None = None,
    ) -> EventLog:
        """A log of random traffic; hourly: an hour apart, so that each event is its own block.

        `propensities` (articles,) makes it a log of weighted draws from the pool.
        """
        kinds = random.integers(len(self.users), size=events)
        numbers = np.arange(events) * len(pools) // max(events, 1)
        shown = np.empty(events, int)
        recorded = np.empty(events)
        for number, members in enumerate(pools):
            rows = np.flatnonzero(numbers == number)
            weights = np.ones(len(members)) if propensities is None else propensities[members]
            weights = weights / weights.sum()
            places = random.choice(len(members), len(rows), p=weights)
            shown[rows] = np.asarray(members)[places]
            recorded[rows] = weights[places]
        payoff = random.random(events) < self.chances[kinds, shown]
        return EventLog.from_arrays(
            self.users[kinds],
            [[self.ids[a] for a in members] for members in pools],
            numbers,
            np.array(self.ids)[shown],
            payoff,
            articles=dict(zip(self.ids, self.features, strict=True)),
            timestamps=1_241_136_000 + HOUR * np.arange(events) if hourly else None,
            propensity=None if propensities is None else recorded,
        )


def world(
    seed: int, kinds: int = 400, articles: int = 12, d: int = 4, m: int = 3, rate: float = 0.3
) -> World:
    """Users and articles with random memberships that sum to 1, and the constant."""
    random = np.random.default_rng(seed)
    users = np.column_stack([random.dirichlet(np.full(d - 1, 0.4), kinds), np.ones(kinds)])
    features = np.column_stack([random.dirichlet(np.full(m - 1, 0.4), articles), np.ones(articles)])
    tastes = random.normal(0, rate / 2, (d, m))
    chances = rate + users @ tastes @ features.T + random.normal(0, rate / 6, (kinds, articles))
    # As float32, for the log keeps them so: what is tested is the arithmetic, not the rounding.
    return World(users.astype(np.float32).astype(float), features, np.clip(chances, 0.01, 0.99))


def changing_pools(articles: int, size: int, count: int, seed: int) -> list[list[int]]:
    """Pools of varying size; articles leave, and come back."""
    random = np.random.default_rng(seed)
    return [
        random.choice(articles, random.integers(max(1, size - 2), size + 3), replace=False).tolist()
        for _ in range(count)
    ]
