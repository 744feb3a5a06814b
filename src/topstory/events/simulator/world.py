"""The Today Module: a simulated world of users, articles and clicks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import Floats
from topstory.events.columns.times import SECOND, TimeLike, parse_time
from topstory.events.log import EventLog
from topstory.events.simulator.live import LivePolicy, LiveResult, Visit, play, visits_of
from topstory.events.simulator.newsroom import Newsroom
from topstory.events.simulator.population import Population
from topstory.events.simulator.random_traffic import Progress, RandomTraffic, WrittenLog
from topstory.events.simulator.settings import WorldSettings
from topstory.events.simulator.site_view import Features, SiteView, site_view
from topstory.events.simulator.taste import Taste
from topstory.events.simulator.truth import Ceilings, ceilings
from topstory.events.simulator.window import WorldWindow

DEFAULT_START = "2009-05-01"
HOUR = 3600 * SECOND
# Where the overall CTR is set: hours of two weeks of every hour of the day (5 and 24 share no
# factor), and users from all over the population.
CALIBRATED_HOURS, CALIBRATED_USERS = range(344_000, 344_000 + 14 * 24, 5), 500


class TodayModule:
    """A simulated front page, like the one of the paper (§5.1): everything in it is made up.

    The world has one timeline: the first week of May always has the same articles, whatever was
    asked for before. Another `seed` makes another world; another `seed` of a log makes other visits
    to this one.

    Args:
        seed: of the world: its users, articles and tastes.
        settings: every distribution's parameters; the default is like the paper's data.
        changes: parameters of `WorldSettings` that differ from them.

    >>> import topstory as ts
    >>> world = ts.TodayModule(seed=0, users=10_000)
    >>> world.random_log(events=100_000)
    <EventLog: 100,000 events, ... articles, 24 pools, 2009-05-01, CTR 0.03...>
    >>> played = world.live(ts.policy("ucb", alpha=0.3), trials=500)
    >>> played.random < played.expected < played.best
    True
    """

    def __init__(
        self, seed: int = 0, settings: WorldSettings | None = None, **changes: Any
    ) -> None:
        _check_whole("seed", seed, 0, 2**63 - 1)
        self.seed = seed
        self.settings = replace(settings or WorldSettings(), **changes)
        self.population = Population(self.settings, seed)
        self.newsroom = Newsroom(self.settings, seed)
        self.taste = Taste(self.settings, seed)
        self._views: list[tuple[bool, Features | None, SiteView]] = []

    def __repr__(self) -> str:
        return f"<TodayModule: {self.settings.users:,} simulated users, seed={self.seed}>"

    # -- logs --

    def random_log(
        self,
        events: int,
        start: TimeLike = DEFAULT_START,
        days: float = 1,
        *,
        seed: int = 0,
        raw: bool = False,
        features: Features | None = None,
        progress: Progress | None = None,
    ) -> EventLog:
        """A log of articles shown uniformly at random, in memory.

        Args:
            events: how many.
            start: when the log begins, a whole hour in UTC.
            days: how many they are spread over; rounded up to a whole hour.
            seed: of the visits: another seed, other visits to the same world.
            raw: keep the raw profiles of users and articles; the contexts are then the constant
                alone, as for a site that has made no features yet.
            features: make the contexts with these (a fitted `FeatureBuilder`). Without, and
                without `raw`, a context is the user's true groups, which no site knows.
            progress: called with the number of events made since the last call.
        """
        return self._traffic(events, start, days, seed, raw, features).log(progress)

    def write_log(
        self,
        out: str | PathLike[str],
        events: int,
        start: TimeLike = DEFAULT_START,
        days: float = 1,
        *,
        seed: int = 0,
        raw: bool = False,
        features: Features | None = None,
        format: str = "log",
        progress: Progress | None = None,
    ) -> WrittenLog:
        """The same log, streamed to disk: for more events than fit in memory.

        `format` is "log" for a folder, or "r6a" for a file of Yahoo's text.
        """
        return self._traffic(events, start, days, seed, raw, features).write(out, format, progress)

    # -- live --

    def visits(
        self,
        events: int,
        start: TimeLike = DEFAULT_START,
        days: float = 1,
        *,
        seed: int = 0,
        features: Features | None = None,
    ) -> Iterator[Visit]:
        """Visits one by one, to drive a live service: who comes when, and what they would click.

        >>> world = TodayModule(users=1000)
        >>> visit = next(world.visits(events=10))
        >>> visit.visitor < 1000, len(visit.pool) > 10, visit.payoff(visit.pool[0]) in (0.0, 1.0)
        (True, True, True)
        """
        traffic = self._traffic(events, start, days, seed, False, features)
        parts = ((part, self.population.groups) for part in traffic.parts())
        return visits_of(traffic.window, seed, parts, self.population.profile)

    def live(
        self,
        policy: LivePolicy,
        trials: int,
        start: TimeLike = DEFAULT_START,
        days: float = 1,
        *,
        seed: int = 0,
        features: Features | None = None,
        deployment: bool = False,
    ) -> LiveResult:
        """Run a policy that learns against the world, and measure its true regret.

        `deployment` also asks for its greedy choice at each visit, which doubles the work.
        """
        window = self.window(start, days)
        table = self._view(False, features).articles(window)
        visits = self.visits(trials, start, days, seed=seed, features=features)
        return play(policy, visits, dict(table.mapping), deployment)

    def logged_by(
        self,
        policy: LivePolicy,
        events: int,
        start: TimeLike = DEFAULT_START,
        days: float = 1,
        *,
        seed: int = 0,
        features: Features | None = None,
    ) -> EventLog:
        """A log of articles shown by a randomised policy, which learns nothing from it.

        Its choices must say with what `propensity` they were made; those are recorded.
        """
        from topstory.events.simulator.logging_policy import logged_by

        traffic = self._traffic(events, start, days, seed, False, features)
        visits = self.visits(events, start, days, seed=seed, features=features)
        return logged_by(policy, traffic.log(), visits)

    # -- truth --

    def expected_payoff(
        self, users: npt.ArrayLike, articles: str | list[str], when: TimeLike
    ) -> Floats:
        """The true probability that users (by number) click on articles at some time.

        One article for all users, or one for each.

        >>> world = TodayModule(users=1000)
        >>> pool = [article.id for article in world.newsroom.pool(344_688)]
        >>> chances = world.expected_payoff([0, 1, 2], pool[0], "2009-04-28")
        >>> chances.shape, bool((chances > 0).all() and (chances < 0.5).all())
        ((3,), True)
        """
        numbers = np.atleast_1d(np.asarray(users))
        ids = [articles] * len(numbers) if isinstance(articles, str) else list(articles)
        if len(ids) != len(numbers):
            raise ValueError(f"{len(numbers)} users need as many articles, got {len(ids)}")
        hour = int(parse_time(when) // HOUR)
        found = [self.newsroom.article(key) for key in ids]
        appeal = self.taste.appeal(found)
        intercept = np.array([self.newsroom.odds(a, hour) for a in found]) + self.level
        odds = intercept + np.einsum("ng,ng->n", self.population.groups[numbers], appeal)
        chances: Floats = 1 / (1 + np.exp(-odds))
        return chances

    def expected_payoffs(self, log: EventLog) -> Floats:
        """(n,) the true probability of a click on the shown article of each event of its own log.

        >>> world = TodayModule(users=1000)
        >>> log = world.random_log(20_000)
        >>> abs(float(world.expected_payoffs(log).mean()) - log.ctr) < 0.005
        True
        """
        if log.times is None or log.visitors is None:
            raise ValueError("only a log of this simulated world has true click probabilities")
        hours = log.times.microseconds(0, len(log)) // HOUR
        articles = [self.newsroom.article(key) for key in log.article_ids]
        appeal, shown = self.taste.appeal(articles), log.shown_index
        groups = self.population.groups
        chances: Floats = np.empty(len(log))
        for hour in np.unique(hours):
            rows = np.flatnonzero(hours == hour)
            for article in np.unique(shown[rows]):
                here = rows[shown[rows] == article]
                odds = self.newsroom.odds(articles[article], int(hour)) + self.level
                odds = odds + groups[log.visitors.number[here]] @ appeal[article]
                chances[here] = 1 / (1 + np.exp(-odds))
        return chances

    def ceilings(
        self,
        start: TimeLike = DEFAULT_START,
        days: float = 7,
        *,
        users: int = 2000,
        seed: int = 0,
        features: Features | None = None,
    ) -> Ceilings:
        """The best CTR that each kind of model can reach over a window, without noise."""
        window = self.window(start, days)
        have = self.settings
        draws = np.random.default_rng([seed, 6]).random(users)
        drawn = (have.users * draws**have.loyalty).astype(np.int64)
        view = self._view(False, features)
        table = view.articles(window)
        return ceilings(window, self.population.groups[drawn], view.contexts[drawn], table.features)

    @cached_property
    def level(self) -> float:
        """μ: what is added to all log-odds, so that random articles earn `settings.ctr`."""
        from scipy.optimize import brentq  # slow to import, and only this needs it

        users = np.linspace(0, self.settings.users - 1, CALIBRATED_USERS).astype(int)
        groups = self.population.groups[users]
        hours = []
        for hour in CALIBRATED_HOURS:
            pool = self.newsroom.pool(hour)
            shared = np.array([self.newsroom.odds(article, hour) for article in pool])
            hours.append((shared + groups @ self.taste.appeal(pool).T).ravel())
        odds = np.concatenate(hours)

        def surplus(level: float) -> float:
            return float((1 / (1 + np.exp(-level - odds))).mean()) - self.settings.ctr

        level: float = brentq(surplus, -40.0, 40.0, xtol=1e-9)
        return level

    def window(self, start: TimeLike = DEFAULT_START, days: float = 1) -> WorldWindow:
        """The articles, pools and log-odds of some days."""
        at = parse_time(start)
        if at % HOUR:
            raise ValueError(f"start must be a whole hour in UTC, got {start!r}")
        if not 0 < days <= 3660:
            raise ValueError(f"days must be more than 0 and at most 3660, got {days!r}")
        hours = math.ceil(days * 24 - 1e-9)
        return WorldWindow.of(self.newsroom, self.taste, at // HOUR, hours, self.level)

    def _traffic(
        self,
        events: int,
        start: TimeLike,
        days: float,
        seed: int,
        raw: bool,
        features: Features | None,
    ) -> RandomTraffic:
        _check_whole("events", events, 1, 2**40)
        _check_whole("seed", seed, 0, 2**64 - 1)
        window, view = self.window(start, days), self._view(raw, features)
        return RandomTraffic(
            settings=self.settings,
            window=window,
            groups=self.population.groups,
            view=view,
            articles=view.articles(window),
            events=int(events),
            seed=seed,
        )

    def _view(self, raw: bool, features: Features | None) -> SiteView:
        """Made once, so that logs of one world share their table of users."""
        for seen_raw, seen_features, view in self._views:
            if seen_raw == raw and seen_features is features:
                return view
        view = site_view(self.population, raw, features)
        self._views.append((raw, features, view))
        return view


def _check_whole(name: str, value: Any, low: int, high: int) -> None:
    if not isinstance(value, int | np.integer) or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number from {low} to {high}, got {value!r}")
