"""How sure a policy has to be before it gives up weight of its prior: the choice of that margin.

Where tastes stay as they were a prior is right, and giving it up by chance costs much. Where they
have turned it is wrong. So each margin is tried in both kinds of worlds, by live play.
"""

from __future__ import annotations

from itertools import product
from math import inf, log

import numpy as np

from benchmarks import ROOT
from benchmarks.measuring import say
from benchmarks.policies.kept_runs import KeptRuns
from benchmarks.policies.simulated import with_interval
from benchmarks.policies.worlds import week
from benchmarks.tables import Section, Table
from topstory.models.priors import weighing

KEPT = ROOT / ".cache" / "bench" / "tempering.jsonl"
MARGINS = (1.0, 3.0, 20.0, inf)  # times as likely; with the last a weight never changes
SIZES = (1.0, 0.1, 0.01)
# Radians a day, from the middle of the earlier log to that of the week ten days: not at all, by
# 60 degrees, and by 140.
TURNS = (0.0, 0.1, 0.24)
WORLDS = range(301, 307)  # none of those that the benchmark `policies` chooses or judges on
WITHOUT, POLICIES = "linucb-hybrid", ("linucb-hybrid-prior", "lints-hybrid-prior")
ALPHA = 0.2
TRIED = ((WITHOUT, inf), *product(POLICIES, MARGINS))


def run(quick: bool) -> Section:
    """What each margin earns. Runs are kept as they come, as those of `policies` are."""
    kept = KeptRuns(KEPT.with_suffix(".quick.jsonl") if quick else KEPT)
    worlds, visits = (WORLDS[:2], 1_000) if quick else (WORLDS, 10_000)
    found: dict[tuple[float, float, str, float], list[float]] = {}
    for seed, turn in product(worlds, TURNS):
        for size, (policy, margin) in product(SIZES, TRIED):
            value = _played(kept, seed, visits, turn, size, policy, margin)
            found.setdefault((turn, size, policy, margin), []).append(value)
    rows = [
        (
            *(policy, f"{turn:g}", f"{100 * size:g} %"),
            *(with_interval(found[turn, size, policy, margin]) for margin in MARGINS),
            with_interval(found[turn, size, WITHOUT, inf]),
        )
        for policy, turn, size in product(POLICIES, TURNS, SIZES)
    ]
    heads = ("policy", "turn a day", "data", *map(_name, MARGINS), WITHOUT)
    table = Table("Weight of a prior, given up where that is so much likelier", heads, rows)
    notes = [
        f"Simulated, live play in {len(worlds)} worlds (seeds {worlds[0]} to {worlds[-1]}), a "
        f"week of {visits:,} visits each, α = {ALPHA:g}. True CTR relative to random choice: the "
        "mean of both buckets, and half of the 95 % interval over worlds. All cells have the same "
        "worlds, so differences between them are surer than the intervals say.",
        "Tastes turn by so many radians a day: from the middle of the earlier log to that of the "
        "week not at all, by 60 degrees, or by 140.",
    ]
    figures = {" ".join(map(str, key)): values for key, values in found.items()}
    return Section([table], figures, notes)


def _name(margin: float) -> str:
    return "never" if margin == inf else f"{margin:g} times"


def _played(
    kept: KeptRuns, seed: int, visits: int, turn: float, size: float, policy: str, margin: float
) -> float:
    def compute() -> float:
        say(f"world {seed}, turn {turn:g}, {size:g}: {policy}, {_name(margin)}")
        there = week(seed, visits, taste_turn=turn)
        before, weighing.MIN_GAIN = weighing.MIN_GAIN, log(margin)
        try:
            values = there.play(there.policy(policy, seed, {"alpha": ALPHA}), size)
        finally:
            weighing.MIN_GAIN = before
        return float(np.mean(list(values.values())))

    found: float = kept.get((visits, seed, turn, size, policy, _name(margin)), compute)
    return found
