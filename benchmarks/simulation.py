"""The simulated world: how fast it makes events, and what the paper's week takes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import topstory as ts
from benchmarks import ROOT
from benchmarks.measuring import interleaved, say
from benchmarks.memory import peak
from benchmarks.tables import Section, Table
from topstory.events.simulator.window import WorldWindow

RATE, SECONDS, BYTES, MAX_AGE_HOURS = 3e6, 30, 16, 3e9


def run(quick: bool) -> Section:
    """One table of rates on one core, one of the whole week."""
    events = 100_000 if quick else 1 << 20
    world = ts.TodayModule(users=20_000 if quick else 1_000_000)
    window, groups = world.window(days=7), world.population.groups
    say(f"drawing {events:,} events on one core")
    traffic = world._traffic(events, "2009-05-01", 7, 0, False, None)
    timings = interleaved(
        {
            "topstory": lambda: traffic._part(0, events),
            "plain NumPy": lambda: plain(world, window, groups, events),
        },
        3 if quick else 7,
        clock=process_time,
    )
    rates = {name: events / timing.median for name, timing in timings.items()}
    cores = Table(
        f"Events a second of one core, {world.settings.users:,} users",
        ("what", "M events/s", "× NumPy", "target", "met"),
        [
            (
                name,
                f"{rate / 1e6:.1f}",
                f"{rate / rates['plain NumPy']:.1f}",
                "≥ 3" if name == "topstory" else "",
                ("yes" if rate >= RATE else "no") if name == "topstory" else "",
            )
            for name, rate in rates.items()
        ],
    )
    week = 200_000 if quick else 36_000_000
    with tempfile.TemporaryDirectory() as room:
        say(f"writing a week of {week:,} events in a process of its own")
        command = [sys.executable, "-m", "benchmarks.simulation", str(week), f"{room}/week"]
        done = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    rows = [
        ("population of 1,000,000", f"{found['population']:.1f} s", "", ""),
        (
            "the events, written",
            f"{found['seconds']:.1f} s",
            f"≤ {SECONDS} s",
            _met(found["seconds"], SECONDS),
        ),
        (
            "on disk",
            f"{found['bytes']:.1f} bytes an event",
            f"≤ {BYTES}",
            _met(found["bytes"], BYTES),
        ),
        (
            "memory at its peak",
            f"{found['peak'] / 1e9:.2f} GB",
            "≤ 3 GB",
            _met(found["peak"], MAX_AGE_HOURS),
        ),
    ]
    whole = Table(
        f"`topstory simulate --events {week} --days 7`", ("", "measured", "target", "met"), rows
    )
    return Section([cores, whole], {"rates": rates, "week": found})


def _met(value: float, bound: float) -> str:
    return "yes" if value <= bound else "no"


def plain(world: ts.TodayModule, window: WorldWindow, groups: Any, events: int) -> float:
    """The same draws with NumPy's generator, a column at a time."""
    random = np.random.default_rng(0)
    have = world.settings
    place = (np.arange(events) + random.random(events)) / events
    hour = np.searchsorted(window.share, place, side="right") - 1
    visitor = (have.users * random.random(events) ** have.loyalty).astype(np.int64)
    sizes = np.diff(window.offsets)[hour]
    at = window.offsets[hour] + (random.random(events) * sizes).astype(np.int64)
    odds = window.intercept[at] + (groups[visitor] * window.appeal[window.members[at]]).sum(axis=1)
    clicks = random.random(events) < 1 / (1 + np.exp(-odds))
    contexts = np.column_stack((groups[visitor], np.ones(events, np.float32)))
    return float(clicks.mean() + contexts[0, 0])


def measure(events: int, out: str) -> dict[str, float]:
    """The week, in this process."""
    warm = ts.TodayModule(users=100)
    warm.write_log(Path(out).with_name("warm"), 1000)
    world = ts.TodayModule()
    began = perf_counter()
    world.random_log(1)
    made = perf_counter()
    written = world.write_log(out, events, days=7)
    return {
        "population": made - began,
        "seconds": perf_counter() - made,
        "bytes": written.bytes / events,
        "peak": peak(),
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), sys.argv[2])))
