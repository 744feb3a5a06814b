"""The event log itself: made from arrays, written, read; its size in memory and on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import topstory as ts
from benchmarks import traffic
from benchmarks.measuring import interleaved, say
from benchmarks.tables import Section, Table

TARGET_BYTES = 40


def run(quick: bool) -> Section:
    """One table of rates, one of sizes."""
    events = 100_000 if quick else 5_000_000
    say(f"building {events:,} events")
    log = traffic.build(events)
    columns: dict[str, Any] = {
        "users": log.users,
        "pools": log.pools,
        "pool": log.pool,
        "payoff": log.payoff,
        "articles": dict(log.articles),
        "timestamps": log.timestamps,
    }
    encoded = pa.DictionaryArray.from_arrays(log.shown_index, pa.array(log.article_ids))
    ids = log.shown
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room, "log")
        tasks: dict[str, Callable[[], object]] = {
            "from_arrays, ids in an Arrow dictionary": partial(
                ts.EventLog.from_arrays, shown=encoded, **columns
            ),
            "from_arrays, ids in a NumPy array": partial(
                ts.EventLog.from_arrays, shown=ids, **columns
            ),
            "write": partial(log.write, folder),
            "read": partial(ts.EventLog.read, folder),
        }
        timings = interleaved(tasks, 3 if quick else 5)
        stored = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    rates = Table(
        f"The log, {events:,} events, d = 6, timed",
        ("what", "seconds", "M events/s"),
        [
            (name, f"{timing.median:.2f}", f"{events / timing.median / 1e6:.1f}")
            for name, timing in timings.items()
        ],
    )
    held = log.nbytes / events
    sizes = Table(
        "Bytes an event",
        ("where", "bytes", "target", "met"),
        [
            ("in memory", f"{held:.1f}", f"≤ {TARGET_BYTES}", _met(held)),
            ("on disk", f"{stored / events:.1f}", "", ""),
        ],
    )
    figures: dict[str, Any] = {name: timing.figures(events) for name, timing in timings.items()}
    figures |= {"bytes_in_memory": held, "bytes_on_disk": stored / events}
    notes = ["Writing and reading use all cores; from_arrays uses one."]
    return Section([rates, sizes], figures, notes)


def _met(held: float) -> str:
    return "yes" if held <= TARGET_BYTES else "no"
