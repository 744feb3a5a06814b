"""The studio's table of articles: searched and sorted here, a page at a time."""

from __future__ import annotations

import asyncio
import math
from typing import Any, Literal

import msgspec
import numpy as np

from topstory.kernels.buckets import DEPLOYMENT
from topstory.serving.http.views import article_view
from topstory.serving.journal.clock import SECOND
from topstory.serving.service.service import Service
from topstory.serving.state.pool import Article, Pool

PAGE = 25  # articles
Sort = Literal["shows", "ctr", "title", "newest", "estimate"]
NEW, KNOWN = 100, 0.25  # shows below which an article is new; half width over the CTR: known


class ArticlePage(msgspec.Struct, frozen=True):
    """Some articles, and how many there are."""

    total: int  # that match
    all: int
    page: int
    pages: int
    rows: list[dict[str, Any]]


async def article_page(
    service: Service, name: str, search: str, sort: Sort, descending: bool, number: int
) -> ArticlePage:
    """One page of the articles that match; sorting needs no view of any other.

    A turn of the event loop for each: its view takes as long as several decisions.
    """
    pool = service.decider(name).pool
    words = search.casefold().split()
    found = [each for each in pool.articles.values() if _matches(each, words)]
    keys = _sort_keys(pool, found, sort)
    order = sorted(range(len(found)), key=lambda place: keys[place], reverse=descending)
    pages = max(1, -(-len(found) // PAGE))
    number = min(max(number, 1), pages)
    some = [found[place] for place in order[(number - 1) * PAGE : number * PAGE]]
    ctr = _ctr(pool.tally.shows, pool.tally.payoff)
    rows = []
    for each in some:
        if each.facts.id in pool.articles:  # edits happen in between
            rows.append(await _row(service, name, pool.articles[each.facts.id], ctr))
        await asyncio.sleep(0)
    return ArticlePage(len(found), len(pool.articles), number, pages, rows)


def _matches(article: Article, words: list[str]) -> bool:
    if not words:
        return True
    text = f"{article.facts.id} {article.facts.title}".casefold()
    return all(word in text for word in words)


def _sort_keys(pool: Pool, found: list[Article], sort: Sort) -> list[Any]:
    if sort == "title":
        return [(each.facts.title or each.facts.id).casefold() for each in found]
    if sort == "newest":
        return [each.since for each in found]
    if sort == "ctr":
        return [_ctr(each.tally.shows, each.tally.payoff) or -1.0 for each in found]
    if sort == "estimate" and found:
        typical = _typical(pool)
        return [float(x) for x in pool.policy.estimates(typical, [e.facts.id for e in found])]
    return [sum(map(sum, each.tally.shows)) for each in found]


def _typical(pool: Pool) -> list[float]:
    """Everybody a little: the visitors so far, by segment."""
    shows = np.sum(pool.tally.shows, axis=0, dtype=float)
    shares = shows / shows.sum() if shows.sum() else np.full(len(shows), 1 / len(shows))
    return [*shares.tolist()[: pool.dimension - 1], 1.0]


def _ctr(shows: list[list[int]], payoff: list[list[float]]) -> float | None:
    total = sum(map(sum, shows))
    return float(sum(map(sum, payoff))) / total if total else None


async def _row(service: Service, name: str, article: Article, ctr: float | None) -> dict[str, Any]:
    pool = service.decider(name).pool
    view = await article_view(service, name, article.facts.id)
    typical = _typical(pool)
    estimate = float(pool.policy.estimates(typical, [view.id])[0])
    width = float(pool.policy.widths(typical, [view.id])[0]) * (pool.policy.explorer.bonus or 1.0)
    taught = sum(sum(article.tally.shows[place]) for place in range(3) if place != DEPLOYMENT)
    row: dict[str, Any] = msgspec.to_builtins(view)
    row |= {
        "estimate": estimate,
        "half_width": width if math.isfinite(width) else None,
        "state": _state(taught, width, ctr),
        "added": article.since,
        "age": (service.clock.now() - article.added) / SECOND if article.added else None,
    }
    return row


def _state(taught: int, width: float, ctr: float | None) -> str:
    """How much is known of it: new, learning, known."""
    if taught < NEW:
        return "new"
    return "known" if ctr and width < KNOWN * ctr else "learning"
