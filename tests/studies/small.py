"""A study small enough to be run in every test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests.worlds import changing_pools, world

import topstory as ts

POLICIES = ("egreedy", "ucb", "egreedy-warm", "linucb-disjoint")
SIZES = (1.0, 0.05)


def logs(events: int = 4_000) -> dict[str, ts.EventLog]:
    """Three logs of one world."""
    place, random = world(seed=1), np.random.default_rng(3)
    pools = changing_pools(12, 5, 8, seed=2)
    return {
        "exploration": place.log(events // 2, pools, random, hourly=False),
        "tuning": place.log(events, pools, random, hourly=False),
        "evaluation": place.log(2 * events, pools, random, hourly=False),
    }


def small_study(out: Path, **settings: Any) -> ts.Study:
    given: dict[str, Any] = {
        "policies": POLICIES,
        "sizes": SIZES,
        "epsilons": (0.1, 0.3),
        "alphas": (0.1, 1.0),
        "engine": "serial",
    }
    return ts.study(out, **{**logs(), **given, **settings})
