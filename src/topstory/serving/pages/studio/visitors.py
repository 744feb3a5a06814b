"""The studio's segments of visitors: who they are, how many, and what each likes."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np

from topstory.serving.pages.names import Names
from topstory.serving.service.service import Service
from topstory.serving.state.pool import Pool

LISTED = 3  # articles that a segment likes


async def segments(service: Service, name: str, names: Names) -> list[dict[str, Any]]:
    """Each segment: its share of the visits, its CTR, and the best articles for it now.

    A turn of the event loop for each: it takes as long as a decision.
    """
    pool = service.decider(name).pool
    shows = np.sum(pool.tally.shows, axis=0, dtype=float)
    payoff = np.sum(pool.tally.payoff, axis=0, dtype=float)
    total = shows.sum()
    ids = list(pool.listing(service.clock.now()).ids)
    average = _estimates(pool, [1 / pool.segments] * (pool.dimension - 1), ids)
    found = []
    for place in range(pool.segments):
        known = place < len(names.segments)
        there = [number for number, each in enumerate(ids) if each in pool.articles]
        found.append(
            {
                "segment": place,
                "name": names.segments[place] if known else f"Segment {place + 1}",
                "shows": float(shows[place]),
                "share": float(shows[place] / total) if total else None,
                "ctr": float(payoff[place] / shows[place]) if shows[place] else None,
                "likes": _likes(pool, place, [ids[each] for each in there], average[there]),
            }
        )
        await asyncio.sleep(0)  # edits happen in between
    return found


def _estimates(pool: Pool, memberships: list[float], ids: list[str]) -> Any:
    return pool.policy.estimates([*memberships, 1.0], ids) if ids else np.zeros(0)


def _likes(pool: Pool, segment: int, ids: list[str], average: Any) -> list[dict[str, Any]]:
    """The articles that it is expected to open most, beside what an average visitor would."""
    if not ids:
        return []
    typical = [float(place == segment) for place in range(pool.dimension - 1)]
    estimates = _estimates(pool, typical, ids)
    return [
        {
            "id": ids[place],
            "title": pool.articles[ids[place]].facts.title or ids[place],
            "estimate": float(estimates[place]),
            "average": float(average[place]),
        }
        for place in np.argsort(-estimates, kind="stable")[:LISTED].tolist()
    ]
