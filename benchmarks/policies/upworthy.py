"""Headline tests of upworthy.com: priors from the weeks before, judged on the weeks after."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

import topstory as ts
from benchmarks.measuring import say
from benchmarks.tables import Section, Table

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
BOOTSTRAPS, PATHS = 4_000, 10
SHARES = (1.0, 0.3, 0.1)  # of the prior's weight: a prior of all tests is vague about one
EPSILON_GREEDY, UCB1, BETA, NORMAL, UCB = range(5)


@dataclass(frozen=True)
class Contender:
    """A policy of averages, as the kernel below runs it."""

    name: str
    kind: int
    grid: tuple[float, ...]  # of ε or α: chosen on the weeks before
    from_prior: bool = False
    start: tuple[float, float] = (0.5, 0.0)  # mean, and how many trials it counts for

    def settings(self, prior: tuple[float, float]) -> list[tuple[float, float, float]]:
        """What is tried: ε or α, and where it starts."""
        starts = [(prior[0], share * prior[1]) for share in SHARES]
        return [
            (at, *start)
            for at in self.grid
            for start in (starts if self.from_prior else [self.start])
        ]


CONTENDERS = (
    Contender("ε-greedy", EPSILON_GREEDY, (0.05, 0.1, 0.2, 0.3)),
    Contender("ucb", UCB, (0.05, 0.1, 0.2, 0.4)),
    Contender("UCB1", UCB1, (1.0,)),
    Contender("UCB1, its bonus scaled", UCB1, (0.03, 0.045, 0.06, 0.08, 0.1)),
    Contender("Beta–Thompson from Beta(1, 1)", BETA, (1.0,), start=(0.5, 2.0)),
    Contender("ucb (prior)", UCB, (0.05, 0.1, 0.2, 0.4), from_prior=True),
    Contender("Thompson (prior)", NORMAL, (0.015, 0.03, 0.06, 0.12), from_prior=True),
    Contender("Beta–Thompson (prior)", BETA, (0.3, 0.5, 0.7), from_prior=True),
)


@dataclass(frozen=True, eq=False)
class Tests:
    """Headline tests: those of test j are offsets[j] … offsets[j + 1] − 1."""

    shows: Ints
    clicks: Ints
    offsets: Ints

    @classmethod
    def of(cls, tests: Any, test: Any, shows: Any, clicks: Any) -> Tests:
        """These tests of the table."""
        rows = [np.flatnonzero(test == each) for each in tests]
        every = np.concatenate(rows)
        return cls(shows[every], clicks[every], np.cumsum([0, *map(len, rows)]))

    def played(self, contender: Contender, setting: tuple[float, float, float]) -> Floats:
        """(tests,) the clicks of each, had the policy chosen for all of its impressions."""
        out = np.zeros(len(self.offsets) - 1)
        columns = (self.shows, self.clicks, self.offsets)
        _play(*columns, contender.kind, *setting, PATHS, out)
        return out

    @property
    def random(self) -> Floats:
        """(tests,) the clicks that there were."""
        return np.add.reduceat(self.clicks, self.offsets[:-1]).astype(np.float64)


def run(path: Path, quick: bool) -> Section:
    """Priors and parameters from the weeks before, judged on the weeks after."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    week = np.array(table["test_week"])
    names, test = np.unique(np.array(table["clickability_test_id"]), return_inverse=True)
    shows = np.array(table["impressions"], np.int64)
    clicks = np.array(table["clicks"], np.int64)
    first = np.full(len(names), 10**9)
    np.minimum.at(first, test, week)
    broken = [each for each in np.unique(first) if not _uniform(first, test, shows, each)]
    kept = np.isin(first, broken, invert=True) & (np.bincount(test) > 1)
    weeks = np.unique(first[kept])
    early, late = kept & (first < weeks[len(weeks) // 2]), kept & (first >= weeks[len(weeks) // 2])
    limit = 100 if quick else 10**6
    before = Tests.of(np.flatnonzero(early)[:limit], test, shows, clicks)
    after = Tests.of(np.flatnonzero(late)[:limit], test, shows, clicks)
    taught = ts.fit_prior(_log(np.flatnonzero(early)[:limit], test, shows, clicks)).averages[0]
    prior = (float(taught[0]), float(taught[1]))

    found, chosen, promise = {}, {}, {}
    for each in CONTENDERS:
        tried = {given: before.played(each, given).sum() for given in each.settings(prior)}
        given = chosen[each.name] = max(tried, key=tried.__getitem__)
        promise[each.name] = tried[given] / before.random.sum()
        found[each.name] = after.played(each, given)
        say(f"{each.name} {given}: {found[each.name].sum() / after.shows.sum():.5f}")
    best = max((c.name for c in CONTENDERS if c.from_prior), key=promise.__getitem__)
    rows = []
    for name, earned in {"random": after.random, **found}.items():
        gain = _bootstrap(found[best], earned)
        rows.append(
            (
                name,
                f"{chosen[name][0]:g}" if name in chosen else "",
                f"{chosen[name][2]:.0f}" if name in chosen else "",
                f"{promise.get(name, 1.0):.3f}",
                f"{1e4 * earned.sum() / after.shows.sum():.1f}",
                f"{earned.sum() / after.random.sum():.3f}",
                "" if name == best else f"{gain[0]:+.1%} [{gain[1]:+.1%}, {gain[2]:+.1%}]",
            )
        )
    described = Table(
        "Upworthy's headline tests: clicks at equal traffic",
        (
            "policy",
            "α or ε",
            "prior, in trials",
            "relative, weeks before",
            "clicks in 10,000",
            "relative",
            f"{best} earns more by",
        ),
        rows,
    )
    even = _log(np.flatnonzero(late)[:limit], test, shows, clicks).uniformity()
    notes = [
        f"Real: the Upworthy Research Archive (Matias et al. 2021, CC BY 4.0). {int(late.sum()):,} "
        f"tests of {len(weeks) - len(weeks) // 2} weeks, {int(after.shows.sum()):,} impressions, "
        f"after {int(early.sum()):,} tests of the weeks before, which taught the prior (mean "
        f"{prior[0]:.4f}, worth {prior[1]:.0f} trials), chose α, ε and a share of the prior, and "
        "which of the policies "
        f"with a prior is compared with the others: {best}. A test is a pool. Live play with its "
        "own impressions: a shown headline takes one of its impressions at random, which is not "
        "put back, as often as its least shown headline was shown. "
        f"{len(broken)} weeks were left out, since `ts.inspect` says that their headlines were not "
        "shown uniformly at random. The weeks that are left are not perfect together: chi-square "
        f"{even.statistic:.0f} with {even.degrees_of_freedom} degrees of freedom in those judged. "
        f"Means of {PATHS} learning paths; 95 % intervals by bootstrap over tests.",
    ]
    return Section([described], {"upworthy": {r[0]: list(r[1:]) for r in rows}}, notes)


def _uniform(first: Any, test: Any, shows: Any, week: int) -> bool:
    """Whether the headlines of a week's tests were shown uniformly, as `ts.inspect` sees it."""
    tests = np.flatnonzero((first == week) & (np.bincount(test) > 1))
    if not len(tests):
        return False
    log = _log(tests, test, shows, np.zeros_like(shows))
    return not any(check.failed for check in ts.inspect(log).checks)


def _log(tests: Any, test: Any, shows: Any, clicks: Any) -> ts.EventLog:
    """Every impression of these tests, in random order within a test."""
    random = np.random.default_rng(0)
    pools, pool, shown, paid = [], [], [], []
    for number, each in enumerate(tests):
        packages = np.flatnonzero(test == each)
        pools.append([str(package) for package in packages])
        arms = np.repeat(packages, shows[packages])
        hits = np.concatenate([np.arange(shows[p]) < clicks[p] for p in packages])
        order = random.permutation(len(arms))
        shown.append(arms[order])
        paid.append(hits[order])
        pool.append(np.full(len(arms), number))
    ids = np.concatenate(shown)
    return ts.EventLog.from_arrays(
        np.ones((len(ids), 1), np.float32),
        pools,
        np.concatenate(pool),
        ids.astype(str),
        np.concatenate(paid),
    )


@numba.njit
def _play(shows, clicks, offsets, kind, at, mean, weight, paths, out):  # type: ignore[no-untyped-def]  # numba's
    """Mean clicks of each test over the learning paths, for all of its impressions."""
    np.random.seed(0)
    for j in range(len(out)):
        first, count = offsets[j], offsets[j + 1] - offsets[j]
        trials = shows[first : first + count].min()
        total = 0.0
        for _ in range(paths):
            left = shows[first : first + count].astype(np.float64)
            hits_left = clicks[first : first + count].astype(np.float64)
            n, hits = np.full(count, weight), np.full(count, mean * weight)
            for t in range(trials):
                best, a = -np.inf, 0
                for c in range(count):
                    score = 1e-9 * np.random.random()  # ties at random
                    if kind == BETA:
                        wider = 1.0 / at**2
                        score = np.random.beta(wider * hits[c], wider * (n[c] - hits[c]))
                    elif n[c] == 0.0:
                        score += 0.0 if kind == EPSILON_GREEDY else 1e9
                    elif kind == NORMAL:
                        score = hits[c] / n[c] + at * np.random.normal() / np.sqrt(n[c])
                    else:
                        bonus = 0.0 if kind == EPSILON_GREEDY else at / np.sqrt(n[c])
                        if kind == UCB1:
                            bonus *= np.sqrt(2.0 * np.log(t + 1.0))
                        score += hits[c] / n[c] + bonus
                    if score > best:
                        best, a = score, c
                if kind == EPSILON_GREEDY and np.random.random() < at:
                    a = np.random.randint(count)
                clicked = 1.0 if np.random.random() * left[a] < hits_left[a] else 0.0
                left[a] -= 1.0
                hits_left[a] -= clicked
                n[a] += 1.0
                hits[a] += clicked
                total += clicked
        out[j] = total / paths / trials * shows[first : first + count].sum()


def _bootstrap(one: Floats, other: Floats) -> tuple[float, float, float]:
    """One over the other − 1, and its 95 % interval over tests."""
    random = np.random.default_rng(0)
    rows = random.integers(len(one), size=(BOOTSTRAPS, len(one)))
    drawn = one[rows].sum(1) / other[rows].sum(1) - 1
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(one.sum() / other.sum() - 1), float(low), float(high)
