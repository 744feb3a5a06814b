"""Mixed traffic at half of capacity for a while: memory stays flat, the state is the journal's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.making import config, folded, visitor
from tests.serving.mixed import SHARES, Mixed, drive
from tests.serving.processes import Served

import topstory as ts
from topstory.serving.messages import ArticleRequest

SECONDS = float(os.environ.get("SOAK_SECONDS", "3"))  # `make soak` sets 600
LOOKS = 30


@pytest.mark.parametrize("workers", [1, 2])
def test_half_of_capacity_leaves_memory_flat(tmp_path: Path, workers: int) -> None:
    """Flat: the last third of the run needs no more than the middle one, but for 5 %."""
    told: dict[str, Any] = {
        "limits": {"remembered": 2_000},
        "journal": {"snapshot_seconds": SECONDS / 20},
    }
    sizes: list[int] = []
    random = np.random.default_rng(0)
    with Served(tmp_path, **told, workers=workers) as served:
        with ts.Client(served.url, served.key, timeout=60) as client:
            for number in range(4):
                said = ArticleRequest(features=(number / 4, 1 - number / 4, 1.0))
                client.put_article("front", f"article-{number}", said)
        mixed = Mixed(served.key, [visitor(random) for _ in range(256)])
        capacity = drive(served.address, mixed, min(10.0, SECONDS / 3)).rate
        half = drive(
            *(served.address, mixed, SECONDS, capacity / 2),
            watch=lambda: sizes.append(served.memory()),
            watches=LOOKS,
        )
        with ts.Client(served.url, served.key, timeout=60) as client:
            stats = client.stats()
        assert set(mixed.answers) == set(SHARES)
        assert not mixed.refused
        assert stats.pools["front"].payoff == mixed.payoff
        thirds = [max(sizes[i : i + LOOKS // 3]) / 1e6 for i in range(0, LOOKS, LOOKS // 3)]
        print(
            f"{workers} that answer: capacity {capacity:,.0f} requests/s; {half.rate:,.0f} for "
            f"{half.seconds:,.0f} s, half of them within {half.slowest(0.5) * 1e3:.1f} ms and 99 % "
            f"within {half.slowest(0.99) * 1e3:.1f} ms; memory at most {thirds[0]:.1f}, "
            f"{thirds[1]:.1f} and {thirds[2]:.1f} MB in its thirds"
        )
        assert thirds[2] < 1.05 * thirds[1]
        if SECONDS >= 60:  # a few seconds on a busy machine say nothing of rates
            assert half.rate > 0.45 * capacity
    assert folded(config(served.data)).fingerprint() == stats.fingerprint
    assert "Traceback" not in served.errors()
