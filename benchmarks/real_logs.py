"""What policies earn on real logs: headline tests, e-mails, handwritten digits."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

import topstory as ts
from benchmarks.measuring import say
from benchmarks.tables import Section, Table

Floats = npt.NDArray[np.float64]
Play = Callable[[ts.EventLog, float, int], Floats]
BOOTSTRAPS, PATHS = 2_000, 5


def parts(data: Path, quick: bool) -> Iterator[Section]:
    """A section for each log that the folder has; it says which it has not."""
    for name, path, part in (
        ("Upworthy", data / "upworthy" / "packages_201303_201420.parquet", upworthy),
        ("Hillstrom", data / "hillstrom" / "hillstrom.csv", hillstrom),
        ("pendigits", data / "pendigits" / "pendigits.arff", pendigits),
    ):
        if path.exists():
            say(name)
            yield part(path, quick)
        else:
            yield Section([], {}, [f"{name} was left out: the folder has no {path.name}."])


# -- headline tests of upworthy.com --


def upworthy(path: Path, quick: bool) -> Section:
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
    before = _log(np.flatnonzero(early)[:limit], test, shows, clicks, seed=1)
    after = _log(np.flatnonzero(late)[:limit], test, shows, clicks, seed=2)
    prior = ts.fit_prior(before)
    mean, weight = prior.averages[0]
    compared: dict[str, Play] = {
        "ε-greedy": lambda log, at, seed: _replayed(ts.policy("egreedy", epsilon=at), log, seed),
        "ucb": lambda log, at, seed: _replayed(ts.policy("ucb", alpha=at), log, seed),
        "UCB1, its bonus scaled": lambda log, at, seed: _by_kernel(log, 0.0, 0.0, at, seed),
        "Beta–Thompson from Beta(1, 1)": lambda log, at, seed: _by_kernel(log, 1.0, 1.0, 0.0, seed),
        "ucb (prior)": lambda log, at, seed: _replayed(
            ts.policy("ucb-prior", alpha=at, prior=prior), log, seed
        ),
        "Thompson sampling (prior)": lambda log, at, seed: _replayed(
            ts.Policy(ts.ContextFree(prior), ts.Thompson(at)), log, seed
        ),
    }
    grids: dict[str, tuple[float, ...]] = {
        "ε-greedy": (0.03, 0.1, 0.3, 0.5),
        "UCB1, its bonus scaled": (0.03, 0.1, 0.3),
        "Beta–Thompson from Beta(1, 1)": (0.0,),
        "Thompson sampling (prior)": (0.015, 0.03, 0.06, 0.12),
    }
    found, chosen = {}, {}
    for name, play in compared.items():
        grid = grids.get(name, (0.05, 0.1, 0.2, 0.4))
        rates = {at: float(_by_test(before, play(before, at, 0)).sum()) for at in grid}
        chosen[name] = max(grid, key=rates.__getitem__)
        paths = [_by_test(after, play(after, chosen[name], seed)) for seed in range(PATHS)]
        found[name] = np.asarray(np.mean(paths, 0), np.float64)
        say(f"{name} {chosen[name]:g}: {found[name].sum() / len(after):.5f}")
    random, even = _by_test(after, _shown(after)), after.uniformity()
    best = "Thompson sampling (prior)"
    rows = []
    for name, earned in {"random": random, **found}.items():
        gain = _bootstrap(found[best], earned)
        rows.append(
            (
                name,
                f"{chosen[name]:g}" if chosen.get(name) else "",
                f"{1e4 * earned.sum() / len(after):.1f}",
                f"{earned.sum() / random.sum():.3f}",
                "" if name == best else f"{gain[0]:+.1%} [{gain[1]:+.1%}, {gain[2]:+.1%}]",
            )
        )
    described = Table(
        "Upworthy's headline tests: clicks in 10,000 impressions, at equal traffic",
        ("policy", "α or ε", "clicks", "relative", f"{best} earns more by"),
        rows,
    )
    notes = [
        f"Real: the Upworthy Research Archive (Matias et al. 2021, CC BY 4.0). {int(late.sum()):,} "
        f"tests of {len(weeks) - len(weeks) // 2} weeks, {len(after):,} impressions, after "
        f"{int(early.sum()):,} tests of the weeks before, which taught the prior (mean {mean:.4f}, "
        f"worth {weight:.0f} trials) and chose α and ε. A test is a pool, its impressions come in "
        "random order; the learning bucket. "
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
    log = _log(tests, test, shows, np.zeros_like(shows), seed=0)
    return not any(check.failed for check in ts.inspect(log).checks)


def _log(tests: Any, test: Any, shows: Any, clicks: Any, seed: int) -> ts.EventLog:
    """Every impression of these tests, in random order within a test."""
    random = np.random.default_rng(seed)
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


def _replayed(policy: ts.Policy, log: ts.EventLog, seed: int) -> Floats:
    """(articles, 2) trials and clicks of the learning bucket."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.RetentionWarning)  # tests are short
        warnings.simplefilter("ignore", ts.NotUniformWarning)  # the section says how uniform it is
        found = ts.replay(_seeded(policy, seed), log).by_article
    return np.array([(found[a].shown, found[a].payoff) for a in log.article_ids], np.float64)


