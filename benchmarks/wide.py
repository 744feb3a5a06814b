"""Contexts of many numbers, such as embeddings: replay beside Vowpal Wabbit, and d in thousands."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np

import topstory as ts
from benchmarks.measuring import interleaved
from benchmarks.tables import Section, Table

K = 20
EMBEDDING, THOUSANDS = 128, 2_000
TARGET, TIMES_WABBIT = 0.3, 20.0  # million events a second; times Vowpal Wabbit's


def log_of(events: int, dimension: int) -> ts.EventLog:
    """Users with vectors of length 1 and a constant, whose clicks depend on them."""
    random = np.random.default_rng(0)
    users = random.normal(size=(events, dimension)).astype(np.float32)
    users /= np.linalg.norm(users, axis=1, keepdims=True)
    users[:, -1] = 1.0
    shown = random.integers(K, size=events)
    taste = random.normal(size=(K, dimension))
    odds = -3.0 + np.einsum("nd,nd->n", users, taste[shown])
    clicked = random.random(events) < 1 / (1 + np.exp(-odds))
    pool = [f"a{i}" for i in range(K)]
    return ts.EventLog.from_arrays(
        users, [pool], np.zeros(events, int), [pool[i] for i in shown], clicked
    )


def wabbit_text(log: ts.EventLog, path: Path) -> None:
    """The log as Vowpal Wabbit's examples of actions with a shared context."""
    with path.open("w", encoding="utf-8") as file:
        for t in range(len(log)):
            numbers = " ".join(f"{i}:{x:.5f}" for i, x in enumerate(log.context(t)))
            file.write(f"shared |U {numbers}\n")
            for k in range(K):
                label = f"0:{-log.payoff[t]:g}:{1 / K} " if k == log.shown_index[t] else ""
                file.write(f"{label}|A a{k}\n")
            file.write("\n")


def wabbit(path: Path) -> None:
    """SquareCB with an own linear model for each action; the text was parsed before, to a cache."""
    from vowpalwabbit import Workspace

    Workspace(f"--cb_explore_adf --squarecb -q UA -b 18 --quiet -d {path} -c").finish()


def run(quick: bool) -> Section:
    """Processor time, since a busy machine takes longer."""
    events, few = (4_000, 300) if quick else (60_000, 3_000)
    wide, thousands = log_of(events, EMBEDDING), log_of(few, THOUSANDS)
    policies = {
        "`linucb-disjoint`, d = 128": (ts.policy("linucb-disjoint", alpha=0.2), wide),
        "`lints-disjoint`, d = 128": (ts.policy("lints-disjoint", alpha=0.2), wide),
        "`squarecb-disjoint`, d = 128": (ts.policy("squarecb-disjoint", c=1000), wide),
        "`linucb-lowrank`, d = 128": (ts.policy("linucb-lowrank", alpha=0.2), wide),
        "`linucb-lowrank`, d = 2,000": (ts.policy("linucb-lowrank", alpha=0.2), thousands),
    }
    parsed = wide[: len(wide) // 10]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "events.txt"
        wabbit_text(parsed, path)
        tasks: dict[str, Any] = {
            name: partial(ts.replay, policy, log) for name, (policy, log) in policies.items()
        }
        tasks["Vowpal Wabbit's squarecb, d = 128"] = partial(wabbit, path)
        timings = interleaved(tasks, 3 if quick else 5, process_time)
    counts = {name: len(log) for name, (_, log) in policies.items()}
    counts["Vowpal Wabbit's squarecb, d = 128"] = len(parsed)
    rates = {name: counts[name] / timing.median / 1e6 for name, timing in timings.items()}
    theirs = rates["Vowpal Wabbit's squarecb, d = 128"]
    rows = [
        (
            name,
            f"{rate:.3f}",
            f"{rate / theirs:.0f}" if "128" in name else "",
            f"≥ {TARGET:g}, ≥ {TIMES_WABBIT:.0f}×" if name.startswith("`linucb-disjoint") else "",
        )
        for name, rate in rates.items()
    ]
    title = "Replay of long contexts, K = 20, dense"
    table = Table(title, ("policy", "M events/s", "× Vowpal Wabbit", "target"), rows)
    notes = [
        "Seconds are those of a core's own work, medians of interleaved runs. Vowpal Wabbit 9.11 "
        "reads a cache of parsed examples, an own linear model for each action (`-q UA`), and "
        "scores and learns every event; replay scores every event and learns from one in "
        f"{K}, those where the policy agrees with the log.",
    ]
    return Section([table], {name: t.figures(counts[name]) for name, t in timings.items()}, notes)
