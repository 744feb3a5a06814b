"""Articles, pools and the service as editors and operators see them."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from importlib.metadata import version
from time import monotonic

from msgspec.structs import replace

from topstory.anytime import anytime_lift, anytime_rate
from topstory.kernels.compilation import Floats
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import (
    BUCKETS,
    ArticleView,
    Bucket,
    BucketCounts,
    PoolStats,
    SegmentView,
    Stats,
)
from topstory.serving.http.inspection import StateInspection
from topstory.serving.http.lever_views import levers_view
from topstory.serving.journal.clock import SECOND, as_datetime
from topstory.serving.service.admission import UNIT_SECONDS
from topstory.serving.service.service import Service, unknown_article
from topstory.serving.state.pool import Article, Pool
from topstory.serving.state.tally import Tally
from topstory.serving.upkeep.keeper import Keeper

MAX_VIEWS_PER_TURN = 64  # articles in one turn of the event loop: a few milliseconds
TURN_SECONDS = 0.005


async def article_views(service: Service, pool_name: str) -> AsyncIterator[list[ArticleView]]:
    """Every article of a pool, a few at a time: other requests are answered in between."""
    pool = service.decider(pool_name).pool
    ids = list(pool.articles)
    seconds = 2 * UNIT_SECONDS * pool.segments * pool.dimension**2  # of one: estimates and widths
    size = max(1, min(MAX_VIEWS_PER_TURN, int(TURN_SECONDS / seconds)))
    for done in range(0, len(ids), size):
        some = ids[done : done + size]
        async with service.reading.piece():
            there = [article for article in some if article in pool.articles]  # edits happen
            found = _views(pool, there, service.clock.now())
        if found:
            yield [await _with_levers(service, pool, view) for view in found]


async def article_view(service: Service, pool_name: str, article: str) -> ArticleView:
    """One article of a pool."""
    pool = service.decider(pool_name).pool
    async with service.reading.piece():
        if article not in pool.articles:
            raise unknown_article(pool_name, article)
        (view,) = _views(pool, [article], service.clock.now())
    return await _with_levers(service, pool, view)


async def _with_levers(service: Service, pool: Pool, view: ArticleView) -> ArticleView:
    found = pool.articles.get(view.id)  # edits happen in between
    levers = None if found is None else found.facts.levers
    if levers is None:
        return view
    try:
        return replace(view, levers=await levers_view(service, pool.name, view.id, levers))
    except ApiError:  # and while this is estimated
        return view


def stats(
    service: Service,
    keeper: Keeper,
    since: float,
    outliers: dict[str, int],
    inspection: StateInspection,
) -> Stats:
    """The state of the whole service; `since` is its start on the monotonic clock."""
    return Stats(
        version=version("topstory"),
        uptime_seconds=monotonic() - since,
        records=inspection.number,
        waiting=service.commits.waiting,
        commits=service.commits.count,
        last_commit_seconds=service.commits.seconds,
        snapshot=keeper.number,
        snapshot_age_seconds=(service.clock.now() - keeper.at) / SECOND,
        clock_ahead_seconds=service.clock.ahead / SECOND,
        failing=service.commits.failing,
        fingerprint=inspection.fingerprint,
        pools={
            name: pool_stats(service, name, inspection.drift[name]) for name in service.deciders
        },
        outliers=outliers,
    )


def pool_stats(service: Service, name: str, drift: float) -> PoolStats:
    """One pool."""
    pool = service.decider(name).pool
    return PoolStats(
        policy=repr(pool.policy),
        articles=len(pool.articles),
        showable=len(pool.listing(service.clock.now()).ids),
        shows=sum(map(sum, pool.tally.shows)),
        payoff=float(sum(map(sum, pool.tally.payoff))),
        buckets=_with_intervals(bucket_counts(pool.tally), service.config.limits.payoffs),
        drift=drift,
    )


def bucket_counts(tally: Tally) -> dict[Bucket, BucketCounts]:
    """Shows and payoffs by bucket."""
    return {
        bucket: _counts(sum(tally.shows[number]), float(sum(tally.payoff[number])))
        for number, bucket in enumerate(BUCKETS)
    }


def _with_intervals(
    buckets: dict[Bucket, BucketCounts], payoffs: tuple[float, float] | None
) -> dict[Bucket, BucketCounts]:
    """With intervals that hold however often someone looks, if each payoff is from 0 to 1."""
    bounded = payoffs is not None and payoffs[0] >= 0 and payoffs[1] <= 1
    if not bounded or not all(0 <= each.payoff <= each.shows for each in buckets.values()):
        return buckets
    base = buckets["uniform"]
    found = {}
    for bucket, each in buckets.items():
        low, high = anytime_lift(each.shows, each.payoff, base.shows, base.payoff)
        lift = (low, high if math.isfinite(high) else None)
        found[bucket] = replace(
            each,
            interval=anytime_rate(each.shows, each.payoff),
            lift=None if each is base else lift,
        )
    return found


def _counts(shows: int, payoff: float) -> BucketCounts:
    return BucketCounts(shows, payoff, payoff / shows if shows else None)


def _views(pool: Pool, ids: Sequence[str], now: int) -> list[ArticleView]:
    if not ids:
        return []
    estimates, widths = [], []
    for segment in range(pool.segments):
        typical = [float(place == segment) for place in range(pool.dimension)]
        typical[-1] = 1.0
        estimates.append(pool.policy.estimates(typical, ids))
        widths.append(pool.policy.widths(typical, ids) * (pool.policy.explorer.bonus or 1.0))
    return [
        _view(pool, pool.articles[article], now, place, estimates, widths)
        for place, article in enumerate(ids)
    ]


def _view(
    pool: Pool,
    article: Article,
    now: int,
    place: int,
    estimates: list[Floats],
    widths: list[Floats],
) -> ArticleView:
    facts, tally = article.facts, article.tally
    shows, payoff = sum(map(sum, tally.shows)), float(sum(map(sum, tally.payoff)))
    return ArticleView(
        pool=pool.name,
        id=facts.id,
        title=facts.title,
        link=facts.link,
        features=facts.features,
        begins=None if facts.begins is None else as_datetime(facts.begins),
        ends=None if facts.ends is None else as_datetime(facts.ends),
        showable=article.showable(now),
        shows=shows,
        payoff=payoff,
        ctr=payoff / shows if shows else None,
        buckets=bucket_counts(tally),
        segments=tuple(
            _segment(
                tally, segment, float(estimates[segment][place]), float(widths[segment][place])
            )
            for segment in range(pool.segments)
        ),
        summary=facts.summary,
        picture=facts.picture,
    )


def _segment(tally: Tally, segment: int, estimate: float, width: float) -> SegmentView:
    shows = sum(by_segment[segment] for by_segment in tally.shows)
    payoff = float(sum(by_segment[segment] for by_segment in tally.payoff))
    known = math.isfinite(estimate)
    sure = known and math.isfinite(width)
    return SegmentView(
        segment=segment,
        shows=shows,
        payoff=payoff,
        ctr=payoff / shows if shows else None,
        estimate=estimate if known else None,
        interval=(estimate - width, estimate + width) if sure else None,
    )
