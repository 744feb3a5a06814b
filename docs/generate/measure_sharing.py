"""Measure what sharing between articles earns when data are sparse, for docs/concepts/simulator.md.

Parameters are tuned on a week in each of some worlds, and evaluated on a week in each of other
worlds, so that no choice has seen the data it is evaluated on.

python -m docs.generate.measure_sharing
"""

from __future__ import annotations

import re
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import topstory as ts

PAGE = Path(__file__).parents[1] / "concepts" / "simulator.md"
TUNING_WORLDS, EVALUATION_WORLDS = range(4), range(20, 32)
# A twentieth of the paper's week, with as many trials to learn from as 1 % and 5 % of it have.
EVENTS, PAPER = 1_800_000, 36_000_000
SIZES = (0.01, 0.05)
ALPHAS = (0.06, 0.1, 0.2, 0.4, 0.6, 1.0)
RIDGES = (1.0, 10.0, 30.0, 100.0, 300.0)
HYBRID, DISJOINT, SEGMENTED = "linucb-hybrid", "linucb-disjoint", "ucb-seg"

Floats = npt.NDArray[np.float64]


class Contest(NamedTuple):
    """A policy with its parameters, at one size of data."""

    policy: str
    size: float
    alpha: float
    ridge: float | None = None


def main() -> None:
    """Tune, evaluate, write."""
    tried = [
        *(Contest(SEGMENTED, size, alpha) for size in SIZES for alpha in ALPHAS),
        *(
            Contest(policy, size, alpha, ridge)
            for policy in (HYBRID, DISJOINT)
            for size in SIZES
            for ridge in RIDGES
            for alpha in ALPHAS
        ),
    ]
    deployed = dict(zip(tried, measured(TUNING_WORLDS, tried).mean(axis=0)[:, 0], strict=True))

    def best(policy: str, size: float, ridges: tuple[float | None, ...]) -> Contest:
        fit = [c for c in tried if (c.policy, c.size) == (policy, size) and c.ridge in ridges]
        return max(fit, key=lambda contest: deployed[contest])

    rows = [
        (best(HYBRID, size, ridges), best(DISJOINT, size, ridges), best(SEGMENTED, size, (None,)))
        for size in SIZES
        for ridges in (*((ridge,) for ridge in RIDGES), RIDGES)
    ]
    entered = list(dict.fromkeys(contest for row in rows for contest in row))
    earned = dict(zip(entered, measured(EVALUATION_WORLDS, entered).swapaxes(0, 1), strict=True))
    lines = [
        "| size | hybrid | disjoint | segmented | hybrid − disjoint | hybrid − segmented |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        hybrid, disjoint, segmented = (earned[contest] for contest in row)
        cells = [f"{row[0].size:.0%}".replace("%", " %")]
        cells += [f"{parameters(c)}: {pair(earned[c])}" for c in row]
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


def measured(worlds: range, contests: list[Contest]) -> Floats:
    """(worlds, contests, 2) relative CTRs: deployment and learning."""
    with ProcessPoolExecutor() as cores:
        return np.array(list(cores.map(partial(week, contests), worlds)))


def week(contests: list[Contest], world: int) -> Floats:
    """(contests, 2): a week of one world."""
    log = ts.TodayModule(world, users=20_000).random_log(EVENTS, "2009-05-03", 7)
    found = []
    for contest in contests:
        model: dict[str, Any] = {} if contest.ridge is None else {"ridge": contest.ridge}
        policy = ts.policy(contest.policy, alpha=contest.alpha, **model)
        result = ts.replay(policy, log, contest.size * PAPER / EVENTS)
        found.append((result.deployment.ctr / log.ctr, result.learning.ctr / log.ctr))
    return np.array(found)


def parameters(contest: Contest) -> str:
    """As a reader writes them."""
    ridge = "" if contest.ridge is None else f", ridge {contest.ridge:g}"
    return f"α {contest.alpha:g}{ridge}"


def pair(each: Floats) -> str:
    """Means over the worlds."""
    return " / ".join(f"{value:.3f}" for value in each.mean(axis=0))


def gap(each: Floats) -> str:
    """Means over the worlds, with their standard errors."""
    errors = each.std(axis=0, ddof=1) / np.sqrt(len(each))
    return " / ".join(
        f"{value:+.3f} ± {error:.3f}"
        for value, error in zip(each.mean(axis=0), errors, strict=True)
    )


if __name__ == "__main__":
    main()
