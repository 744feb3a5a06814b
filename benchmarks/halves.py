"""A real log in two halves: what one predicts of a policy, the other shows."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

import topstory as ts
from benchmarks.tables import Table


def halves(path: Path, splits: int) -> Table:
    """One half of Hillstrom's log predicts the value that the other half shows."""
    log = hillstrom(path)
    random = np.random.default_rng(0)
    order = random.permutation(len(log))
    first, rest = log[order[: len(log) // 10]], log[order[len(log) // 10 :]]
    policy = ts.train(ts.policy("linucb-disjoint"), first, held_out=0).policy
    hits = 0
    for _ in range(splits):
        halves = random.permutation(len(rest))
        cut = len(rest) // 2
        one, other = (
            ts.evaluate(policy, rest[np.sort(rows)])["policy"].value
            for rows in (halves[:cut], halves[cut:])
        )
        width = sum(((each.interval.high - each.interval.low) / 2) ** 2 for each in (one, other))
        hits += abs(one.value - other.value) <= width**0.5
    return Table(
        f"Hillstrom's log (real, {len(log):,} customers): does one half show what the other "
        "predicts?",
        ("splits", "within the interval", "stated"),
        [(f"{splits}", f"{hits / splits:.3f}", "0.95")],
    )


def hillstrom(path: Path) -> ts.EventLog:
    """MineThatData's e-mail challenge (Hillstrom 2008) as a uniform log: a visit pays 1."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    users = np.array(
        [
            [
                float(row["recency"]) / 12,
                np.log1p(float(row["history"])) / 8,
                float(row["mens"]),
                float(row["womens"]),
                float(row["newbie"]),
                1.0,
            ]
            for row in rows
        ]
    )
    pool = ["Mens E-Mail", "No E-Mail", "Womens E-Mail"]
    return ts.EventLog.from_arrays(
        users,
        [pool],
        np.zeros(len(rows), int),
        [row["segment"] for row in rows],
        [float(row["visit"]) for row in rows],
    )
