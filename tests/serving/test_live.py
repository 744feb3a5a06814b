"""Visitors through HTTP: the service earns what the same policy earns in process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import numpy as np
from tests.serving.processes import Served

import topstory as ts
from topstory.serving.buckets import BUCKETS
from topstory.serving.config import TrafficConfig
from topstory.serving.messages import ArticleRequest
from topstory.serving.traffic import Traffic

VISITS = 1_800
NAME, EPSILON = "egreedy-disjoint", 0.4
SHARES = {"learning": 0.34, "deployment": 0.33, "uniform": 0.33}
USERS = np.column_stack([np.eye(3), np.ones(3)])
CHANCES = np.where(np.eye(3, 6, dtype=bool), 0.7, 0.1)  # each kind of user has one article to like


def visits() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.integers(3, size=VISITS), random.random(VISITS)


async def over_http(served: Served) -> dict[str, tuple[int, int]]:
    """Shows and clicks by bucket."""
    kinds, luck = visits()
    gate = asyncio.Semaphore(32)
    counts = {bucket: [0, 0] for bucket in BUCKETS}

    async with ts.AsyncClient(served.url, served.key, timeout=60) as client:
        for number in range(6):
            await client.put_article("front", f"article-{number}", ArticleRequest())

        async def visit(number: int) -> None:
            async with gate:
                made = await client.decide(USERS[kinds[number]], visitor=f"visitor-{number}")
                chance = CHANCES[kinds[number], int(made.article.removeprefix("article-"))]
                clicked = bool(luck[number] < chance)
                counts[made.bucket][0] += 1
                counts[made.bucket][1] += clicked
                if clicked:
                    await client.feedback(made.decision, 1)

        await asyncio.gather(*map(visit, range(VISITS)))
        pool = (await client.stats()).pools["front"]
    for bucket, counted in pool.buckets.items():
        assert [counted.shows, counted.payoff] == counts[bucket]
    return {bucket: (shows, clicks) for bucket, (shows, clicks) in counts.items()}


def in_process() -> dict[str, tuple[int, int]]:
    """The same visitors and buckets, one after the other."""
    kinds, luck = visits()
    policy = ts.policy(NAME, epsilon=EPSILON)
    traffic = Traffic(msgspec.convert(SHARES, TrafficConfig), "front")
    pool = [f"article-{number}" for number in range(6)]
    random = ts.policy("random", seed=1)
    counts = {bucket: [0, 0] for bucket in BUCKETS}
    for number in range(VISITS):
        user = USERS[kinds[number]]
        bucket = BUCKETS[traffic.bucket(f"visitor-{number}")]
        choose = {
            "learning": policy.choose,
            "deployment": policy.greedy,
            "uniform": random.choose,
        }[bucket]
        article = choose(user, pool).article
        clicked = luck[number] < CHANCES[kinds[number], pool.index(article)]
        counts[bucket][0] += 1
        counts[bucket][1] += int(clicked)
        if bucket != "deployment":
            policy.learn(user, article, float(clicked))
    return {bucket: (shows, clicks) for bucket, (shows, clicks) in counts.items()}


def test_live_traffic_earns_what_it_earns_in_process(tmp_path: Path) -> None:
    """Deployment above learning above uniform, each within 4 deviations of the process's own.

    The gaps are 4 deviations and more, so chance fails this less than once in 10,000 runs.
    """
    with Served(tmp_path, policy={"name": NAME, "epsilon": EPSILON}, traffic=SHARES) as served:
        live = asyncio.run(over_http(served))
    ctr = {bucket: clicks / shows for bucket, (shows, clicks) in live.items()}
    assert ctr["deployment"] > ctr["learning"] > ctr["uniform"]
    for bucket, (shows, clicks) in in_process().items():
        assert shows == live[bucket][0]  # sticky buckets: the same visitors are in them
        deviation = np.sqrt(2 * 0.25 / shows)
        assert abs(ctr[bucket] - clicks / shows) < 4 * deviation
