"""The whole study at the paper's scale, and what each engine makes of the same work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import psutil

from benchmarks import traffic
from benchmarks.measuring import interleaved, say
from benchmarks.tables import Section, Table
from topstory.engines import Engine, engine
from topstory.evaluation import Run, grid_runs, play_all
from topstory.events import EventLog

POLICIES = ("egreedy", "ucb-seg", "linucb-disjoint", "linucb-hybrid")
SIZES = (1.0, 0.1)
TARGET_MINUTES, TARGET_GB, TARGET_SPEEDUP, TARGET_OVERHEAD = 15, 6, 1.8, 0.15
BILLION = 1_000_000_000


@dataclass(frozen=True)
class Whole:
    """One `topstory study` in a process of its own."""

    seconds: float
    gigabytes: float  # at most, all its processes together
    replays: int
    events: int  # replayed, over all of them


def run(quick: bool) -> Section:
    """The whole study, the engines, and what a billion events would take."""
    engines = _engines(20_000 if quick else 4_700_000, 1 if quick else 3)
    whole = _whole("demo" if quick else "paper", quick)
    per_event = whole.seconds / whole.events
    rows = [
        ("scale", "demo, one size" if quick else "paper: 4.7 M and 36 M events"),
        ("replays", f"{whole.replays:,}, over {whole.events / 1e9:.1f} billion events"),
        ("time", f"{whole.seconds / 60:.1f} min (target {TARGET_MINUTES})"),
        ("memory, at most", f"{whole.gigabytes:.1f} GB (target {TARGET_GB})"),
        ("events replayed", f"{whole.events / whole.seconds / 1e6:.1f} M/s"),
    ]
    speedup = engines["serial"] / engines["local"]
    overhead = engines["ray"] / engines["local"] - 1
    compared = [
        (f"`{name}`", f"{seconds:.1f} s", f"{engines['serial'] / seconds:.2f}×")
        for name, seconds in engines.items()
    ]
    hundred = 100 * BILLION * per_event  # the evaluation part: 100 replays of the week
    notes = [
        f"`local` is {speedup:.2f} times as fast as `serial` on {os.cpu_count()} cores (target "
        f"{TARGET_SPEEDUP}); Ray takes {overhead:+.0%} over `local` for the same work (target "
        f"+{TARGET_OVERHEAD:.0%}), its cluster running already.",
        f"At this rate 100 replays of a week of 1 billion events are {hundred / 3600:.1f} hours on "
        f"this machine, {hundred * (os.cpu_count() or 1) / 3600:.0f} core-hours.",
    ]
    return Section(
        [
            Table("The whole study, engine `local`", ("what", "value"), rows),
            Table("The same replays on each engine", ("engine", "time", "speed"), compared),
        ],
        {
            "whole_seconds": whole.seconds,
            "whole_gigabytes": whole.gigabytes,
            "whole_events": whole.events,
            "engines": engines,
        },
        notes,
    )


def _whole(scale: str, quick: bool) -> Whole:
    say(f"a whole study, scale {scale}")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "study"
        command = [str(Path(sys.executable).with_name("topstory")), "study", str(out)]
        command += ["--scale", scale, "--json", *(["--sizes", "1"] if quick else [])]
        began, most = perf_counter(), 0
        with (Path(folder) / "told.json").open("w+") as told:
            process = psutil.Popen(command, stdout=told, stderr=subprocess.DEVNULL)
            while process.poll() is None:
                most = max(most, _memory(process))
                try:
                    process.wait(0.2)
                except psutil.TimeoutExpired:
                    continue
            seconds = perf_counter() - began
            if process.returncode:
                raise RuntimeError(f"{' '.join(command)} failed with {process.returncode}")
            told.seek(0)
            found = json.load(told)
        events = _events(out)
    return Whole(seconds, most / 1e9, found["replays"], events)


def _events(out: Path) -> int:
    import pyarrow.parquet as pq

    runs = pq.read_table(out / "runs.parquet", columns=["events", "bucket"])
    events: list[int] = runs["events"].to_numpy().tolist()
    return sum(events) // 2  # both buckets come from one replay


def _memory(process: psutil.Process) -> int:
    try:
        family = [process, *process.children(recursive=True)]
        return sum(each.memory_info().rss for each in family)
    except psutil.NoSuchProcess:
        return 0


def _engines(events: int, repetitions: int) -> dict[str, float]:
    log = traffic.build(events)
    runs = [run for policy in POLICIES for run in grid_runs(policy, sizes=SIZES)]
    names: list[Engine] = [engine(name) for name in ("serial", "local", "ray")]
    tasks = {each.name: partial(_play, runs, log, each) for each in names}
    timings = interleaved(tasks, repetitions)
    import ray

    ray.shutdown()
    return {name: timing.median for name, timing in timings.items()}


def _play(runs: list[Run], log: EventLog, where: Engine) -> int:
    return sum(outcome.events for outcome in play_all(runs, log, where))
