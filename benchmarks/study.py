"""The whole study at the paper's scale, and what each engine makes of the same work."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import psutil
import pyarrow.parquet as pq

from benchmarks import traffic
from benchmarks.measuring import Timing, interleaved, say
from benchmarks.tables import Section, Table
from topstory.engines import engine
from topstory.evaluation import Run, grid_runs, play_all
from topstory.events import EventLog

MINUTES, GIGABYTES, SPEEDUP, OVERHEAD = 15, 6, 1.8, 0.15  # targets
COMPARED = ("egreedy", "ucb-seg", "linucb-disjoint", "linucb-hybrid")
SIZES, VALUES = (1.0, 0.1), (0.03, 0.1, 0.3, 1.0)
BILLION, DAYS, MANY = 1_000_000_000, 7, 16  # events of a week, and cores of a larger machine


@dataclass(frozen=True)
class Whole:
    """One `topstory study` in a process of its own."""

    command: str
    seconds: float
    core_seconds: float  # of processors, the system's work for it included
    gigabytes: float  # at most, all its processes together
    runs: list[dict[str, Any]]  # one row for each replay

    @property
    def events(self) -> int:
        """Replayed, over all runs."""
        return sum(run["events"] for run in self.runs)

    def stage(self, name: str) -> list[dict[str, Any]]:
        """The replays of the tuning or the evaluation log."""
        return [run for run in self.runs if run["stage"] == name]


def run(quick: bool) -> Section:
    """The engines side by side, the whole study, and what a billion events would take."""
    events, repetitions = (200_000, 1) if quick else (4_700_000, 5)
    log = traffic.build(events)
    engines = _engines(log, repetitions)
    whole = _whole(["--scale", "demo", "--sizes", "1"] if quick else ["--scale", "paper"])
    speedup = _ratio(engines["serial"], engines["local"])
    overhead = _ratio(engines["ray"], engines["local"]) - 1
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
    replays = len(COMPARED) * len(SIZES) * len(VALUES)
    notes = [
        f"{len(whole.runs)} replays over {whole.events / 1e9:.2f} billion events, engine `local`, "
        "logs, features and report included.",
        f"The engines: {replays} replays of a log of {events / 1e6:.1f} M events on "
        f"{os.cpu_count()} cores, rounds: {repetitions}; ratios are medians of those within a "
        "round. All give the same numbers. Ray's time includes putting the log in its store and "
        "each worker's reading of it; its cluster was up before.",
    ]
    return Section(
        [
            Table(
                f"`{whole.command}`, and the engines",
                ("", "measured", "target", "met"),
                [(*row[:3], "yes" if row[3] else "no") for row in targets],
            ),
            Table(
                "The same replays on each engine",
                ("engine", "median", "best", "speed"),
                [
                    (
                        f"`{name}`",
                        f"{timing.median:.1f} s",
                        f"{timing.best:.1f} s",
                        f"{_ratio(engines['serial'], timing):.2f}×",
                    )
                    for name, timing in engines.items()
                ],
            ),
            _growth(whole),
        ],
        {
            "whole_seconds": whole.seconds,
            "whole_core_seconds": whole.core_seconds,
            "whole_gigabytes": whole.gigabytes,
            "whole_events": whole.events,
            "engines": {name: timing.seconds for name, timing in engines.items()},
        },
        notes,
        {"../operations/scaling.md": _billion(whole, log.nbytes / len(log))},
    )


def _ratio(one: Timing, other: Timing) -> float:
    """How many times as long: within each round, so that a noisy one weighs as much as another."""
    return median(a / b for a, b in zip(one.seconds, other.seconds, strict=True))


def _billion(whole: Whole, event_bytes: float) -> Section:
    """What the study of a billion events would take: a day of it to tune on, all to judge on."""
    rate = whole.events / whole.core_seconds
    cores = os.cpu_count() or 1
    parts = [
        (name, len(runs), len(runs) * events)
        for name, runs, events in (
            ("judging on the week", whole.stage("evaluation"), BILLION),
            ("tuning on a day of it", whole.stage("tuning"), BILLION // DAYS),
        )
    ]
    parts.append(("the whole study", sum(p[1] for p in parts), sum(p[2] for p in parts)))
    hours = parts[-1][2] / rate / 3600
    return Section(
        [
            Table(
                f"Measured: `{whole.command}`",
                ("", f"{cores} cores"),
                [
                    ("replays", f"{len(whole.runs):,}"),
                    ("events passed", f"{whole.events / 1e9:.2f} billion"),
                    ("time", f"{whole.seconds / 60:.1f} minutes"),
                    ("processor time", f"{whole.core_seconds:.0f} core-seconds"),
                    ("events for a core-second", f"{rate / 1e6:.1f} million"),
                    ("memory at its peak", f"{whole.gigabytes:.1f} GB"),
                    ("an event in memory, d = 6", f"{event_bytes:.0f} bytes"),
                ],
            ),
            Table(
                "Reckoned at that rate: a week of 1 billion events",
                ("part", "replays", "events passed", "core-hours"),
                [
                    (
                        name,
                        f"{replays:,}",
                        f"{passed / 1e9:.0f} billion",
                        f"{passed / rate / 3600:.1f}",
                    )
                    for name, replays, passed in parts
                ],
            ),
        ],
        {},
        [
            f"{hours:.1f} core-hours are {hours / cores:.1f} hours on {cores} such cores, "
            f"{60 * hours / MANY:.0f} minutes on {MANY}.",
            f"The log takes {BILLION * event_bytes / 1e9:.0f} GB of memory, once on each machine.",
        ],
    )


def _growth(whole: Whole) -> Table:
    """Whether a replay's cost is linear in events: the study's own two logs."""
    rows = []
    for policy in COMPARED:
        costs = [
            sum(run["seconds"] for run in found) / sum(run["events"] for run in found) * 1e9
            for stage in ("tuning", "evaluation")
            if (found := [run for run in whole.stage(stage) if run["policy"] == policy])
        ]
        rows.append(
            (f"`{policy}`", *(f"{cost:.0f}" for cost in costs), f"{costs[1] / costs[0]:.2f}×")
        )
    lengths = [
        f"{whole.stage(stage)[0]['events'] / 1e6:.1f} M events"
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
        out, printed = Path(folder) / "study", Path(folder) / "printed"
        command = [str(Path(sys.executable).with_name("topstory")), "study", str(out)]
        command += [*options, "--json"]
        began, most, before = perf_counter(), 0, _children()
        with printed.open("w") as file:
            process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
            while process.poll() is None:
                most = max(most, _memory(process))
                try:
                    process.wait(0.2)
                except psutil.TimeoutExpired:
                    continue
        seconds = perf_counter() - began
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} failed: {printed.read_text()}")
        runs = pq.read_table(out / "runs.parquet").to_pylist()
    return Whole(
        " ".join(["topstory study OUT", *options]),
        seconds,
        _children() - before,
        most / 1e9,
        [run for run in runs if run["bucket"] == "learning"],  # both come from one replay
    )


def _children() -> float:
    """Processor seconds of processes that this one has begun, and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _memory(process: psutil.Process) -> int:
    try:
        family = [process, *process.children(recursive=True)]
        return sum(each.memory_info().rss for each in family)
    except psutil.NoSuchProcess:
        return 0


def _engines(log: EventLog, repetitions: int) -> dict[str, Timing]:
    """The rounds of each engine, for replays that must come out the same."""
    runs = [run for policy in COMPARED for run in grid_runs(policy, VALUES, sizes=SIZES)]
    outcomes: dict[str, str] = {}
    tasks = {
        name: partial(_play, runs, log, name, engine(name), outcomes)
        for name in ("serial", "local", "ray")
    }
    timings = interleaved(tasks, repetitions)
    assert len(set(outcomes.values())) == 1, "the engines disagree"
    import ray

    ray.shutdown()
    return timings


def _play(runs: list[Run], log: EventLog, name: str, where: Any, outcomes: dict[str, str]) -> None:
    found = {outcome.run: outcome for outcome in play_all(runs, log, where)}
    outcomes[name] = json.dumps(
        [(found[run].deployment_sums, found[run].learning_sums) for run in runs]
    )
