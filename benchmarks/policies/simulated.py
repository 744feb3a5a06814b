"""True values in simulated worlds: by size of the data, where tastes move, and with late payoffs.

Parameters are chosen on other worlds than those that policies are judged on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.measuring import say
from benchmarks.policies.kept_runs import KeptRuns
from benchmarks.policies.worlds import DRIFT, EXPLORED, week
from benchmarks.tables import Section, Table

SIZES, DELAYS = (1.0, 0.1, 0.01), (0, 10, 60)
BUCKETS = ("deployment", "learning")
ALPHAS, EPSILONS = (0.05, 0.2), (0.1, 0.3)
CHOOSING, JUDGING = range(101, 103), range(11, 17)  # worlds, by their seeds
DRIFT_CHOOSING, DRIFT_JUDGING = range(201, 202), range(31, 35)


@dataclass(frozen=True)
class Contender:
    """A policy, and the values of its parameters to choose from."""

    name: str  # in the table
    policy: str
    grid: dict[str, tuple[Any, ...]]
    paper: bool = False  # one of the paper's, as the paper runs it

    def settings(self) -> Iterator[dict[str, Any]]:
        """What is tried."""
        for values in product(*self.grid.values()):
            yield {k: v for k, v in zip(self.grid, values, strict=True) if v is not None}


EPSILON, ALPHA = {"epsilon": EPSILONS}, {"alpha": ALPHAS}
CONTENDERS = (
    Contender("ε-greedy", "egreedy", EPSILON, paper=True),
    Contender("ucb", "ucb", ALPHA, paper=True),
    Contender("ucb (seg)", "ucb-seg", ALPHA, paper=True),
    Contender("ucb (warm)", "ucb-warm", ALPHA, paper=True),
    Contender("linucb (disjoint)", "linucb-disjoint", ALPHA, paper=True),
    Contender("linucb (hybrid)", "linucb-hybrid", ALPHA, paper=True),
    Contender("kl-ucb", "klucb", {"alpha": (0.1, 0.3)}),
    Contender(
        "logistic ucb (hybrid)",
        "logucb-hybrid",
        {"alpha": (0.15, 0.5), "ridge": (100.0,)},
    ),
    Contender("linucb (disjoint), ridge auto", "linucb-disjoint", {**ALPHA, "ridge": ("auto",)}),
    Contender("linucb (hybrid), ridge auto", "linucb-hybrid", {**ALPHA, "ridge": ("auto",)}),
    Contender("ucb (prior)", "ucb-prior", ALPHA),
    Contender("linucb (disjoint, prior)", "linucb-disjoint-prior", ALPHA),
    Contender("linucb (hybrid, prior)", "linucb-hybrid-prior", ALPHA),
    Contender("lints (hybrid, prior)", "lints-hybrid-prior", ALPHA),
)
# Where tastes move: the best of those, and the same that forget.
MOVING = tuple(
    each
    for each in CONTENDERS
    if each.policy in ("ucb", "ucb-warm", "linucb-disjoint", "linucb-hybrid", "linucb-hybrid-prior")
) + tuple(
    Contender(f"{name}, half-life", policy, {"alpha": (0.05, 0.2), "half_life": (48.0,)})
    for name, policy in (
        ("linucb (hybrid)", "linucb-hybrid"),
        ("linucb (hybrid, prior)", "linucb-hybrid-prior"),
    )
)
LATE = ("ucb", "linucb (disjoint)", "linucb (hybrid)", "linucb (hybrid, prior)",
        "lints (hybrid, prior)")  # fmt: skip

Values = dict[tuple[str, Any], dict[str, list[float]]]  # by contender and column, then by bucket


@dataclass(frozen=True)
class Bench:
    """Simulated weeks of one kind, and the runs in them that are kept."""

    visits: int
    drifting: bool
    kept: KeptRuns

    def played(
        self, seed: int, contender: Contender, given: dict[str, Any], size: float, delay: int = 0
    ) -> dict[str, float]:
        """The true relative CTR of both buckets in one world."""

        def compute() -> dict[str, float]:
            say(f"world {seed}, {size:g}: {contender.name} {given}")
            there = week(seed, self.visits, **(DRIFT if self.drifting else {}))
            return there.play(there.policy(contender.policy, seed, given), size, delay)

        what = (self.visits, self.drifting, seed, contender.policy, given, size, delay)
        found: dict[str, float] = self.kept.get(what, compute)
        return found

    def choose(
        self, contenders: Sequence[Contender], sizes: Sequence[float], worlds: Sequence[int]
    ) -> dict[tuple[str, float], dict[str, Any]]:
        """For each policy and size the parameters with the best mean of both buckets."""
        tried = [(s, c, given) for s in sizes for c in contenders for given in c.settings()]
        for world, (size, contender, given) in product(worlds, tried):  # a world at a time
            self.played(world, contender, given, size)
        best: dict[tuple[str, float], dict[str, Any]] = {}
        for size, c in product(sizes, contenders):
            means = [
                np.mean([list(self.played(w, c, given, size).values()) for w in worlds])
                for given in c.settings()
            ]
            best[c.name, size] = list(c.settings())[int(np.argmax(means))]
        return best

    def judge(
        self,
        contenders: Sequence[Contender],
        columns: Sequence[tuple[Any, float, int]],
        worlds: Sequence[int],
        chosen: dict[tuple[str, float], dict[str, Any]],
    ) -> Values:
        """What each earns in each world, in columns of (name, size, delay)."""
        values: Values = {}
        for world in worlds:
            for c, (column, size, delay) in product(contenders, columns):
                found = self.played(world, c, chosen[c.name, size], size, delay)
                for bucket in BUCKETS:
                    by_bucket = values.setdefault((c.name, column), {b: [] for b in BUCKETS})
                    by_bucket[bucket].append(found[bucket])
        return values


def run(quick: bool, kept: KeptRuns) -> Section:
    """All three tables of simulated worlds."""
    visits = 1_500 if quick else 10_000
    choosing, judging = (CHOOSING[:1], JUDGING[:2]) if quick else (CHOOSING, JUDGING)
    still, moving = Bench(visits, False, kept), Bench(visits, True, kept)
    sizes = [(f"{100 * size:g} %", size, 0) for size in SIZES]
    chosen = still.choose(CONTENDERS, SIZES, choosing)
    late = [c for c in CONTENDERS if c.name in LATE]
    delays = [(f"{delay} min", 1.0, delay) for delay in DELAYS]
    for world in judging:  # all that is played in a world, while it is there
        still.judge(CONTENDERS, sizes, [world], chosen)
        still.judge(late, delays, [world], chosen)
    values = still.judge(CONTENDERS, sizes, judging, chosen)
    waited = still.judge(late, delays, judging, chosen)
    few = [sizes[0], sizes[-1]]
    drift_choosing, drift_judging = DRIFT_CHOOSING, DRIFT_JUDGING[: 2 if quick else None]
    drift_chosen = moving.choose(MOVING, [each[1] for each in few], drift_choosing)
    drifted = moving.judge(MOVING, few, drift_judging, drift_chosen)
    tables = [
        _table(
            "True relative CTR, deployment / learning, by the share of visits that teach",
            CONTENDERS,
            sizes,
            values,
        ),
        _lead("More than the best of the paper's policies", CONTENDERS, sizes, values),
        _table("The same where tastes and popularity move", MOVING, few, drifted),
        _lead("More than the best of the paper's policies where tastes move", MOVING, few, drifted),
        _table("The same with payoffs that come late, all visits teach", late, delays, waited),
    ]
    notes = [
        f"Simulated, live play: {len(judging)} worlds, a week of {visits:,} visits each, of which "
        "the policy chooses every one. Priors, offsets and features come from "
        f"{EXPLORED:,} events of random exploration in the fortnight before. Parameters "
        f"were chosen on {len(choosing)} other worlds, for each size; the paper's policies have "
        "the paper's ridge of 1.",
        "True relative CTR: the click probabilities of what each bucket chose, divided by those of "
        "random choice. Mean and half of the 95 % interval over worlds.",
        "*More than the best*: world by world, over the one of the paper's policies that was best "
        "in these very worlds on average.",
        f"Where tastes move: {len(drift_judging)} worlds whose groups' tastes turn by "
        f"{DRIFT['taste_turn']:g} radians a day, and whose stories' log-odds walk by "
        f"{DRIFT['popularity_drift']:g} an hour; parameters chosen on {len(drift_choosing)} other.",
        "Late payoffs: parameters are those chosen without delay.",
    ]
    figures = {
        "chosen": {f"{n} {s:g}": v for (n, s), v in chosen.items()},
        "drift chosen": {f"{n} {s:g}": v for (n, s), v in drift_chosen.items()},
        "values": _plain(values),
        "drift": _plain(drifted),
        "delay": _plain(waited),
    }
    return Section(tables, figures, notes)


def _plain(values: Values) -> dict[str, Any]:
    return {f"{name}, {column}": found for (name, column), found in values.items()}


def _table(
    title: str, contenders: Sequence[Contender], columns: Sequence[Any], values: Values
) -> Table:
    heads = [column for column, _, _ in columns]
    rows = [
        (c.name, *(" / ".join(_mean(values[c.name, h][b]) for b in BUCKETS) for h in heads))
        for c in contenders
    ]
    return Table(title, ("policy", *heads), rows)


def _lead(
    title: str, contenders: Sequence[Contender], columns: Sequence[Any], values: Values
) -> Table:
    cells = [(column, bucket) for column, _, _ in columns for bucket in BUCKETS]
    paper = [c.name for c in contenders if c.paper]
    best = {
        (h, b): paper[int(np.argmax([np.mean(values[name, h][b]) for name in paper]))]
        for h, b in cells
    }
    rows = [
        (
            c.name,
            *(
                _mean(
                    100 * (np.divide(values[c.name, h][b], values[best[h, b], h][b]) - 1), " %", 1
                )
                for h, b in cells
            ),
        )
        for c in contenders
        if not c.paper
    ]
    heads = ("policy", *(f"{h}, {b}" for h, b in cells))
    return Table(title, heads, [("(the best of the paper's)", *best.values()), *rows])


def _mean(found: Any, unit: str = "", digits: int = 2) -> str:
    mean = np.mean(found)
    half = student.ppf(0.975, len(found) - 1) * np.std(found, ddof=1) / np.sqrt(len(found))
    sign = "+" if unit and mean > 0 else ""
    return f"{sign}{mean:.{digits}f}{unit} ± {half:.{digits}f}"
