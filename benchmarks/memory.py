"""How much memory a replay or an evaluation takes beyond the log, in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import psutil

import topstory as ts
from benchmarks import ROOT, traffic
from benchmarks.measuring import say
from benchmarks.tables import Section, Table

NAMES = ("ucb", "linucb-disjoint", "linucb-hybrid")
EVALUATED = {  # label: the estimator of `evaluate`, for a trained linucb-disjoint
    f"evaluate by {estimator}": estimator for estimator in ("snips", "dr")
}
TARGET_MB = 200


def run(quick: bool) -> Section:
    """One fresh process for each policy, and for each estimator."""
    events = 100_000 if quick else 5_000_000
    with tempfile.TemporaryDirectory() as room:
        say(f"writing {events:,} events")
        small, large = Path(room, "small"), Path(room, "large")
        traffic.build(2_000).write(small)
        traffic.build(events).write(large)
        figures = {}
        for name in (*NAMES, *EVALUATED):
            say(f"{name} in a process of its own")
            command = [sys.executable, "-m", "benchmarks.memory", name, str(small), str(large)]
            done = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            figures[name] = json.loads(done.stdout)
    rows = [
        (
            f"`{name}`" if name in NAMES else name,
            *(f"{found[key] / 1e6:,.0f}" for key in ("baseline", "log", "peak", "over")),
            f"≤ {TARGET_MB}",
            "yes" if found["over"] <= TARGET_MB * 1e6 else "no",
        )
        for name, found in figures.items()
    ]
    columns = ("policy", "interpreter", "log", "peak", "peak − both", "target", "met")
    table = Table(
        f"Memory of a replay, and of an evaluation, of {events:,} events, d = 6: MB", columns, rows
    )
    reading = max(found["reading"] for found in figures.values()) / 1e6
    notes = [
        "The interpreter's share has everything imported and the kernels compiled. The peak is "
        "over the first replay or evaluation of the log, which surveys it too. `evaluate` judges a "
        "trained `linucb-disjoint`.",
        f"Reading the log's Parquet folder, before, peaked {reading:,.0f} MB over the same two.",
    ]
    return Section([table], figures, notes)


def peak() -> int:
    """The most memory this process held since `forget_peak`, or ever: bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


def forget_peak() -> None:
    """Begin a new peak, where the system can; else the peak is of the whole process."""
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")


def measure(name: str, small: str, large: str) -> dict[str, Any]:
    """Run the small log to have everything in memory, then the large one."""
    first = ts.EventLog.read(small)
    policy = ts.policy("linucb-disjoint" if name in EVALUATED else name, alpha=0.2)
    if name in EVALUATED:
        policy = ts.train(policy, first, held_out=0).policy

    def work(log: ts.EventLog) -> int:
        if name in EVALUATED:
            return ts.evaluate(policy, log, estimator=EVALUATED[name]).events
        return ts.replay(policy, log).events

    work(first)
    baseline = psutil.Process().memory_info().rss
    forget_peak()
    log = ts.EventLog.read(large)
    after_reading = peak()
    held = psutil.Process().memory_info().rss
    forget_peak()
    events = work(log)
    top = peak()
    return {
        "events": events,
        "baseline": baseline,
        "log": log.nbytes,
        "held": held,
        "peak": top,
        "over": top - baseline - log.nbytes,
        "reading": after_reading - baseline - log.nbytes,
    }


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
