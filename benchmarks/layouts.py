"""The readers of tables and of the plain layout: how many events a second."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks import traffic
from benchmarks.measuring import interleaved, say
from benchmarks.tables import Table
from topstory import EventLog
from topstory.events.formats.exporting import export
from topstory.events.formats.faults import Faults
from topstory.events.formats.registry import reader

ITEMS, CATEGORIES = 34, (3, 6, 10, 10)  # items of a campaign; values of each user feature
NOTE = (
    "obd: 34 items, 4 user features and 34 affinities in the file, which is read twice. jsonl, csv "
    "and parquet: a user of six numbers and a pool of 20 ids. One file each, not compressed but "
    "for Parquet; reading only, nothing is written."
)


def run(events: int, repetitions: int, room: Path) -> tuple[Table, dict[str, Any]]:
    """The table, and its figures."""
    say(f"writing {events:,} events of the plain layouts")
    paths = _write(events, room)
    timings = interleaved(
        {format: partial(read, format, path, events) for format, path in paths.items()},
        repetitions,
    )
    figures = {
        format: {**timing.figures(events), "bytes": paths[format].stat().st_size}
        for format, timing in timings.items()
    }
    rows = [
        (
            f"`{format}`",
            f"{found['events_per_second']:,.0f}",
            f"{found['bytes'] / 1e6 / found['seconds']:,.0f}",
        )
        for format, found in figures.items()
    ]
    columns = ("reader", "events a second", "MB a second")
    return Table(f"Other formats, {events:,} events", columns, rows), figures


def read(format: str, path: Path, events: int) -> None:
    """Read the file; all of it must be good."""
    faults = Faults()
    found = sum(len(log) for _, log in reader(format).read([path], faults, lambda more: None))
    assert not faults.counts, faults.first
    assert found == events


def _write(events: int, room: Path) -> dict[str, Path]:
    log = traffic.build(events)
    names = ("obd", "jsonl", "csv", "parquet")
    paths = {format: room / f"plain.{format}" for format in names}
    _write_obd(events, paths["obd"])
    export(log, "jsonl", paths["jsonl"])
    columns = _columns(log)
    pq.write_table(pa.table(columns), paths["parquet"])
    columns["user"] = ["|".join(map(repr, user)) for user in columns["user"]]
    columns["pool"] = ["|".join(pool) for pool in columns["pool"]]
    pyarrow.csv.write_csv(pa.table(columns), paths["csv"])
    return paths


def _columns(log: EventLog) -> dict[str, Any]:
    pools = log.pools
    return {
        "timestamp": log.timestamps,
        "user": np.asarray(log.users).tolist(),
        "pool": [pools[number] for number in log.pool.tolist()],
        "shown": log.shown.tolist(),
        "payoff": log.payoff,
        "propensity": log.propensity,
    }


def _write_obd(events: int, path: Path) -> None:
    random = np.random.default_rng(0)
    hashes = [f"{random.integers(2**63):016x}{random.integers(2**63):016x}" for _ in range(40)]
    times = np.datetime64("2019-11-24T00:00:00") + np.arange(events)
    columns: dict[str, Any] = {
        "timestamp": [f"{time} +00:00".replace("T", " ").replace(" +", "+") for time in times],
        "item_id": random.integers(ITEMS, size=events),
        "position": random.integers(1, 4, size=events),
        "click": (random.random(events) < 0.005).astype(int),
        "propensity_score": np.full(events, 1 / ITEMS),
    }
    for number, values in enumerate(CATEGORIES):
        taken = random.integers(values, size=events)
        columns[f"user_feature_{number}"] = [hashes[value] for value in taken]
    for item in range(ITEMS):
        columns[f"user-item_affinity_{item}"] = random.poisson(0.01, events).astype(float)
    pyarrow.csv.write_csv(pa.table(columns), path)
    items: dict[str, Any] = {
        "item_id": np.arange(ITEMS),
        "item_feature_0": random.normal(size=ITEMS),
        "item_feature_1": [hashes[value] for value in random.integers(20, size=ITEMS)],
    }
    pyarrow.csv.write_csv(pa.table(items), path.parent / "item_context.csv")
