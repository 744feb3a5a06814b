"""Small worlds of raw profiles, for tests of features."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import topstory as ts
from topstory.events import EventLog
from topstory.events.columns.profiles import as_profiles

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


def little_builder(seed: int = 1) -> ts.FeatureBuilder:
    """Fitted on as few, in which every article has its friends: six numbers in no time."""
    random = np.random.default_rng(seed)
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


def mixed_profiles(users: int = 300, seed: int = 0) -> pa.Table:
    """Profiles as a warehouse exports them: all kinds, with missing values."""
    random = np.random.default_rng(seed)

    def some(values: Any) -> list[Any]:
        return [
            None if gone else value
            for value, gone in zip(values, random.random(users) < 0.1, strict=True)
        ]

    joined = np.datetime64("2008-01-01", "us") + random.integers(10**6, 3 * 10**13, users)
    words = ["rain", "sun", "goal", "news", "art", "wind", "Rome"]
    columns = {
        "country": some(random.choice(["de", "fr", "us", "li"], users, p=[0.5, 0.3, 0.195, 0.005])),
        "device": random.choice(["phone", "desk"], users).tolist(),
        "age": some(random.normal(40, 12, users).tolist()),
        "spent": some((random.exponential(40, users) ** 2).tolist()),
        "is_subscriber": some((random.random(users) < 0.3).tolist()),
        "joined": some(joined.tolist()),
        "likes": some(
            [random.choice(list("abcd"), size=k).tolist() for k in random.integers(4, size=users)]
        ),
        "city": [f"city-{i}" for i in random.integers(500, size=users)],
        "about": some([" ".join(random.choice(words, 4)) for _ in range(users)]),
        "site": ["main"] * users,
    }
    return as_profiles("profiles", columns, text=["about"])


def mixed_log(events: int = 4_000, seed: int = 0, **changes: Any) -> EventLog:
    """Subscribers like the articles about rain, phones those about goals."""
    random = np.random.default_rng(seed)
    profiles = mixed_profiles(seed=seed)
    users, visitor = profiles.to_pylist(), random.integers(profiles.num_rows, size=events)
    titles = ["rain in Rome", "goal of the day", "more rain, more wind", "a goal, and a goal"] * 2
    shown = random.integers(len(titles), size=events)
    rainy = np.array([bool(user["is_subscriber"]) for user in users])[visitor]
    liked = np.where(shown % 2 == 0, rainy, ~rainy)
    given: dict[str, Any] = {
        "users": None,
        "pools": [[f"a{i}" for i in range(len(titles))]],
        "pool": np.zeros(events, int),
        "shown": [f"a{i}" for i in shown],
        "payoff": random.random(events) < np.where(liked, 0.5, 0.1),
        "visitor": visitor,
        "profiles": profiles,
        "article_profiles": as_profiles(
            "article_profiles",
            {
                "title": titles,
                "section": ["weather", "sport"] * 4,
                "words": [300.0, 500, None, 900, 200, 700, 800, 400],
                "video": [True, False] * 4,
            },
            text=["title"],
        ),
    }
    return EventLog.from_arrays(**(given | changes))
