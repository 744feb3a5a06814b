"""Profiles of any kinds: fitting `direct` on a log, and transforming one profile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa

import topstory as ts
from topstory.events.columns.profiles import as_profiles

ARTICLES = 40


def profiles(users: int) -> pa.Table:
    """Ten fields: categories, numbers, booleans, dates, lists and text, some of them missing."""
    random = np.random.default_rng(0)

    def some(values: Any) -> Any:
        return pa.array(values, mask=random.random(users) < 0.05)

    def drawn(words: list[str]) -> Any:
        codes = random.integers(len(words), size=users).astype(np.int32)
        return pa.DictionaryArray.from_arrays(codes, pa.array(words))

    lengths = random.integers(4, size=users)
    tags = [f"tag-{i}" for i in range(30)]
    codes = random.integers(30, size=int(lengths.sum())).astype(np.int32)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    words = np.array(["rain", "sun", "goal", "news", "art", "wind", "rome", "vote", "film"])
    texts = [" ".join(row) for row in words[random.integers(9, size=(1_000, 5))]]
    fields = {
        "country": drawn([f"country-{i}" for i in range(30)]),
        "device": drawn(["phone", "desk", "tablet"]),
        "city": drawn([f"city-{i}" for i in range(5_000)]),
        "age": some(random.normal(40, 12, users)),
        "spent": some(random.exponential(40, users) ** 2),
        "visits": random.poisson(8, users),
        "is_subscriber": some(random.random(users) < 0.3),
        "joined": pa.array(random.integers(0, 10**15, users)).cast(pa.timestamp("us")),
        "likes": pa.ListArray.from_arrays(
            pa.array(offsets, pa.int32()), pa.DictionaryArray.from_arrays(codes, pa.array(tags))
        ),
        "about": drawn(texts).dictionary_decode(),
    }
    return as_profiles("profiles", pa.table(fields), text=["about"])


def measure(events: int, users: int) -> dict[str, float]:
    """Seconds to fit `direct` on a folder, and microseconds for one profile."""
    random = np.random.default_rng(1)
    table = profiles(users)
    names = [f"article-{i}" for i in range(ARTICLES)]
    shown = random.integers(ARTICLES, size=events)
    log = ts.EventLog.from_arrays(
        None,
        [names],
        np.zeros(events, int),
        np.array(names)[shown],
        random.random(events) < 0.05,
        visitor=random.integers(users, size=events),
        profiles=table,
        article_profiles={"section": [f"section-{i % 7}" for i in range(ARTICLES)]},
    )
    with TemporaryDirectory() as folder:
        log.write(Path(folder) / "log")
        builder = ts.FeatureBuilder(method="direct")
        began, used = perf_counter(), process_time()
        builder.fit_folder(Path(folder) / "log")
        seconds, processor = perf_counter() - began, process_time() - used
    rows = table.slice(0, 1_000).to_pylist()

    def each() -> None:
        for row in rows:
            builder.user(row)

    one = min(_timed(each) for _ in range(5)) / len(rows) * 1e6
    return {"direct": seconds, "direct_processor": processor, "mixed": one}


def _timed(task: Callable[[], object]) -> float:
    began = process_time()
    task()
    return process_time() - began
