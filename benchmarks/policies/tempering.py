"""How sure a policy has to be before it gives up weight of its prior: the choice of that margin.

Where tastes stay as they were a prior is right, and giving it up by chance costs much. Where they
have turned it is wrong. So each margin is tried in both kinds of worlds, by live play.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf, log
from unittest.mock import patch

import numpy as np

from benchmarks import ROOT
from benchmarks.measuring import say
from benchmarks.policies.kept_runs import KeptRuns
from benchmarks.policies.worlds import Week, week
from benchmarks.tables import Section, Table
from topstory.models.priors import weighing

KEPT = ROOT / ".cache" / "bench" / "tempering.jsonl"
# Times as likely: with inf a weight never changes. MOVED, which is not what models do, is 20 for a
# prior whose own log held to its end, and 1 for one whose second half no longer fitted the first.
MOVED = 0.0
MARGINS = (1.0, 3.0, 20.0, inf, MOVED)
SIZES = (1.0, 0.1, 0.01)
# Radians a day. From the middle of the earlier log to that of the week it is ten days: tastes stay,
# turn by 60 degrees, or by 140.
TURNS = (0.0, 0.1, 0.24)
# None of these worlds is in the benchmark `policies`. The last ones judge what the others chose.
CHOOSING, JUDGING = range(301, 305), range(401, 405)
WITHOUT, WITH, ALPHA = "linucb-hybrid", "linucb-hybrid-prior", 0.2


def run(quick: bool) -> Section:
    """What each margin earns. Runs are kept as they come, as those of `policies` are."""
    kept = KeptRuns(KEPT.with_suffix(".quick.jsonl") if quick else KEPT)
    visits = 1_000 if quick else 10_000
    parts = [
        compared(kept, worlds[: 1 if quick else None], visits) for worlds in (CHOOSING, JUDGING)
    ]
    return Section(
        [table for part in parts for table in part.tables],
        {title: values for part in parts for title, values in part.figures.items()},
        parts[0].notes,
    )


def compared(kept: KeptRuns, worlds: Sequence[int], visits: int) -> Section:
    """A table of these worlds."""
    tried = [*((WITH, margin) for margin in MARGINS), (WITHOUT, inf)]
    found: dict[tuple[float, float], list[list[float]]] = {}
    for seed, turn, size in product(worlds, TURNS, SIZES):
        cells = found.setdefault((turn, size), [[] for _ in tried])
        for cell, (policy, margin) in zip(cells, tried, strict=True):
            cell.append(_played(kept, seed, visits, turn, size, policy, margin))
    title = f"Less of a prior where that is so much likelier: worlds {worlds[0]} to {worlds[-1]}"
    heads = ("turn a day", "data", *map(_name, MARGINS), WITHOUT)
    rows = [
        (f"{turn:g}", f"{100 * size:g} %", *map(_each, cells))
        for (turn, size), cells in found.items()
    ]
    notes = [
        f"Simulated, live play, a week of {visits:,} visits, {WITH} with α = {ALPHA:g}: the mean "
        "of both buckets' true CTR relative to random choice, over the worlds and in each.",
        "Tastes turn by so many radians a day: from the middle of the earlier log to that of the "
        "week not at all, by 60 degrees, or by 140.",
        "*Moved*: 20 times, but any gain is enough if the second half of the prior's own log no "
        "longer fitted the first. Models have 20 times.",
    ]
    figures = {f"{turn:g} {size:g}": cells for (turn, size), cells in found.items()}
    return Section([Table(title, heads, rows)], {title: figures}, notes)


def _played(
    kept: KeptRuns, seed: int, visits: int, turn: float, size: float, policy: str, margin: float
) -> float:
    def compute() -> float:
        say(f"world {seed}, turn {turn:g}, {size:g}: {policy}, {_name(margin)}")
        there = week(seed, visits, taste_turn=turn)
        with patch.object(weighing, "MIN_GAIN", _gain(margin, there)):
            played = there.play(there.policy(policy, seed, {"alpha": ALPHA}), size)
        return float(np.mean(list(played.values())))

    found: float = kept.get((visits, seed, turn, size, policy, _name(margin)), compute)
    return found


def _gain(margin: float, there: Week) -> float:
    if margin == MOVED:
        return log(20.0) if there.prior.weight == 1.0 else 0.0
    return log(margin)


def _name(margin: float) -> str:
    return {MOVED: "moved", inf: "never"}.get(margin, f"{margin:g} times")


def _each(values: Sequence[float]) -> str:
    return f"{np.mean(values):.2f} ({', '.join(f'{value:.2f}' for value in values)})"
