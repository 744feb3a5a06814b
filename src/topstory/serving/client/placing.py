"""Putting the articles of a log into the pool of a running service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from topstory.events.log import EventLog
from topstory.serving.api.messages import ArticleRequest
from topstory.serving.client.client import Client


class PlacementReport(msgspec.Struct, frozen=True):
    """What was done with the articles of a log."""

    pool: str
    placed: tuple[str, ...]  # ids
    there: int  # were in the pool already, and stayed as they are


def place_articles(
    client: Client, log: EventLog, pool: str = "front", every: bool = False
) -> PlacementReport:
    """Put the articles of a log into a pool, with their raw profiles or, if it has none, features.

    Those that are there already stay as they are: an editor may have changed them.

    Args:
        client: of the service; its key needs the roles `read` and `edit`.
        log: has the articles.
        pool: the pool's name.
        every: all articles of the log, instead of those that its last event could have shown.
    """
    if not len(log):
        raise ValueError("the log has no events, so nobody knows which articles to place")
    ids = log.article_ids if every else log.pools[int(log.pool[-1])]
    index = {article: i for i, article in enumerate(log.article_ids)}
    there = {view.id for view in client.articles(pool)}
    placed = [article for article in ids if article not in there]
    for article in placed:
        client.put_article(pool, article, _described(log, index[article]))
    return PlacementReport(pool, tuple(placed), len(ids) - len(placed))


def _described(log: EventLog, index: int) -> ArticleRequest:
    if log.article_profiles is not None:
        (row,) = log.article_profiles.slice(index, 1).to_pylist()
        return ArticleRequest(profile=as_profile(row))
    if log.features is not None:
        return ArticleRequest(features=tuple(log.features[index].tolist()))
    return ArticleRequest()


def as_profile(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a log's raw profiles as a request has it: nothing for what is missing, dates as ISO.

    >>> from datetime import UTC, datetime
    >>> as_profile({"age": 31, "city": None, "since": datetime(2026, 3, 1, tzinfo=UTC)})
    {'age': 31, 'since': '2026-03-01T00:00:00+00:00'}
    """
    return {
        name: value.isoformat() if hasattr(value, "isoformat") else value
        for name, value in row.items()
        if value is not None
    }
