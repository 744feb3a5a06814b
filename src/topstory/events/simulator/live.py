"""A policy let loose in the world: visit by visit, with its true regret."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from topstory.events.columns.times import as_datetime
from topstory.events.simulator.window import Window
from topstory.kernels.simulation import draw_click

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Visit:
    """Somebody comes: who, when, and what could be shown.

    Whether a click would follow on an article is settled for each of the pool before any is shown,
    so asking twice gives the same answer, and asking about one changes nothing for another.
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
        """The visitor's raw profile, as a site would send it to the server."""
        return {name: value for name, value in self._profile(self.visitor).items() if value}

    def payoff(self, article: str) -> float:
        """1 if this visitor clicks on the article now, else 0."""
        if article not in self.pool:
            raise ValueError(f"article {article!r} is not in this visit's pool")
        place = self.pool.index(article)
        return float(self._draw(place) < self.chances[place])


class Player(Protocol):
    """What `world.live` needs of a policy: as `ts.replay` does."""

    def choose(self, user: Any, pool: Any, /) -> Any:
        """A choice with an `article`, or an article id."""

    def learn(self, user: Any, article: str, payoff: float, /) -> None:
        """Take in a trial."""


@dataclass(frozen=True)
class Played:
    """What a policy earned live, beside what could have been earned.

    Means are over the trials; those of true probabilities are free of the clicks' noise.
    """

    trials: int
    payoff: float  # clicks
    expected: float  # mean true probability of a click on what was shown
    deployed: float | None  # of what the policy held best: its `greedy` choice, if it has one
    best: float  # of the best article for each visitor: nobody can earn more
    random: float  # of the pools' average

    @property
    def ctr(self) -> float:
        """Clicks a trial."""
        return self.payoff / self.trials

    @property
    def regret(self) -> float:
        """Clicks lost against the best article for each visitor, in expectation: R(T) of §2.1."""
        return self.trials * (self.best - self.expected)


def play(
    policy: Player, visits: Iterator[Visit], articles: dict[str, Floats | None], greedy: bool
) -> Played:
    """Let the policy choose for every visit, and learn from it."""
    known: set[str] = set()
    payoff = 0.0
    sums = np.zeros(4)
    trials = 0
    deploy = getattr(policy, "greedy", None) if greedy else None
    for visit in visits:
        introduce(policy, visit.pool, articles, known)
        place = {article: i for i, article in enumerate(visit.pool)}
        deployed = place[named(deploy(visit.user, list(visit.pool)))] if deploy else 0
        article = named(policy.choose(visit.user, list(visit.pool)))
        if article not in place:
            raise ValueError(f"the policy chose {article!r}, which is not in the pool")
        gain = visit.payoff(article)
        policy.learn(visit.user, article, gain)
        payoff += gain
        chances = visit.chances
        sums += (chances[place[article]], chances[deployed], chances.max(), chances.mean())
        trials += 1
    expected, deployed_mean, best, random = (sums / max(trials, 1)).tolist()
    return Played(trials, payoff, expected, deployed_mean if deploy else None, best, random)


def introduce(
    policy: Any, pool: Sequence[str], articles: dict[str, Floats | None], known: set[str]
) -> None:
    """Tell the policy of articles it has not met, if it wants to be told."""
    if hasattr(policy, "add_article"):
        for article in pool:
            if article not in known:
                known.add(article)
                policy.add_article(article, articles[article])


def named(choice: Any) -> str:
    """The article's id, of a choice or by itself."""
    return str(getattr(choice, "article", choice))


def visits_of(
    window: Window,
    seed: int,
    parts: Iterator[tuple[Any, npt.NDArray[np.float32]]],
    profile: Callable[[int], dict[str, Any]],
) -> Iterator[Visit]:
    """The visits of a log's parts, each with the groups of all users, one by one."""
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
