"""Mixed traffic at half of capacity for a while: memory stays flat, the state is the journal's."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.making import config, folded, visitor
from tests.serving.mixed import SHARES, Mixed, drive
from tests.serving.processes import Served

import topstory as ts
from topstory.serving.api.messages import ArticleRequest

SECONDS = float(os.environ.get("SOAK_SECONDS", "2"))  # `make soak` sets 600
ROUND = 60.0  # seconds at half of the capacity that was measured before them
CAPACITY = 3.0  # seconds that measuring it takes
LOOKS = 30
ENOUGH = 400  # requests, so that each kind is among them


@pytest.mark.parametrize("workers", [1, 2])
def test_half_of_capacity_leaves_memory_flat(tmp_path: Path, workers: int) -> None:
    """Flat: the last third of the run needs no more than the middle one, but for 5 %.

    A run of a few seconds tells that all of this works: what is remembered fills up in it, so that
    it only may not need half as much again.
    """
    settings: dict[str, Any] = {
        "limits": {"remembered": 2_000},
        "journal": {"snapshot_seconds": SECONDS / 20},
    }
    rounds = math.ceil(SECONDS / ROUND)
    capacities, halves, sizes = [], [], []
    random = np.random.default_rng(0)
    with Served(tmp_path, **settings, workers=workers) as served:
        with ts.Client(served.url, served.key, timeout=60) as client:
            for number in range(4):
                said = ArticleRequest(features=(number / 4, 1 - number / 4, 1.0))
                client.put_article("front", f"article-{number}", said)
        mixed = Mixed(served.key, [visitor(random) for _ in range(256)])
        for _ in range(rounds):  # what else the machine does changes in ten minutes
            most = drive(*(served.address, mixed, min(CAPACITY, SECONDS / 3)), at_least=ENOUGH)
            capacities.append(most.rate)
            half = drive(
                *(served.address, mixed, SECONDS / rounds, capacities[-1] / 2),
                watch=lambda: sizes.append(served.memory() / 1e6),
                watches=math.ceil(LOOKS / rounds),
                at_least=ENOUGH,
            )
            halves.append(half.rate)
        with ts.Client(served.url, served.key, timeout=60) as client:
            stats = client.stats()
        assert set(mixed.answers) == set(SHARES)
        assert not mixed.refused
        assert stats.pools["front"].payoff == mixed.payoff
        first, middle, last = (max(part) for part in np.array_split(sizes, 3))
        half_of_them, nearly_all = np.quantile(half.took, (0.5, 0.99)) * 1e3
        print(
            f"{workers} that answer, {SECONDS:g} s, {sum(mixed.answers.values()):,} requests: "
            f"capacity {min(capacities):,.0f} to {max(capacities):,.0f} a second, on average "
            f"{np.mean(capacities):,.0f}; driven at {np.mean(halves):,.0f}; in the last round half "
            f"took {half_of_them:.1f} ms and 99 % {nearly_all:.1f} ms at most; memory at most "
            f"{first:.1f}, {middle:.1f} and {last:.1f} MB in its thirds"
        )
        assert last < (1.05 if rounds > 1 else 1.5) * middle
        if rounds > 1:  # a few seconds on a busy machine say nothing of rates
            assert np.mean(halves) > 0.4 * np.mean(capacities)
    assert folded(config(served.data)).fingerprint() == stats.fingerprint
    assert "Traceback" not in served.errors()
