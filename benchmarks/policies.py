"""Which policy earns most: true values in simulated worlds, and what real logs say.

Parameters are chosen on other worlds than those that policies are judged on; real logs are judged
on what comes after the part that chose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

import topstory as ts
from benchmarks import real_logs
from benchmarks.measuring import say
from benchmarks.tables import Section, Table
from topstory.evaluation.replays.replay import replay_unwarned
from topstory.evaluation.replays.truth import ExpectedPayoffs

SIZES = (1.0, 0.1, 0.01)
CHOOSING, JUDGING = (101, 102), (1, 2, 3, 4, 5, 6)
ALPHAS, EPSILONS = (0.05, 0.15, 0.4), (0.03, 0.1, 0.3)
EARLIER, WEEK, USERS = "2009-04-20", "2009-05-03", 10_000
BUCKETS = ("deployment", "learning")


@dataclass(frozen=True)
class Contender:
    """A policy, and which of its parameters are chosen."""

    name: str  # in the table
    policy: str
    ridges: tuple[float | str | None, ...] = (None,)
    paper: bool = False  # one of the paper's, as the paper runs it

    def settings(self) -> Iterator[dict[str, Any]]:
        """What is tried."""
        tuned = "epsilon" if self.policy.startswith("egreedy") else "alpha"
        for value in EPSILONS if tuned == "epsilon" else ALPHAS:
            for ridge in self.ridges:
                yield {tuned: value} | ({} if ridge is None else {"ridge": ridge})


CONTENDERS = (
    Contender("ε-greedy", "egreedy", paper=True),
    Contender("ucb", "ucb", paper=True),
    Contender("ucb (seg)", "ucb-seg", paper=True),
    Contender("ucb (warm)", "ucb-warm", paper=True),
    Contender("linucb (disjoint), ridge 1", "linucb-disjoint", (1.0,), paper=True),
    Contender("linucb (hybrid), ridge 1", "linucb-hybrid", (1.0,), paper=True),
    Contender("linucb (disjoint), ridge chosen", "linucb-disjoint", (10.0, 100.0)),
    Contender("linucb (hybrid), ridge chosen", "linucb-hybrid", (30.0, 300.0, 3_000.0)),
    Contender("linucb (hybrid), ridge auto", "linucb-hybrid", ("auto",)),
    Contender("ucb (prior)", "ucb-prior"),
    Contender("linucb (disjoint, prior)", "linucb-disjoint-prior"),
    Contender("linucb (hybrid, prior)", "linucb-hybrid-prior"),
    Contender("lints (hybrid, prior)", "lints-hybrid-prior"),
)


@dataclass(frozen=True)
class Week:
    """A simulated week, and what an earlier fortnight of random exploration teaches."""

    log: ts.EventLog
    expected: ExpectedPayoffs
    prior: ts.Prior
    offset: dict[str, Any]

    def play(self, policy: str, size: float, seed: int, given: dict[str, Any]) -> dict[str, float]:
        """The true relative CTR of both buckets."""
        learned: dict[str, Any] = {"prior": self.prior} if policy.endswith("-prior") else {}
        if policy.endswith("-warm"):
            learned["offset"] = self.offset
        made = ts.policy(policy, seed=seed, **given, **learned)
        found = replay_unwarned(made, self.log, size, seed, expected=self.expected)
        assert found.true_relative_ctr is not None
        return dict(found.true_relative_ctr)


@cache
def week(seed: int, events: int) -> Week:
    """The week of one world, with features learned from raw profiles."""
    say(f"simulating world {seed}")
    world = ts.TodayModule(seed, users=USERS)
    raw = world.random_log(events // 2, EARLIER, 12, seed=1, raw=True)
    builder = ts.FeatureBuilder(support=0.01, engine="serial").fit(raw)
    explored = builder.apply(raw)
    log = world.random_log(events, WEEK, 7, seed=2, features=builder)
    expected = ExpectedPayoffs.of(world.expected_payoffs(log), log)
    offset = dict(ts.fit_warm_offset(explored).table(log.articles))
    return Week(log, expected, ts.fit_prior(explored), offset)


def chosen(
    contender: Contender, size: float, events: int, worlds: tuple[int, ...]
) -> dict[str, Any]:
    """The parameters with the best mean of both buckets on the worlds that choose."""

    def value(given: dict[str, Any]) -> float:
        found = [week(seed, events).play(contender.policy, size, seed, given) for seed in worlds]
        return float(np.mean([each[bucket] for each in found for bucket in BUCKETS]))

    return max(contender.settings(), key=value)


def run(quick: bool, data: Path | None = None) -> Section:
    """True values in simulated weeks; and the real logs, if their folder is given."""
    events = 60_000 if quick else 600_000
    choosing, judging = (CHOOSING[:1], JUDGING[:2]) if quick else (CHOOSING, JUDGING)
    values: dict[tuple[str, float, str], list[float]] = {}
    settings: dict[str, dict[str, Any]] = {}
    for size in SIZES:
        for contender in CONTENDERS:
            given = chosen(contender, size, events, choosing)
            say(f"{size:g}: {contender.name} {given}")
            settings[f"{contender.name} {size:g}"] = given
            for seed in judging:
                found = week(seed, events).play(contender.policy, size, 7, given)
                for bucket in BUCKETS:
                    values.setdefault((contender.name, size, bucket), []).append(found[bucket])
    best = {at: _best_of_paper(values, *at) for at in product(SIZES, BUCKETS)}
    tables = [_values(values), _lead(values, best)]
    notes = [
        f"Simulated. {len(judging)} worlds, a week of {events:,} events each; priors and offsets "
        f"from {events // 2:,} events of random exploration in the fortnight before, which also "
        "taught the features. Parameters were chosen on "
        f"{len(choosing)} other worlds, for each size.",
        "True relative CTR: the click probabilities of what each bucket chose, divided by those of "
        "random choice. Mean and half of the 95 % interval over worlds.",
        "The second table compares, world by world, with the best of the paper's policies: the one "
        "that was best in these very worlds.",
    ]
    figures: dict[str, Any] = {
        "values": {f"{n} {s:g} {b}": v for (n, s, b), v in values.items()},
        "chosen": settings,
    }
    if data is None:
        notes.append("Real logs were left out: `--data FOLDER` names the folder that has them.")
    else:
        for part in real_logs.parts(data, quick):
            tables += part.tables
            notes += part.notes
            figures |= part.figures
    page = Section(tables, figures, notes)
    pointer = "What policies earn is on the page *Which policy?* (guides/which-policy.md)."
    return Section([], figures, [pointer], {"../guides/which-policy.md": page})


def _best_of_paper(
    values: dict[tuple[str, float, str], list[float]], size: float, bucket: str
) -> str:
    means = {c.name: float(np.mean(values[c.name, size, bucket])) for c in CONTENDERS if c.paper}
    return max(means, key=means.__getitem__)


def _values(values: dict[tuple[str, float, str], list[float]]) -> Table:
    return Table(
        "True relative CTR, deployment / learning, by the share of trials that teach",
        ("policy", *(f"{100 * size:g} %" for size in SIZES)),
        [
            (
                c.name,
                *(
                    " / ".join(_with_interval(values[c.name, size, b]) for b in BUCKETS)
                    for size in SIZES
                ),
            )
            for c in CONTENDERS
        ],
    )


def _lead(
    values: dict[tuple[str, float, str], list[float]], best: dict[tuple[float, str], str]
) -> Table:
    heads = tuple(f"{100 * size:g} %, {bucket}" for size in SIZES for bucket in BUCKETS)
    rows = [
        (
            c.name,
            *(
                _with_interval(
                    100 * (np.divide(values[c.name, *at], values[best[at], *at]) - 1), "%", 1
                )
                for at in best
            ),
        )
        for c in CONTENDERS
        if not c.paper
    ]
    return Table(
        "More than the best of the paper's policies",
        ("policy", *heads),
        [("(the best of the paper's)", *(best[at] for at in best)), *rows],
    )


def _with_interval(found: Any, unit: str = "", digits: int = 2) -> str:
    mean = np.mean(found)
    half = student.ppf(0.975, len(found) - 1) * np.std(found, ddof=1) / np.sqrt(len(found))
    sign = "+" if unit and mean > 0 else ""
    return f"{sign}{mean:.{digits}f}{' ' + unit if unit else ''} ± {half:.{digits}f}"
