"""Decisions as the studio shows them: one with everything known of it, and the last ones."""

from __future__ import annotations

from typing import Any

from topstory.serving.api.messages import BUCKETS
from topstory.serving.journal.clock import as_datetime
from topstory.serving.journal.journal import Found
from topstory.serving.journal.records import Decided
from topstory.serving.pages.explanation import Explanation, explain, recorded_decision
from topstory.serving.service.service import Service
from topstory.serving.state.pool import context


def describe_decision(service: Service, found: Found, segments: tuple[str, ...]) -> dict[str, Any]:
    """Everything known of one decision."""
    decided = found.decided
    user = context(decided.user).tolist()
    try:
        why: Explanation | None = explain(
            service, decided.pool, user, segments, recorded_decision(decided)
        )
    except KeyError:
        why = None
    return {
        "number": found.number,
        "at": as_datetime(found.at),
        "expires": as_datetime(decided.expires),
        "pool": decided.pool,
        "article": decided.article,
        "title": _title(service, decided),
        "bucket": BUCKETS[decided.bucket],
        "propensity": decided.propensity,
        "bucket_propensity": decided.bucket_propensity or None,
        "ranking": decided.ranking or (decided.article,),
        "exclude": decided.exclude,
        "withheld": decided.withheld,
        "pinned": decided.pinned,
        "user": user,
        "teaches": decided.teaches,
        "model_version": decided.model_version,
        "request": decided.request,
        "visitor": decided.visitor_id or decided.visitor.hex() or None,
        "key": decided.key,
        "payoff": found.payoff,
        "why": why,
    }


def recent_decisions(service: Service, pool: str, count: int = 20) -> list[dict[str, Any]]:
    """The last decisions in memory, the newest first."""
    return [
        {
            "id": service.signer.sign(each.number, each.decided.expires),
            "number": each.number,
            "at": as_datetime(each.at),
            "article": each.decided.article,
            "title": _title(service, each.decided),
            "bucket": BUCKETS[each.decided.bucket],
            "payoff": each.payoff,
        }
        for each in service.recent.newest(count, pool)
    ]


def _title(service: Service, decided: Decided) -> str:
    known = service.decider(decided.pool).pool.articles.get(decided.article)
    return "" if known is None else known.facts.title
