"""The simulator's visitors through HTTP: the service earns what `world.live` earns in process."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.serving.processes import Served

import topstory as ts
from topstory.events.simulator.live import Visit
from topstory.serving.api.messages import BUCKETS, ArticleRequest

POOLS = ("front", "sports", "money", "travel")
VISITS, HOURS, PATHS = 2_100, 3, 40
NAME, EPSILON = "egreedy-hybrid", 0.3
SHARES = {"learning": 0.34, "deployment": 0.33, "uniform": 0.33, "uniform_teaches": False}
# Clicks and tastes stronger than a front page's, so that two thousand visits teach something.
WORLD = ts.TodayModule(seed=0, users=5_000, ctr=0.3, preference=2.0)


class Earned(NamedTuple):
    """The mean true chance of a click on what each bucket showed: one value a learning path."""

    learning: np.ndarray
    deployment: np.ndarray
    random: float


@pytest.fixture(scope="module")
def in_process() -> Earned:
    paths = [
        WORLD.live(
            ts.policy(NAME, epsilon=EPSILON, seed=seed),
            trials=round(VISITS * SHARES["learning"]),
            days=HOURS / 24,
            seed=seed,
            deployment=True,
        )
        for seed in range(PATHS)
    ]
    return Earned(
        np.array([path.expected for path in paths]),
        np.array([path.deployed for path in paths]),
        paths[0].random,
    )


class Connections:
    """Kept connections for the many calls: the client takes several times the service's CPU."""

    def __init__(self, served: Served) -> None:
        self._address, self._key = served.address, served.key.encode()
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """The answer, whose status must be 200."""
        kept = self._idle.pop() if self._idle else await asyncio.open_connection(*self._address)
        reader, writer = kept
        content = json.dumps(body).encode()
        writer.write(
            b"POST %b HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %b\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (path.encode(), self._key, len(content), content)
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None, head
        answer = json.loads(await reader.readexactly(int(length[1])))
        assert head.startswith(b"HTTP/1.1 200 "), answer
        self._idle.append(kept)
        return answer

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()


async def over_http(
    client: ts.AsyncClient, connections: Connections, pool: str
) -> dict[str, list[float]]:
    """The true chances of a click on what each bucket showed; editors change the pool hourly."""
    features = {
        article: tuple(np.asarray(known).tolist())
        for article, known in WORLD.random_log(1, days=HOURS / 24).articles.items()
    }
    chances: dict[str, list[float]] = {bucket: [] for bucket in BUCKETS}
    clicks = dict.fromkeys(BUCKETS, 0.0)
    # Few at once: a click that comes after other decisions teaches them nothing.
    gate = asyncio.Semaphore(4)

    async def visit(each: Visit) -> None:
        async with gate:
            visitor = f"{pool}-{each.number}"
            request = {"user": each.user.tolist(), "pool": pool, "visitor": visitor}
            made = await connections.post("/v1/decide", request)
            article, bucket = made["article"], made["bucket"]
            chances[bucket].append(each.chances[each.pool.index(article)])
            if each.payoff(article):
                clicks[bucket] += 1
                await connections.post("/v1/feedback", {"decision": made["decision"], "payoff": 1})

    shown: set[str] = set()
    visits = WORLD.visits(VISITS, days=HOURS / 24, seed=99 + POOLS.index(pool))
    for articles, each_hour in groupby(visits, key=lambda visit: visit.pool):
        for article in sorted(shown - set(articles)):
            await client.remove_article(pool, article)
        for article in articles:
            if article not in shown:
                known = ArticleRequest(features=features[article])
                await client.put_article(pool, article, known)
        shown = set(articles)
        await asyncio.gather(*map(visit, each_hour))
    counted = (await client.stats()).pools[pool].buckets
    for bucket in BUCKETS:
        assert (counted[bucket].shows, counted[bucket].payoff) == (
            len(chances[bucket]),
            clicks[bucket],
        )
    return chances


async def in_every_pool(served: Served) -> list[dict[str, list[float]]]:
    """A learning path in each pool, side by side: their mean depends less on one path's luck."""
    async with ts.AsyncClient(served.url, served.key, timeout=60) as client:
        with closing(Connections(served)) as connections:
            return await asyncio.gather(*(over_http(client, connections, pool) for pool in POOLS))


@pytest.mark.parametrize("workers", [1, 2])
def test_live_traffic_earns_what_the_world_pays_in_process(
    workers: int, in_process: Earned, tmp_path: Path
) -> None:
    """Deployment above learning above uniform, each within 5 deviations of `world.live`.

    How far learning paths differ is estimated from 40 of them: chance exceeds 5 deviations of
    Student's t with 39 degrees of freedom once in 80,000 runs, and there are three comparisons.
    What live traffic learns late, as its clicks are on the way, is small beside them.
    """
    settings = {"name": NAME, "epsilon": EPSILON}
    pools: dict[str, dict[str, str]] = {pool: {} for pool in POOLS}
    with Served(
        tmp_path, context=6, policy=settings, traffic=SHARES, pools=pools, workers=workers
    ) as served:
        live = asyncio.run(in_every_pool(served))
    earned = {
        bucket: float(np.mean([np.mean(chances[bucket]) for chances in live])) for bucket in BUCKETS
    }
    assert earned["deployment"] > earned["learning"] > earned["uniform"]
    for bucket in ("learning", "deployment"):
        paths: np.ndarray = getattr(in_process, bucket)
        deviation = np.std(paths, ddof=1) * np.sqrt(1 / len(POOLS) + 1 / PATHS)
        assert abs(earned[bucket] - np.mean(paths)) < 5 * deviation, bucket
    # Uniform traffic learns nothing: only which article each visitor was shown is luck.
    uniform = np.concatenate([chances["uniform"] for chances in live])
    deviation = np.std(uniform) / np.sqrt(len(uniform))
    assert abs(earned["uniform"] - in_process.random) < 5 * deviation
