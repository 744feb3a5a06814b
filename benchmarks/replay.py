"""Events a second through `ts.replay`, for every policy, against two references."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import topstory as ts
from benchmarks import reference, traffic
from benchmarks.measuring import Timing, interleaved, say
from benchmarks.tables import Section, Table
from topstory.policies.registry import PAPER, REGISTRY

ALPHA, EPSILON, SEED = 0.2, 0.1, 7
READ = "(read the columns)"

# Million events a second, and times the full scan, on a quiet 2.4 GHz core.
TARGETS: dict[str, tuple[float, float | None]] = {
    "egreedy": (20, None),
    "ucb": (20, None),
    "linucb-disjoint": (10, 4),
    "linucb-hybrid": (3, 20),
}

MOST_TIMES_LINUCB = {"lints": 3.0}


def make(name: str, log: ts.EventLog) -> ts.Policy:
    """A policy of the registry, with this benchmark's parameters."""
    parameters: dict[str, Any] = {}
    if name.endswith("-warm"):
        parameters["offset"] = traffic.offsets(log)
    if name.startswith("egreedy"):
        parameters["epsilon"] = EPSILON
    if name.startswith(("ucb", "linucb", "lints")):
        parameters["alpha"] = ALPHA
    if REGISTRY[name].from_prior:
        parameters["prior"] = ts.fit_prior(log[: len(log) // 10])
    return ts.policy(name, seed=SEED, **parameters)


def run(quick: bool) -> Section:
    """Check that replay and full scan agree, then time both."""
    events = 100_000 if quick else 2_000_000
    log = traffic.build(events)
    policies = {name: make(name, log) for name in PAPER}
    randomising = [name for name in REGISTRY if name not in PAPER]
    # Every so many events of the day: the same pools, fewer events.
    parts = {name: log[:: 20 if name.endswith("hybrid") else 4] for name in PAPER}
    trials = 0
    for name, policy in policies.items():
        say(f"checking {name} against the full scan")
        trials += reference.check(policy, parts[name])
    tasks: dict[str, Callable[[], object]] = {READ: partial(reference.read, log)}
    for name, policy in policies.items():
        tasks[name] = partial(ts.replay, policy, log)
        tasks[f"{name}, full scan"] = partial(reference.scan, policy, parts[name])
    for name in randomising:
        tasks[name] = partial(ts.replay, make(name, log), log)
    timings = interleaved(tasks, 3 if quick else 7)
    lengths = {f"{name}, full scan": len(part) for name, part in parts.items()}
    table = Table(
        f"Replay of {events:,} events, K = 20, d = 6, 6 article features",
        ("policy", "M events/s", "best", "full scan", "× full scan", "× a read", "target", "met"),
        [_row(name, events, lengths, timings) for name in PAPER],
    )
    beyond = Table(
        "The same log by other policies, compared with LinUCB, or ucb, of the same model",
        ("policy", "M events/s", "× LinUCB's time", "target", "met"),
        [_compared(name, events, timings) for name in randomising],
    )
    reading = events / timings[READ].median / 1e6
    notes = [
        f"Checked before timing: in {trials:,} trials, over all policies and both buckets, replay "
        "and full scan retained the same events and payoffs.",
        f"α = {ALPHA} and ε = {EPSILON}; CTR of the log {log.ctr:.4f}, "
        f"{len(log.pools)} pools, {len(log.article_ids)} articles.",
        "M events/s and full scan are medians; 'best' is the least disturbed repetition.",
        f"A pass that only reads the columns: {reading:,.0f} M events/s. "
        "'× a read' is how many times longer a replay takes.",
    ]
    figures = {name: timing.figures(lengths.get(name, events)) for name, timing in timings.items()}
    return Section([table, beyond], figures | {"checked_trials": trials}, notes)


def _compared(name: str, events: int, timings: dict[str, Timing]) -> tuple[str, ...]:
    explorer, _, model = name.removesuffix("-prior").partition("-")
    basis = next(each for each in (f"linucb-{model}", f"ucb-{model}", "ucb") if each in timings)
    ratio = timings[name].median / timings[basis].median
    limit = 1.1 if explorer == "linucb" else MOST_TIMES_LINUCB.get(explorer)  # as without a prior
    return (
        f"`{name}`",
        f"{events / timings[name].median / 1e6:.1f}",
        f"{ratio:.1f}",
        "" if limit is None else f"≤ {limit:g}",
        "" if limit is None else ("yes" if ratio <= limit else "no"),
    )


def _row(
    name: str, events: int, lengths: dict[str, int], timings: dict[str, Timing]
) -> tuple[str, ...]:
    rate = events / timings[name].median / 1e6
    scan = f"{name}, full scan"
    full = lengths[scan] / timings[scan].median / 1e6
    target = met = ""
    if name in TARGETS:
        fast, ratio = TARGETS[name]
        target = f"≥ {fast:.0f} M" + (f", ≥ {ratio:.0f}×" if ratio else "")
        reached = rate >= fast and (ratio is None or rate / full >= ratio)
        met = "yes" if reached else "no"
    return (
        f"`{name}`",
        f"{rate:.1f}",
        f"{events / timings[name].best / 1e6:.1f}",
        f"{full:.2f}",
        f"{rate / full:.1f}",
        f"{timings[name].median / timings[READ].median:.1f}",
        target,
        met,
    )
