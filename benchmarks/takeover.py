"""How long a fleet goes without a learner: from a fault until another machine publishes."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from subprocess import DEVNULL, Popen
from typing import Any

from tests.serving.fleet.machines import Fleet, Machine

from benchmarks.measuring import say
from benchmarks.tables import Table

PATIENCE_SECONDS = 120.0
FAULTS = ("killed", "paused", "cut off")
BUSY = 10  # processes for each core, where the machine has more to do than it can


def table(folder: Path, fresh: Callable[[str], str], rounds: int) -> tuple[Table, dict[str, Any]]:
    """With nothing else to do, and on a machine with far more to do than it can."""
    cores = os.cpu_count() or 1
    found = {
        "nothing else to do": takeovers(folder / "idle", fresh("takeover"), 2 * rounds, 0),
        f"{BUSY * cores} processes that want {cores} cores": takeovers(
            folder / "busy", fresh("takeover_busy"), rounds, BUSY * cores
        ),
    }
    rows = [
        (f"{fault}, {load}", f"{median(took):.1f}", f"{max(took):.1f}", str(len(took)))
        for load, by_fault in found.items()
        for fault, took in by_fault.items()
    ]
    title = "From a learner's end until another one publishes, seconds"
    return Table(title, ("the learner is", "median", "longest", "times"), rows), found


def takeovers(folder: Path, url: str, rounds: int, busy: int) -> dict[str, list[float]]:
    """Seconds, by fault, while `busy` other processes want a core each."""
    machines = [Machine(folder / name, url, "learner", log_level="info") for name in ("one", "two")]
    found: dict[str, list[float]] = {fault: [] for fault in FAULTS}
    front = Machine(folder / "front", url, "front")
    with Fleet(url, [*machines, front]) as fleet, _busy(busy):
        for number in range(rounds):
            for fault in FAULTS:
                say(f"{number + 1} of {rounds}: the learner is {fault}")
                found[fault].append(_one(fleet, fleet.await_candidate(), fault))
    say("")
    return found


def _one(fleet: Fleet, owner: Machine, fault: str) -> float:
    before, pid = fleet.epoch(), owner.learner()
    since = time.monotonic()
    if fault == "killed":
        os.kill(pid, signal.SIGKILL)
    elif fault == "paused":
        os.kill(pid, signal.SIGSTOP)
    else:
        owner.proxy.stall()
    while fleet.epoch() <= before:
        if time.monotonic() > since + PATIENCE_SECONDS:
            raise RuntimeError(f"nobody took over: {fleet.errors()[-2_000:]}")
        time.sleep(0.005)
    took = time.monotonic() - since
    if fault == "killed":
        owner.end(signal.SIGKILL)
        owner.start()
    elif fault == "paused":
        os.kill(pid, signal.SIGCONT)
    else:
        owner.proxy.mend()
    return took


@contextmanager
def _busy(count: int) -> Iterator[None]:
    spinning = [
        Popen([sys.executable, "-c", "while True: pass"], stdout=DEVNULL) for _ in range(count)
    ]
    try:
        yield
    finally:
        for each in spinning:
            each.kill()
            each.wait()
