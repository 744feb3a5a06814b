"""Hillstrom's e-mails: three at random, with a visit or money spent as payoff."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

import topstory as ts
from benchmarks.tables import Section, Table


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
        prior = ts.fit_prior(log[:third])
        compared = {
            "ε-greedy": ts.policy("egreedy", epsilon=0.1),
            "linucb (disjoint), ridge 1": ts.policy("linucb-disjoint", alpha=0.3),
            "linucb (disjoint), ridge auto": ts.policy("linucb-disjoint", alpha=0.3, ridge="auto"),
            "linucb (disjoint, prior)": ts.policy("linucb-disjoint-prior", alpha=0.3, prior=prior),
            "linucb (hybrid, prior)": ts.policy("linucb-hybrid-prior", alpha=0.3, prior=prior),
        }
        lines = []
        for name, policy in compared.items():
            found = [ts.replay(seeded(policy, seed), log[third:]).learning for seed in range(5)]
            values = np.array([each.relative_ctr for each in found])
            low, high = found[0].relative_interval
            lines.append((name, f"{values.mean():.3f}", f"[{low:.2f}, {high:.2f}]"))
        tables.append(
            Table(
                f"Hillstrom's e-mails: {payoff} while learning, relative to random",
                ("policy", "mean of 5 paths", "95 % interval of the first"),
                lines,
            )
        )
        figures[f"hillstrom {payoff}"] = {line[0]: list(line[1:]) for line in lines}
    notes = [
        "Real: Hillstrom's MineThatData e-mail challenge (2008), 64,000 customers, three e-mails "
        "at random. The first third (in random order) taught the prior, the others were replayed. "
        "With three articles a prior has little to say about a fourth; this shows that it does no "
        "harm."
    ]
    return Section(tables, figures, notes)


def seeded(policy: ts.Policy, seed: int) -> ts.Policy:
    """A copy of the policy that draws otherwise."""
    twin = policy.copy()
    twin.seed = seed
    return twin
