"""What lies where in a buffer: a head, the layout itself, and the arrays that scoring reads.

The layout changes when an editor changes a pool, the arrays with every record.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from topstory.kernels.compilation import Floats
from topstory.policies.storage import build, describe
from topstory.serving.journal.records import ArticleFacts, Levers
from topstory.serving.state.pool import FOREVER, Article, Pool
from topstory.serving.state.tally import Tally

# The number of the last record, how far the journal's clock is ahead of the steady one (µs), the
# layout's own number, and its length in bytes.
HEAD = Struct("<QqQQ")
LISTED_AHEAD = 60_000_000  # µs: articles that begin later have no place yet

_CACHE_LINE = 64  # bytes: arrays begin where a cache line does


class ArraySpan(msgspec.Struct, frozen=True, array_like=True):
    """Where an array lies, from the first byte after the layout."""

    field: str
    begin: int
    shape: tuple[int, ...]


class PoolLayout(msgspec.Struct, frozen=True, array_like=True):
    """A pool: its policy, those of its articles that can be shown soon, and their arrays."""

    name: str
    edition: int  # the last record that changed its articles
    policy: dict[str, Any]
    count: int  # features of an article
    # id, from, until, published
    articles: list[tuple[str, int | None, int | None, int | None, Levers | None]]
    arrays: list[ArraySpan]


class Layout(msgspec.Struct, frozen=True, array_like=True):
    """All pools."""

    number: int
    dimension: int
    pools: list[PoolLayout]
    length: int  # of all arrays, in bytes


def lay_out(
    number: int, dimension: int, pools: Mapping[str, Pool], editions: Mapping[str, int], now: int
) -> tuple[Layout, dict[str, list[str]], int]:
    """The layout of these pools now, their articles row by row, and until when it holds."""
    laid, rows, begin, until = [], {}, 0, FOREVER
    for name, pool in pools.items():
        facts = [_told(article) for article in pool.articles.values()]
        soon = [each for each in facts if (each.begins or 0) <= now + LISTED_AHEAD]
        listed = [each for each in soon if each.ends is None or each.ends > now]
        later = (each.begins or 0 for each in facts if (each.begins or 0) > now + LISTED_AHEAD)
        until = min(until, min(later, default=FOREVER) - LISTED_AHEAD // 2)
        until = min(until, min((each.ends or FOREVER for each in listed), default=FOREVER))
        arrays = []
        model = pool.policy.model
        for field in model.scored if listed else ():
            shape = getattr(model.state, field).shape
            shape = shape if field in model.shared else (len(listed), *shape[1:])
            arrays.append(ArraySpan(field, begin, shape))
            begin += -8 * int(np.prod(shape)) // _CACHE_LINE * -_CACHE_LINE
        rows[name] = [each.id for each in listed]
        count = max((len(each.features or (1.0,)) for each in listed), default=1)
        articles = [
            (each.id, each.begins, each.ends, each.published, each.levers) for each in listed
        ]
        policy = describe(pool.policy)
        laid.append(PoolLayout(name, editions[name], policy, count, articles, arrays))
    return Layout(number, dimension, laid, begin), rows, until


def _told(article: Article) -> ArticleFacts:
    """An article as a worker knows it. It counts no shows: none are left, or there is no limit."""
    facts = article.facts
    if facts.levers is None or facts.levers.shows is None:
        return facts
    left = replace(facts.levers, shows=0 if article.exhausted else None)
    return replace(facts, levers=left)


def arrays_in(layout: PoolLayout, buffer: Any, offset: int) -> dict[str, Floats]:
    """A pool's arrays, in place."""
    return {
        each.field: np.frombuffer(
            buffer, np.float64, int(np.prod(each.shape)), offset + each.begin
        ).reshape(each.shape)
        for each in layout.arrays
    }


def first_array(layout_bytes: int) -> int:
    """Where the arrays begin, after a layout of that length."""
    return -(HEAD.size + layout_bytes) // _CACHE_LINE * -_CACHE_LINE


def pool_of(layout: PoolLayout, dimension: int, arrays: Mapping[str, Floats]) -> Pool:
    """A pool for deciding only: it scores from the arrays in place."""
    ids = [article for article, *_ in layout.articles]
    features = {"features": np.ones((len(ids), layout.count))}
    policy = build({**layout.policy, "articles": ids, "dimension": None}, features, {})
    if ids:
        policy.model.score_from(dimension, arrays)
    pool = Pool(layout.name, policy, dimension)
    nothing = Tally([], [])
    pool.articles = {
        article: Article(
            ArticleFacts(article, None, "", "", begins, ends, levers=levers, published=published),
            0,
            nothing,
        )
        for article, begins, ends, published, levers in layout.articles
    }
    return pool
