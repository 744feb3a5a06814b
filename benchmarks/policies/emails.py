"""Hillstrom's e-mails: three at random, with a visit or money spent as payoff."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

import topstory as ts
from benchmarks.tables import Section, Table
from topstory.evaluation.tuning.grids import payoff_scale
from topstory.policies.registry import REGISTRY

POLICIES = (
    *("egreedy", "linucb-disjoint", "linucb-hybrid"),
    *("linucb-disjoint-prior", "linucb-hybrid-prior"),
)
ALPHAS, PATHS = (0.1, 0.3, 1.0), 10


def run(path: Path, quick: bool) -> Section:
    """Three e-mails at random: the first third teaches the prior, the rest judges."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    numbers = np.array(
        [[float(r[k]) for k in ("recency", "mens", "womens", "newbie")] for r in rows]
    )
    spent = np.log1p([float(r["history"]) for r in rows])
    kinds = [
        np.array([r[k] == value for r in rows], np.float64)
        for k in ("zip_code", "channel")
        for value in sorted({r[k] for r in rows})[1:]
    ]
    x = np.column_stack([numbers[:, 0] / 12, numbers[:, 1:], spent / 8, *kinds, np.ones(len(rows))])
    mails = sorted({r["segment"] for r in rows})
    order = np.random.default_rng(0).permutation(len(rows))[: 6_000 if quick else None]
    tables, figures = [], {}
    for payoff in ("visit", "spend"):
        log = ts.EventLog.from_arrays(
            x[order],
            [mails],
            np.zeros(len(order), int),
            [rows[i]["segment"] for i in order],
            [float(rows[i][payoff]) for i in order],
        )
        third = len(log) // 3
        alpha = _chosen_alpha(log[:third])
        found = ts.compare(
            POLICIES,
            log[third:],
            warm_from=log[:third],
            baseline="linucb-disjoint",
            repeats=PATHS,
            alpha=alpha,
            epsilon=0.1,
        )
        lines = []
        for name in POLICIES:
            lift = found.lift(name, "learning")
            learning, deployed = (found.bucket(name, each) for each in ("learning", "deployment"))
            over = "" if lift is None or name == found.baseline else _between(lift)
            lines.append((REGISTRY[name].paper, _relative(deployed), _relative(learning), over))
        tables.append(
            Table(
                f"Hillstrom's e-mails: {payoff}, relative to random",
                ("policy", "deployment", "learning", "over linucb (disjoint), learning"),
                lines,
            )
        )
        figures[f"hillstrom {payoff}"] = {"alpha": alpha} | {row[0]: list(row[1:]) for row in lines}
    notes = [
        "Real: Hillstrom's MineThatData e-mail challenge (2008), 64,000 customers, three e-mails "
        "at random. The first third (in random order) taught the prior and chose α, for all "
        "policies by linucb (disjoint); the others were replayed. "
        f"Means of {PATHS} learning paths, 95 % intervals over customers and paths. With three "
        "articles a prior has little to say about a fourth.",
    ]
    return Section(tables, figures, notes)


def _chosen_alpha(log: ts.EventLog) -> float:
    scale = payoff_scale(log.payoff)
    values = {
        alpha * scale: ts.replay(ts.policy("linucb-disjoint", alpha=alpha * scale), log).learning
        for alpha in ALPHAS
    }
    return max(values, key=lambda alpha: values[alpha].relative_ctr)


def _relative(bucket: Any) -> str:
    low, high = bucket.relative_interval
    return f"{bucket.relative_ctr:.3f} [{low:.2f}, {high:.2f}]"


def _between(lift: Any) -> str:
    low, high = lift.interval
    return f"{lift.value:+.1%} [{low:+.1%}, {high:+.1%}]"
