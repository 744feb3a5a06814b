"""Running a policy against the simulated world, visit by visit, with its true regret."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import Floats
from topstory.events.columns.times import as_datetime
from topstory.events.simulator.window import WorldWindow
from topstory.kernels.simulation import draw_click


@dataclass(frozen=True, eq=False)
class Visit:
    """A visit: who, when, and what can be shown.

    For each article of the pool it is fixed in advance whether the visitor would click. So asking
    twice gives the same answer, and asking about one article changes nothing for another.
    """

    number: int
    timestamp: datetime
    visitor: int  # the user's number
    user: Floats  # (d,) the context
    pool: tuple[str, ...]
    chances: Floats = field(repr=False)  # (K,) the true probability of a click on each
    _draw: Callable[[int], float] = field(repr=False)
    _profile: Callable[[int], dict[str, Any]] = field(repr=False)

    @property
    def profile(self) -> dict[str, Any]:
        """The visitor's raw profile, as a site would send it to the service."""
        return {name: value for name, value in self._profile(self.visitor).items() if value}

    def payoff(self, article: str) -> float:
        """1 if this visitor clicks on the article now, else 0."""
        if article not in self.pool:
            raise ValueError(f"article {article!r} is not in this visit's pool")
        place = self.pool.index(article)
        return float(self._draw(place) < self.chances[place])


class LivePolicy(Protocol):
    """What `world.live` needs of a policy: as `ts.replay` does."""

    def choose(self, user: Any, pool: Any, /) -> Any:
        """A choice with an `article`, or an article id."""

    def learn(self, user: Any, article: str, payoff: float, /) -> None:
        """Learn from a trial."""


@dataclass(frozen=True)
class LiveResult:
    """What a policy earned, and what it could have earned.

    Means are over the trials; means of true probabilities have no noise of clicks.
    """

    trials: int
    payoff: float  # clicks
    expected: float  # mean true probability of a click on what was shown
    deployed: float | None  # the same of its `greedy` choice, if it has one
    best: float  # the same of the best article for each visitor: no policy earns more
    random: float  # the same of an article at random

    @property
    def ctr(self) -> float:
        """Clicks per trial."""
        return self.payoff / self.trials

    @property
    def regret(self) -> float:
        """Clicks lost against the best article for each visitor, in expectation: R(T) of §2.1."""
        return self.trials * (self.best - self.expected)


def play(
    policy: LivePolicy, visits: Iterator[Visit], articles: dict[str, Floats | None], greedy: bool
) -> LiveResult:
    """Let the policy choose at every visit, and learn from the click."""
    known: set[str] = set()
    payoff = 0.0
    sums = np.zeros(4)
    trials = 0
    deploy = getattr(policy, "greedy", None) if greedy else None
    for visit in visits:
        introduce(policy, visit.pool, articles, known)
        place = {article: i for i, article in enumerate(visit.pool)}
        deployed = place[article_id(deploy(visit.user, list(visit.pool)))] if deploy else 0
        article = article_id(policy.choose(visit.user, list(visit.pool)))
        if article not in place:
            raise ValueError(f"the policy chose {article!r}, which is not in the pool")
        gain = visit.payoff(article)
        policy.learn(visit.user, article, gain)
        payoff += gain
        chances = visit.chances
        sums += (chances[place[article]], chances[deployed], chances.max(), chances.mean())
        trials += 1
    expected, deployed_mean, best, random = (sums / max(trials, 1)).tolist()
    return LiveResult(trials, payoff, expected, deployed_mean if deploy else None, best, random)


def introduce(
    policy: Any, pool: Sequence[str], articles: dict[str, Floats | None], known: set[str]
) -> None:
    """Add articles that are new to the policy, if it has `add_article`."""
    if hasattr(policy, "add_article"):
        for article in pool:
            if article not in known:
                known.add(article)
                policy.add_article(article, articles[article])


def article_id(choice: Any) -> str:
    """The article id of a choice, which may itself be the id."""
    return str(getattr(choice, "article", choice))


def visits_of(
    window: WorldWindow,
    seed: int,
    parts: Iterator[tuple[Any, npt.NDArray[np.float32]]],
    profile: Callable[[int], dict[str, Any]],
) -> Iterator[Visit]:
    """The visits one by one, from parts of a log, each with the groups of all users."""
    number = 0
    ids = window.ids
    pools = [tuple(pool) for pool in window.pools.lists(ids)]
    for log, groups in parts:
        micros = log.times.microseconds()
        for i in range(len(log)):
            hour, visitor = int(log.pool[i]), int(log.visitors.number[i])
            yield Visit(
                number=number,
                timestamp=as_datetime(int(micros[i])),
                visitor=visitor,
                user=log.context(i),
                pool=pools[hour],
                chances=window.chances(hour, groups[visitor][None])[0],
                _draw=_drawing(seed, number),
                _profile=profile,
            )
            number += 1


def _drawing(seed: int, event: int) -> Callable[[int], float]:
    return lambda place: draw_click(np.uint64(seed), event, place)
