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
from typing import Any

import psutil
import pyarrow.parquet as pq

from benchmarks import traffic
from benchmarks.measuring import interleaved, say
from benchmarks.tables import Section, Table
from topstory.engines import engine
from topstory.evaluation import Run, grid_runs, play_all
from topstory.events import EventLog

MINUTES, GIGABYTES, SPEEDUP, OVERHEAD = 15, 6, 1.8, 0.15  # targets
COMPARED = ("egreedy", "ucb-seg", "linucb-disjoint", "linucb-hybrid")
SIZES = (1.0, 0.1)
BILLION, DAYS = 1_000_000_000, 7


@dataclass(frozen=True)
class Whole:
    """One `topstory study` in a process of its own."""

    seconds: float
    gigabytes: float  # at most, all its processes together
    runs: list[dict[str, Any]]  # one row for each replay

    @property
    def events(self) -> int:
        """Replayed, over all runs."""
        return sum(run["events"] for run in self.runs)


def run(quick: bool) -> Section:
    """The engines side by side, the whole study, and what a billion events would take."""
    events, repetitions = (200_000, 1) if quick else (4_700_000, 3)
    engines = _engines(events, repetitions)
    whole = _whole(["--scale", "demo", "--sizes", "1"] if quick else ["--scale", "paper"])
    speedup = engines["serial"] / engines["local"]
    overhead = engines["ray"] / engines["local"] - 1
    minutes = whole.seconds / 60
    targets = [
        ("the whole study", f"{minutes:.1f} min", f"≤ {MINUTES} min", minutes <= MINUTES),
        (
            "memory at its peak",
            f"{whole.gigabytes:.1f} GB",
            f"≤ {GIGABYTES} GB",
            whole.gigabytes <= GIGABYTES,
        ),
        ("`local` over `serial`", f"{speedup:.2f}×", f"≥ {SPEEDUP}×", speedup >= SPEEDUP),
        ("Ray over `local`", f"{overhead:+.1%}", f"≤ +{OVERHEAD:.0%}", overhead <= OVERHEAD),
    ]
    replays = len(COMPARED) * len(SIZES) * 8
    notes = [
        f"{len(whole.runs)} replays over {whole.events / 1e9:.2f} billion events, engine `local`, "
        "logs, features and report included.",
        f"The engines: {replays} replays of a log of {events / 1e6:.1f} M events, the median of "
        f"{repetitions}, in turns, on {os.cpu_count()} cores; all give the same numbers. Ray's "
        "time includes putting the log in its store and each worker's reading of it; its cluster "
        "was up before.",
        _billion(whole),
    ]
    return Section(
        [
            Table(
                f"`topstory study OUT --scale {'demo --sizes 1' if quick else 'paper'}`, engines",
                ("", "measured", "target", "met"),
                [(*row[:3], "yes" if row[3] else "no") for row in targets],
            ),
            Table(
                "The same replays on each engine",
                ("engine", "time", "speed"),
                [
                    (f"`{name}`", f"{seconds:.1f} s", f"{engines['serial'] / seconds:.2f}×")
                    for name, seconds in engines.items()
                ],
            ),
            _growth(whole),
        ],
        {
            "whole_seconds": whole.seconds,
            "whole_gigabytes": whole.gigabytes,
            "whole_events": whole.events,
            "engines": engines,
        },
        notes,
    )


def _billion(whole: Whole) -> str:
    """What the study of a billion events would take: a day of it to tune on, all to judge on."""
    stages = [run["stage"] for run in whole.runs]
    judged, tuned = stages.count("evaluation"), stages.count("tuning")
    events = BILLION * judged + BILLION // DAYS * tuned
    hours = events * whole.seconds / whole.events / 3600
    return (
        f"At this rate a week of 1 billion events ({judged} replays of it, {tuned} of a day) would "
        f"take {hours:.1f} hours on this machine, {hours * (os.cpu_count() or 1):.1f} core-hours."
    )


def _growth(whole: Whole) -> Table:
    """Whether a replay's cost is linear in events: the study's own two logs."""
    rows = []
    for policy in COMPARED:
        costs = [
            sum(run["seconds"] for run in found) / sum(run["events"] for run in found) * 1e9
            for stage in ("tuning", "evaluation")
            if (found := [r for r in whole.runs if (r["policy"], r["stage"]) == (policy, stage)])
        ]
        rows.append(
            (f"`{policy}`", *(f"{cost:.0f}" for cost in costs), f"{costs[1] / costs[0]:.2f}×")
        )
    lengths = [
        f"{next(r['events'] for r in whole.runs if r['stage'] == stage) / 1e6:.1f} M events"
        for stage in ("tuning", "evaluation")
    ]
    return Table(
        "A replay by the log's length, all cores busy: ns per event",
        ("policy", *lengths, "growth"),
        rows,
    )


def _whole(options: list[str]) -> Whole:
    say(f"a whole study: {' '.join(options)}")
    with tempfile.TemporaryDirectory() as folder:
        out, told = Path(folder) / "study", Path(folder) / "told"
        command = [str(Path(sys.executable).with_name("topstory")), "study", str(out)]
        command += [*options, "--json"]
        began, most = perf_counter(), 0
        with told.open("w") as file:
            process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
            while process.poll() is None:
                most = max(most, _memory(process))
                try:
                    process.wait(0.2)
                except psutil.TimeoutExpired:
                    continue
        seconds = perf_counter() - began
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} failed: {told.read_text()}")
        runs = pq.read_table(out / "runs.parquet").to_pylist()
    # Both buckets come from one replay.
    return Whole(seconds, most / 1e9, [run for run in runs if run["bucket"] == "learning"])


def _memory(process: psutil.Process) -> int:
    try:
        family = [process, *process.children(recursive=True)]
        return sum(each.memory_info().rss for each in family)
    except psutil.NoSuchProcess:
        return 0


def _engines(events: int, repetitions: int) -> dict[str, float]:
    """Seconds of each engine, for replays that must come out the same."""
    log = traffic.build(events)
    runs = [run for policy in COMPARED for run in grid_runs(policy, sizes=SIZES)]
    outcomes: dict[str, str] = {}
    tasks = {
        name: partial(_play, runs, log, name, engine(name), outcomes)
        for name in ("serial", "local", "ray")
    }
    timings = interleaved(tasks, repetitions)
    assert len(set(outcomes.values())) == 1, "the engines disagree"
    import ray

    ray.shutdown()
    return {name: timing.median for name, timing in timings.items()}


def _play(runs: list[Run], log: EventLog, name: str, where: Any, outcomes: dict[str, str]) -> None:
    found = {outcome.run: outcome for outcome in play_all(runs, log, where)}
    outcomes[name] = json.dumps(
        [(found[run].deployment_sums, found[run].learning_sums) for run in runs]
    )
