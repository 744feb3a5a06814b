"""How the cost of an event grows with the pool, and with the context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import topstory as ts
from benchmarks import reference, traffic
from benchmarks.measuring import Timing, interleaved, say
from benchmarks.replay import ALPHA, SEED
from benchmarks.tables import Section, Table

POOL_SIZES = (20, 100, 1000)
DIMENSIONS = (6, 36, 136)
NAMES = ("ucb", "linucb-disjoint", "linucb-hybrid")


@dataclass(frozen=True)
class Cell:
    """One measurement: what runs, at which size, over how many events."""

    row: str
    size: str
    task: Callable[[], object]
    events: int

    @property
    def key(self) -> str:
        """Its name in the figures."""
        return f"{self.row}, {self.size}"


def run(quick: bool) -> Section:
    """Three tables: by K, by d, and sparse against dense."""
    shrink = 20 if quick else 1
    repetitions = 3 if quick else 5
    by_pool = _measure(_pool_cells(2_000_000 // shrink), repetitions)
    by_dimension = _measure(_dimension_cells(shrink), repetitions)
    by_form = _measure(_sparse_cells(200_000 // shrink), repetitions)
    tables = [
        Table(
            "By pool size, d = 6, 6 article features: ns per event",
            ("policy", *(f"K = {size}" for size in POOL_SIZES), "growth, K × 50"),
            _rows(by_pool),
        ),
        Table(
            "By context, K = 20: ns per event",
            ("policy", *(f"d = {size}" for size in DIMENSIONS), "growth, d × 22.7"),
            _rows(by_dimension),
        ),
        Table(
            "Binary contexts, d = 136 with 5 to 8 on, K = 20: ns per event",
            ("policy", "sparse", "dense", "dense / sparse"),
            _rows(by_form),
        ),
    ]
    figures = {
        cell.key: timing.figures(cell.events)
        for part in (by_pool, by_dimension, by_form)
        for cell, timing in part
    }
    notes = [
        f"α = {ALPHA}. Growth is the last cost divided by the first. In `linucb-hybrid, m = 1` "
        "articles have the constant alone as feature.",
    ]
    return Section(tables, figures, notes)


def _replay(name: str, log: ts.EventLog) -> Callable[[], object]:
    return partial(ts.replay, ts.policy(name, alpha=ALPHA, seed=SEED), log)


def _pool_cells(events: int) -> list[Cell]:
    cells = []
    for size in POOL_SIZES:
        say(f"building a log with K = {size}")
        log = traffic.build(events, pool_size=size)
        cells += [Cell(name, f"K = {size}", _replay(name, log), events) for name in NAMES]
        part = log[:: max(1, size // 2)]
        scan = partial(reference.scan, ts.policy("linucb-disjoint", alpha=ALPHA, seed=SEED), part)
        cells.append(Cell("linucb-disjoint, full scan", f"K = {size}", scan, len(part)))
    return cells


def _dimension_cells(shrink: int) -> list[Cell]:
    cells = []
    for size, events in zip(DIMENSIONS, (1_000_000, 200_000, 60_000), strict=True):
        say(f"building a log with d = {size}")
        featured = traffic.build(events // shrink, dimension=size)
        bare = traffic.build(events // shrink, dimension=size, article_features=None)
        logs = dict.fromkeys(NAMES, featured) | {"linucb-hybrid, m = 1": bare}
        for row, log in logs.items():
            # Six article features and d = 136 make 816 shared ones: nobody's use of the model.
            if row != "linucb-hybrid" or size < 136:
                task = _replay(row.partition(",")[0], log)
                cells.append(Cell(_titled(row), f"d = {size}", task, len(log)))
    return cells


def _titled(row: str) -> str:
    return "linucb-hybrid, m = 6" if row == "linucb-hybrid" else row


def _sparse_cells(events: int) -> list[Cell]:
    say("building binary contexts")
    log = traffic.build(events, dimension=136, article_features=None, binary=True)
    forms = {"sparse": log, "dense": traffic.dense(log)}
    for name in NAMES:
        found = [reference.sums(_result(name, form)).tolist() for form in forms.values()]
        assert found[0] == found[1], f"{name}: sparse and dense contexts disagree: {found}"
    return [
        Cell(name, form, _replay(name, contexts), events)
        for name in NAMES
        for form, contexts in forms.items()
    ]


def _result(name: str, log: ts.EventLog) -> ts.Result:
    return ts.replay(ts.policy(name, alpha=ALPHA, seed=SEED), log)


Measured = list[tuple[Cell, Timing]]


def _measure(cells: list[Cell], repetitions: int) -> Measured:
    timings = interleaved({cell.key: cell.task for cell in cells}, repetitions)
    return [(cell, timings[cell.key]) for cell in cells]


def _rows(measured: Measured) -> list[tuple[str, ...]]:
    sizes = list(dict.fromkeys(cell.size for cell, _ in measured))
    costs: dict[str, dict[str, float]] = {}
    for cell, timing in measured:
        costs.setdefault(cell.row, {})[cell.size] = timing.median / cell.events * 1e9
    return [_row(name, sizes, found) for name, found in costs.items()]


def _row(name: str, sizes: list[str], found: Mapping[str, float]) -> tuple[str, ...]:
    numbers = [f"{found[size]:,.0f}" if size in found else "–" for size in sizes]
    whole = sizes[0] in found and sizes[-1] in found
    growth = f"{found[sizes[-1]] / found[sizes[0]]:.1f}×" if whole else "–"
    policy, comma, rest = name.partition(",")
    return (f"`{policy}`{comma}{rest}", *numbers, growth)