def _shown(log: ts.EventLog) -> Floats:
    count = len(log.article_ids)
    shown = np.bincount(log.shown_index, minlength=count)
    return np.column_stack([shown, np.bincount(log.shown_index, log.payoff, count)])


def _by_kernel(log: ts.EventLog, a: float, b: float, c: float, seed: int) -> Floats:
    out = np.zeros((len(log.article_ids), 2))
    pools = (log.pool, log.pool_offsets, log.pool_members)
    _play(*pools, log.shown_index, log.payoff, a, b, c, seed, out)
    return out


@numba.njit
def _play(pool, offsets, members, shown, payoff, a, b, c, seed, out):  # type: ignore[no-untyped-def]
    """Beta–Thompson sampling from Beta(a, b), or UCB1's mean + c·√(2 ln t/n) if c > 0."""
    np.random.seed(seed)
    trials = np.zeros(len(offsets))
    for t in range(len(pool)):
        p = pool[t]
        best, chosen = -np.inf, -1
        for j in range(offsets[p], offsets[p + 1]):
            m = members[j]
            n, hits = out[m, 0], out[m, 1]
            if c > 0.0:
                score = np.inf if n == 0.0 else hits / n + c * np.sqrt(2 * np.log(trials[p]) / n)
                score = score + 1e-9 * np.random.random()
            else:
                score = np.random.beta(a + hits, b + n - hits)
            if score > best:
                best, chosen = score, m
        if chosen == shown[t]:
            trials[p] += 1
            out[chosen, 0] += 1
            out[chosen, 1] += payoff[t]


def _by_test(log: ts.EventLog, sums: Floats) -> Floats:
    """(tests,) clicks that a policy would have earned with all impressions of each test."""
    members, offsets = log.pool_members, log.pool_offsets
    events = np.bincount(log.pool, minlength=len(offsets) - 1)
    trials = np.add.reduceat(sums[members, 0], offsets[:-1])
    clicks = np.add.reduceat(sums[members, 1], offsets[:-1])
    return np.asarray(events * clicks / np.maximum(trials, 1), np.float64)


def _bootstrap(one: Floats, other: Floats) -> tuple[float, float, float]:
    """One over the other − 1, and its 95 % interval over tests."""
    random = np.random.default_rng(0)
    rows = random.integers(len(one), size=(BOOTSTRAPS, len(one)))
    drawn = one[rows].sum(1) / other[rows].sum(1) - 1
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(one.sum() / other.sum() - 1), float(low), float(high)


# -- e-mails --


def hillstrom(path: Path, quick: bool) -> Section:
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
            found = [ts.replay(_seeded(policy, seed), log[third:]).learning for seed in range(5)]
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


def _seeded(policy: ts.Policy, seed: int) -> ts.Policy:
    twin = policy.copy()
    twin.seed = seed
    return twin


# -- handwritten digits --


def pendigits(path: Path, quick: bool) -> Section:
    """Ten digits to choose from, 1 for the right one; every choice can be judged."""
    lines = path.read_text("utf-8", errors="replace").split("@data")[-1].split("@DATA")[-1]
    rows = [line.split(",") for line in lines.splitlines() if line.count(",") == 16]
    numbers = np.array([[float(v) for v in row] for row in rows])
    order = np.random.default_rng(0).permutation(len(rows))
    x = np.column_stack([numbers[order, :16] / 100, np.ones(len(rows))])
    digit = numbers[order, 16].astype(int).astype(str)
    first = 2_000
    random = np.random.default_rng(1)
    pool = [str(each) for each in range(10)]
    shown = random.choice(pool, first)
    log = ts.EventLog.from_arrays(
        x[:first], [pool], np.zeros(first, int), shown, shown == digit[:first]
    )
    prior = ts.fit_prior(log)
    compared = {
        "ε-greedy (disjoint), ridge 1": ts.policy("egreedy-disjoint", epsilon=0.05),
        "linucb (disjoint), ridge 1": ts.policy("linucb-disjoint", alpha=0.3),
        "linucb (disjoint, prior)": ts.policy("linucb-disjoint-prior", alpha=0.3, prior=prior),
        "linucb (hybrid, prior)": ts.policy("linucb-hybrid-prior", alpha=0.3, prior=prior),
    }
    stops = (300, 1_000, 1_000 if quick else 8_000)
    table_rows = []
    for name, policy in compared.items():
        right, learner = [], policy.copy()
        for t in range(first, first + stops[-1]):
            choice = learner.choose(x[t], pool).article
            right.append(choice == digit[t])
            learner.learn(x[t], choice, float(right[-1]))
        table_rows.append((name, *(f"{np.mean(right[:stop]):.3f}" for stop in stops)))
    table = Table(
        "Handwritten digits as a bandit: share of right choices",
        ("policy", *(f"first {stop:,}" for stop in stops)),
        table_rows,
    )
    notes = [
        "Real: UCI pen-based recognition of handwritten digits (Alpaydin, Alimoglu 1998, CC BY "
        f"4.0). {first:,} rows with a digit shown at random taught the prior; the standard error "
        "of a share is below 0.03, 0.016 and 0.006."
    ]
    return Section([table], {"pendigits": {r[0]: list(r[1:]) for r in table_rows}}, notes)
