"""Stored feature models that every later version must read.

`python -m tests.features.stored_models METHOD` writes the file of a method, and what it makes of
some profiles, before a new version of the format is released. A file that exists is never written
again: it is what an earlier version wrote.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.features.worlds import mixed_log

import topstory as ts

FIXTURES = Path(__file__).parent.parent / "fixtures"
USERS: list[dict[str, Any]] = [
    {"country": "fr", "age": 31.5, "spent": 12.0, "is_subscriber": False, "joined": "2008-03-01"},
    {"country": "nowhere", "likes": ["a", "c"], "city": "city-7", "about": "rain and wind in Rome"},
    {},
]
ARTICLES: list[dict[str, Any]] = [
    {"title": "a goal in the rain", "section": "sport", "words": 300.0, "video": True},
    {},
]


def made_by(builder: ts.FeatureBuilder) -> dict[str, Any]:
    """What a feature model makes of some profiles, floats in hex; and its identity."""
    return {
        "users": [[float(each).hex() for each in builder.user(user)] for user in USERS],
        "articles": [[float(each).hex() for each in builder.article(row)] for row in ARTICLES],
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


if __name__ == "__main__":
    print(write(sys.argv[1]))
