"""Measure what sharing between articles earns when data are sparse, for docs/simulator.md.

python docs/measure_sharing.py
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import topstory as ts

PAGE = Path(__file__).parent / "simulator.md"
WORLDS, WEEKS = 4, ("2009-05-03", "2009-06-07")
# A twentieth of the paper's week, with as many trials to learn from as 1 % and 5 % of it have.
EVENTS, PAPER = 1_800_000, 36_000_000
SIZES = (0.01, 0.05)
RIDGES = {1.0: (0.1, 0.2, 0.4), 10.0: (0.1, 0.2, 0.4), 30.0: (0.2, 0.4, 1.0)}  # with the α tried
SEGMENTED = (0.1, 0.2, 0.4)

Floats = npt.NDArray[np.float64]


def main() -> None:
    """Measure, write."""
    weeks = [
        ts.TodayModule(seed, users=20_000).random_log(EVENTS, week, 7, seed=3)
        for seed in range(WORLDS)
        for week in WEEKS
    ]
    lines = [
        "| size | ridge | hybrid | disjoint | segmented | hybrid − disjoint | hybrid − segmented |",
        "|---|---|---|---|---|---|---|",
    ]
    for size in SIZES:
        segmented = best(weeks, "ucb-seg", SEGMENTED, size)
        for ridge, alphas in RIDGES.items():
            hybrid = best(weeks, "linucb-hybrid", alphas, size, ridge=ridge)
            disjoint = best(weeks, "linucb-disjoint", alphas, size, ridge=ridge)
            cells = [f"{size:.0%}".replace("%", " %"), f"{ridge:g}"]
            cells += [pair(each) for each in (hybrid, disjoint, segmented)]
            cells += [gap(hybrid - other) for other in (disjoint, segmented)]
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    table = "\n".join(lines) + "\n"
    text = re.sub(
        r"(?s)(<!-- begin sharing -->\n).*(<!-- end sharing -->)",
        lambda marks: f"{marks[1]}{table}{marks[2]}",
        PAGE.read_text("utf-8"),
    )
    PAGE.write_text(text, "utf-8")


def best(
    weeks: list[ts.EventLog], name: str, alphas: tuple[float, ...], size: float, **ridge: Any
) -> Floats:
    """(weeks, 2) relative CTRs, deployment and learning, with the α that deploys best."""
    found = [
        np.array(
            [
                (result.deployment.ctr / week.ctr, result.learning.ctr / week.ctr)
                for week in weeks
                for result in [
                    ts.replay(ts.policy(name, alpha=alpha, **ridge), week, size * PAPER / EVENTS)
                ]
            ]
        )
        for alpha in alphas
    ]
    return max(found, key=lambda each: float(each[:, 0].mean()))


def pair(each: Floats) -> str:
    """Means over the weeks."""
    return " / ".join(f"{value:.3f}" for value in each.mean(axis=0))


def gap(each: Floats) -> str:
    """Means over the weeks, with their standard errors."""
    errors = each.std(axis=0, ddof=1) / np.sqrt(len(each))
    return " / ".join(
        f"{value:+.3f} ± {error:.3f}"
        for value, error in zip(each.mean(axis=0), errors, strict=True)
    )


if __name__ == "__main__":
    main()
