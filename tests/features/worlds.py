"""Small worlds of raw profiles, for tests of features."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import topstory as ts
from topstory.events import EventLog

# Changes of `little_log` after which nothing can be learned, and the error that reports it.
TEACHING_NOTHING: list[tuple[dict[str, Any], str]] = [
    ({"article_profiles": None}, "no raw profiles of its articles"),
    (
        {"visitor": None, "profiles": None, "users": np.ones((2000, 1))},
        "no raw profiles of its users",
    ),
    ({"payoff": np.zeros(2000)}, "no event was clicked"),
    ({"payoff": np.full(2000, 2.0)}, "payoffs from 0 to 1; got 2 to 2"),
    ({"article_profiles": {"tags": [["x"]] * 6}}, "6 articles shown, all with the same"),
]


@cache
def clear_world(seed: int = 0, users: int = 5_000, behaviours: int = 300) -> ts.TodayModule:
    """A Today Module whose groups show in profiles and clicks, so that few events tell them."""
    return ts.TodayModule(
        seed=seed,
        users=users,
        behaviours=behaviours,
        behaviour_support=(0.02, 0.2),
        telling=1.0,
        behaviour_tilt=2.0,
        locations=30,
        preference=1.5,
        ctr=0.1,
    )


@cache
def clear_log() -> EventLog:
    """200,000 events of exploration, in April."""
    return clear_world().random_log(200_000, start="2009-04-01", days=10, raw=True)


@cache
def clear_builder(distances: str = "weighted") -> ts.FeatureBuilder:
    """Fitted on them."""
    return ts.FeatureBuilder(support=0.001, ridge=3.0, distances=distances).fit(clear_log())


def little_log(**changes: Any) -> EventLog:
    """2,000 events of 40 users and 6 articles."""
    random = np.random.default_rng(0)
    opera = np.arange(40) % 2
    visitor, shown = random.integers(40, size=2_000), random.integers(6, size=2_000)
    given: dict[str, Any] = {
        "users": None,
        "pools": [[f"a{i}" for i in range(6)]],
        "pool": np.zeros(2_000, int),
        "shown": [f"a{i}" for i in shown],
        "payoff": random.random(2_000) < np.where(opera[visitor] == shown % 2, 0.5, 0.1),
        "visitor": visitor,
        "profiles": {
            "gender": [["f", "m", None][i % 3] for i in range(40)],
            "likes": [["opera", "tea"] if o else ["golf"] for o in opera],
        },
        "article_profiles": {"tags": [["stage"] if i % 2 else ["sport", "ball"] for i in range(6)]},
    }
    return EventLog.from_arrays(**(given | changes))


def little_builder() -> ts.FeatureBuilder:
    """Fitted on as few, in which every article has its friends: six numbers in no time."""
    random = np.random.default_rng(1)
    visitor, shown = random.integers(40, size=2_000), random.integers(6, size=2_000)
    likes = ["opera", "golf", "tea", "chess", "jazz", "yoga"]
    log = little_log(
        visitor=visitor,
        shown=[f"a{i}" for i in shown],
        payoff=random.random(2_000) < np.where(visitor % 6 == shown, 0.7, 0.1),
        profiles={"likes": [[likes[i % 6], likes[i // 6 % 6]] for i in range(40)]},
        article_profiles={"tags": [[f"on {each}"] for each in likes]},
    )
    return ts.FeatureBuilder(ridge=0.1, support=0.001).fit(log)
