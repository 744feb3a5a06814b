"""Levers as editors see them, with what they cost."""

from __future__ import annotations

import numpy as np

from topstory.kernels.compilation import Floats
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import LeversView, Pin
from topstory.serving.journal.clock import as_datetime
from topstory.serving.journal.records import Levers
from topstory.serving.service.recent_estimates import Estimates
from topstory.serving.service.service import Service, unknown_article
from topstory.serving.state.levers import STORY, is_pinned

VISITS = 1_000  # that costs are told for


async def lever_views(service: Service, pool: str) -> list[LeversView]:
    """All levers that are set in a pool."""
    articles = service.decider(pool).pool.articles
    found = []
    for article in list(articles):
        there = articles.get(article)
        if there is not None and there.facts.levers is not None:  # edits happen in between
            try:
                found.append(await levers_view(service, pool, article, there.facts.levers))
            except ApiError as error:
                if error.reason != "unknown_article":  # removed while this was estimated
                    raise
    return found


async def levers_view(
    service: Service, pool: str, article: str, levers: Levers | None
) -> LeversView:
    """These levers on an article, whether they are set or not."""
    articles = service.decider(pool).pool.articles
    estimates = await service.estimates.of(pool, article) if article in articles else None
    async with service.reading.piece():
        found = articles.get(article)
        if found is None:
            raise unknown_article(pool, article)
        held, now = levers or Levers(), service.clock.now()
        until = None if held.pin_until is None else as_datetime(held.pin_until)
        exhausted = held.shows is not None and found.shows >= held.shows
        return LeversView(
            pool=pool,
            article=article,
            pin=None if held.pin is None else Pin(held.pin, until),
            boost=held.boost,
            max_shows=held.shows,
            max_share=held.share,
            pinned=is_pinned(held, now) and not exhausted,
            exhausted=exhausted,
            cost=_cost(service, pool, article, held, exhausted, estimates),
        )


def _cost(
    service: Service,
    pool: str,
    article: str,
    levers: Levers,
    exhausted: bool,
    estimates: Estimates | None,
) -> float | None:
    """Payoff lost in 1,000 visits, by the policy's own estimates for the last visitors."""
    if estimates is None:
        return None
    articles, now = service.decider(pool).pool.articles, service.clock.now()
    places = estimates.places
    ids = [name for name, each in articles.items() if each.showable(now) and name in places]
    if article not in ids:
        facts = articles[article].facts
        begins, ends = facts.begins, facts.ends
        if (begins is not None and begins > now) or (ends is not None and ends <= now):
            return 0.0  # it could not be shown anyway
        ids.append(article)
    expected = estimates.expected[:, [places[name] for name in ids]]  # (visitors, articles)
    return VISITS * float(lost(expected, ids.index(article), levers, exhausted, now).mean())


def lost(expected: Floats, place: int, levers: Levers, exhausted: bool, now: int) -> Floats:
    """(visitors,) of what the best article would pay, what is lost by the levers of one.

    >>> lost(np.array([[0.1, 0.3]]), 0, Levers(pin=1), False, 0).round(3)
    array([0.2])
    >>> lost(np.array([[0.1, 0.3]]), 1, Levers(share=0.25), False, 0).round(3)
    array([0.15])
    """
    best: Floats = expected.max(axis=1)
    rows = np.arange(len(expected))
    if levers.pin == STORY and is_pinned(levers, now):
        shown = expected[:, place]
    else:
        factors = np.ones(expected.shape[1])
        factors[place] = levers.boost
        shown = expected[rows, (expected + (factors - 1) * np.abs(expected)).argmax(axis=1)]
    if expected.shape[1] == 1:
        return np.asarray(best - shown)  # there is no other
    without = np.delete(expected, place, axis=1).max(axis=1)
    share = 0.0 if exhausted else levers.share
    return np.asarray(best - share * shown - (1 - share) * without)
