"""Stored feature models that every later version must read.

`python -m tests.features.stored_models METHOD` writes the file of a method, and what it makes of
some profiles, before a new version of the format is released; `events` instead of a method, a
model with features of the event, and a log that it made. A file that exists is never written again:
it is what an earlier version wrote.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tests.features.worlds import mixed_log

import topstory as ts
from topstory.events import EventLog
from topstory.features.event.tables import EVENT_FEATURES

FIXTURES = Path(__file__).parent.parent / "fixtures"
# Models with features of the event, and the logs that they made: all in x, and some in f.
EVENTS = {"features-v3-events": "log-v2-events", "features-v4-events": "log-v3-events"}
IN_F = ("weekday", "age_hours")
USERS: list[dict[str, Any]] = [
    {"country": "fr", "age": 31.5, "spent": 12.0, "is_subscriber": False, "joined": "2008-03-01"},
    {"country": "nowhere", "likes": ["a", "c"], "city": "city-7", "about": "rain and wind in Rome"},
    {},
]
ARTICLES: list[dict[str, Any]] = [
    {"title": "a goal in the rain", "section": "sport", "words": 300.0, "video": True},
    {},
]


def made_by(
    builder: ts.FeatureBuilder, articles: Sequence[dict[str, Any]] = ARTICLES
) -> dict[str, Any]:
    """What a feature model makes of some profiles, floats in hex; and its identity."""
    return {
        "users": [[float(each).hex() for each in builder.user(user)] for user in USERS],
        "articles": [[float(each).hex() for each in builder.article(row)] for row in articles],
        "identity": builder.identity,
    }


def write(method: str, version: int = 2, folder: Path = FIXTURES) -> Path:
    path = folder / f"features-v{version}-{method}.safetensors"
    if path.exists():
        raise FileExistsError(f"{path.name} is what an earlier version wrote: it stays as it is")
    numbers = "bins" if method == "clusters" else "scaled"
    builder = ts.FeatureBuilder(method=method, clusters=2, components=3, numbers=numbers, text=2)
    builder.fit(mixed_log())
    builder.save(path)
    path.with_suffix(".json").write_text(json.dumps(made_by(builder), indent=1) + "\n")
    return path


def contexts_of(log: EventLog) -> list[list[list[str]]]:
    """The contexts of some events, one for each article of the pool, floats in hex."""
    return [
        [[float(each).hex() for each in x] for x in log.contexts(t)] for t in range(0, len(log), 15)
    ]


def write_events(version: int = 4, folder: Path = FIXTURES) -> Path:
    """A model with all features of the event, and a log that it made; version 4: some are in f."""
    path = folder / f"features-v{version}-events.safetensors"
    if path.exists():
        raise FileExistsError(f"{path.name} is what an earlier version wrote: it stays as it is")
    random = np.random.default_rng(0)
    published = [np.datetime64("2009-05-01T06:00", "us").item() for _ in range(8)]
    plain = mixed_log(600)
    assert plain.article_profiles is not None
    log = mixed_log(
        600,
        timestamps=1241150400 + np.arange(600) * 400,
        decisions={"slot": random.integers(12, size=600)},
        article_profiles={
            "section": plain.article_profiles.column("section").to_pylist(),
            "words": plain.article_profiles.column("words").to_pylist(),
            "published": published,
        },
    )
    builder = ts.FeatureBuilder(
        method="pca",
        components=3,
        event=tuple(name for name in EVENT_FEATURES if version == 3 or name not in IN_F),
        event_in_f=() if version == 3 else IN_F,
        timezone="Europe/Berlin",
    )
    made = builder.fit(log).apply(log)[:60]
    made.write(folder / EVENTS[path.stem])
    builder.save(path)
    told = made_by(builder, ({"section": "sport", "words": 300.0}, {}))
    told["contexts"] = contexts_of(made)
    path.with_suffix(".json").write_text(json.dumps(told, indent=1) + "\n")
    return path


if __name__ == "__main__":
    print(write_events() if sys.argv[1] == "events" else write(sys.argv[1]))
