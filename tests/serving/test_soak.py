"""Mixed traffic for a while: memory stays flat, and the state is the journal's."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import numpy as np
from tests.serving.making import config, folded, visitor
from tests.serving.processes import Served

import topstory as ts
from topstory.serving.messages import ArticleRequest

SECONDS = float(os.environ.get("SOAK_SECONDS", "3"))  # `make soak` sets 600
CLIENTS = 8
PAUSE = 0.01  # between a client's visits: some half of what one core can do


async def traffic(served: Served, seconds: float) -> list[int]:
    """Visitors, clicks and edits; the service's memory, ten times."""
    random = np.random.default_rng(0)
    end = time.monotonic() + seconds
    sizes = []
    async with ts.AsyncClient(served.url, served.key, timeout=60) as client:

        async def visit() -> None:
            while time.monotonic() < end:
                made = await client.decide(visitor(random), slots=int(random.integers(1, 5)))
                if random.random() < 0.3:
                    await client.feedback(made.decision, 1)
                await asyncio.sleep(PAUSE)

        async def edit() -> None:
            number = 0
            while time.monotonic() < end:
                number += 1
                said = ArticleRequest(features=(random.random(), random.random(), 1.0))
                await client.put_article("front", f"new-{number}", said)
                await asyncio.sleep(0.1)
                await client.remove_article("front", f"new-{number}")

        async def watch() -> None:
            for _ in range(10):
                await asyncio.sleep(seconds / 10)
                await client.stats()
                sizes.append(served.memory())

        await asyncio.gather(*(visit() for _ in range(CLIENTS)), edit(), watch())
    return sizes


def test_mixed_traffic_leaves_memory_flat(tmp_path: Path) -> None:
    """Flat: the last third of the run needs no more than the middle one, but for 5 %."""
    limits = {"remembered": 500}
    with Served(tmp_path, limits=limits, journal={"snapshot_seconds": SECONDS / 8}) as served:
        with ts.Client(served.url, served.key, timeout=60) as client:
            for number in range(4):
                said = ArticleRequest(features=(number / 4, 1 - number / 4, 1.0))
                client.put_article("front", f"article-{number}", said)
        sizes = asyncio.run(traffic(served, SECONDS))
        with ts.Client(served.url, served.key, timeout=60) as client:
            stats = client.stats()
        assert stats.pools["front"].shows > SECONDS * 20
        assert max(sizes[-3:]) < 1.05 * max(sizes[3:6])
    assert folded(config(served.data)).fingerprint() == stats.fingerprint
    assert "Traceback" not in served.errors()
