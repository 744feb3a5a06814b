"""Which parameter is best for a policy: a replay for each, on a log that is not judged on (§5.5.1).

The paper chooses on the deployment bucket, separately for every data size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from topstory.engines import Engine
from topstory.engines import engine as named_engine
from topstory.evaluation.repeats import Estimate, mean_relative_ctr
from topstory.evaluation.run import BUCKETS, Outcome, Run
from topstory.evaluation.runs import cost, play_all
from topstory.events import EventLog
from topstory.policies import REGISTRY
from topstory.policies.entries import Parameter
from topstory.policies.policy import check_seed

if TYPE_CHECKING:
    from pyarrow import Table

SIZES = (1.0, 0.3, 0.2, 0.1, 0.05, 0.01)  # the paper's
RIDGES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
# At this size and below, the luck of the learning path is larger than that of clicks.
MAX_SPARSE_SIZE, SPARSE_REPEATS = 0.05, 3

Progress = Callable[[float, float], object]


@dataclass(frozen=True)
class Point:
    """One point of a tuning curve: a policy's relative CTR at one size with one parameter."""

    policy: str
    size: float
    parameters: Mapping[str, float]
    deployment: Estimate
    learning: Estimate
    outcomes: tuple[Outcome, ...] = field(repr=False)  # one for each seed

    @property
    def parameter(self) -> float:
        """ε or α."""
        return self.parameters[parameter_name(self.policy)]


@dataclass(frozen=True)
class Tuning:
    """A policy's tuning curves, one for every size, and the best point of each."""

    policy: str
    on: str
    points: tuple[Point, ...]

    @property
    def sizes(self) -> tuple[float, ...]:
        """In the order given."""
        return tuple(dict.fromkeys(point.size for point in self.points))

    def curve(self, size: float = 1.0) -> tuple[Point, ...]:
        """The points of one size."""
        found = tuple(point for point in self.points if point.size == size)
        if not found:
            known = ", ".join(f"{each:g}" for each in self.sizes)
            raise ValueError(f"size {size!r} was not tuned; there are {known}")
        return found

    def best(self, size: float = 1.0) -> Point:
        """The point with the highest relative CTR in the bucket that was tuned on."""
        # Without a click no point has a CTR: any of them is as good.
        return max(self.curve(size), key=lambda point: _known(getattr(point, self.on).value))

    def table(self) -> Table:
        """A row for every point and bucket, as an Arrow table."""
        import pyarrow as pa

        rows = [
            {
                "policy": point.policy,
                "size": point.size,
                **point.parameters,
                "bucket": bucket,
                "relative_ctr": estimate.value,
                "low": estimate.interval.low,
                "high": estimate.interval.high,
                "repeats": len(point.outcomes),
                "seconds": sum(outcome.seconds for outcome in point.outcomes),
                "chosen": point is self.best(point.size),
            }
            for point in self.points
            for bucket in BUCKETS
            for estimate in [getattr(point, bucket)]
        ]
        return pa.Table.from_pylist(rows)


def tune(
    policy: str,
    log: EventLog,
    *,
    grid: Sequence[float] | None = None,
    ridges: Sequence[float] | None = None,
    sizes: Sequence[float] = (1.0,),
    on: str = "deployment",
    repeats: int | None = None,
    seed: int = 0,
    engine: str | Engine = "local",
    progress: Progress | None = None,
    **given: Any,
) -> Tuning:
    """Replay a policy with every parameter of a grid, and say which is best.

    Args:
        policy: its name, such as `linucb-hybrid`.
        log: what happened.
        grid: values of ε or α.
        ridges: values of `ridge` to search as well, for a linear model.
        sizes: the shares of retained events to learn from; each is tuned on its own.
        on: the bucket whose CTR decides, `deployment` or `learning`.
        repeats: how many seeds to average: `seed`, `seed + 1`, …; by default 1, and 3 for sizes of
            5 % and below.
        seed: the first of them.
        engine: `serial`, `local` (all cores), `ray`, or an engine.
        progress: called with (work done, work in all), now and then.
        given: what else the policy takes: `offset`, `ridge`, `shared_ridge`, …

    >>> import numpy as np
    >>> import topstory as ts
    >>> random = np.random.default_rng(0)
    >>> shown = random.choice(["rain", "sun"], 2000)
    >>> clicked = random.random(2000) < np.where(shown == "sun", 0.2, 0.1)
    >>> log = ts.EventLog.from_arrays(
    ...     np.ones((2000, 1)), [["rain", "sun"]], np.zeros(2000, int), shown, clicked
    ... )
    >>> tuning = ts.tune("egreedy", log, grid=[0.1, 0.9], on="learning")
    >>> tuning.best().parameters
    {'epsilon': 0.1}
    >>> tuning.table().num_rows
    4
    """
    if on not in BUCKETS:
        raise ValueError(f"on must be 'deployment' or 'learning', got {on!r}")
    numbers = {key: value for key, value in given.items() if isinstance(value, int | float)}
    others = {key: value for key, value in given.items() if key not in numbers}
    runs = grid_runs(policy, grid, ridges, sizes, repeats, seed, numbers)
    total, done = sum(cost(run) for run in runs), 0.0
    outcomes: dict[Run, Outcome] = {}
    for outcome in play_all(runs, log, named_engine(engine), others):
        outcomes[outcome.run] = outcome
        done += cost(outcome.run)
        if progress is not None:
            progress(done, total)
    return tuning_of(policy, on, [outcomes[run] for run in runs])


def grid_runs(
    policy: str,
    grid: Sequence[float] | None = None,
    ridges: Sequence[float] | None = None,
    sizes: Sequence[float] = SIZES,
    repeats: int | None = None,
    seed: int = 0,
    fixed: Mapping[str, float] | None = None,
) -> list[Run]:
    """The runs that tune a policy: every size, parameter and seed.

    >>> [run.seed for run in grid_runs("ucb", [0.1], sizes=[1.0, 0.01])]
    [0, 0, 1, 2]
    """
    name = parameter_name(policy)
    check_seed(seed)
    if repeats is not None and repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats!r}")
    if ridges is not None and "ridge" not in REGISTRY[policy].model_parameters:
        raise ValueError(f"policy {policy!r} has no ridge to search")
    for size in sizes:
        if not 0 < size <= 1:
            raise ValueError(f"a size is above 0 and at most 1, got {size!r}")
    values = default_grid(policy) if grid is None else tuple(grid)
    searched: tuple[float | None, ...] = (None,) if ridges is None else tuple(ridges)
    if not (values and sizes and searched):
        raise ValueError("a grid needs at least one value, and tuning at least one size")
    return [
        Run.of(
            policy,
            {**(fixed or {}), name: float(value)} | ({} if ridge is None else {"ridge": ridge}),
            float(size),
            seed + repeat,
        )
        for size in sizes
        for ridge in searched
        for value in values
        for repeat in range(repeats_at(size, repeats))
    ]


def tuning_of(policy: str, on: str, outcomes: Sequence[Outcome]) -> Tuning:
    """The curves that outcomes make: those of one size and parameter are one point."""
    cells: dict[tuple[float, tuple[tuple[str, float], ...]], list[Outcome]] = {}
    for outcome in outcomes:
        cells.setdefault((outcome.run.size, outcome.run.parameters), []).append(outcome)
    points = [
        Point(
            policy=policy,
            size=size,
            parameters=dict(parameters),
            deployment=mean_relative_ctr([each.bucket("deployment") for each in found]),
            learning=mean_relative_ctr([each.bucket("learning") for each in found]),
            outcomes=tuple(found),
        )
        for (size, parameters), found in cells.items()
    ]
    return Tuning(policy, on, tuple(points))


def parameter_name(policy: str) -> str:
    """`epsilon` or `alpha`: the one parameter that the paper tunes.

    >>> parameter_name("ucb-seg"), parameter_name("egreedy")
    ('alpha', 'epsilon')
    """
    return _tuned(policy).name


def default_grid(policy: str) -> tuple[float, ...]:
    """The values of ε or α that are tried."""
    return _tuned(policy).grid


def _tuned(policy: str) -> Parameter:
    entry = REGISTRY.get(policy)
    if entry is None or entry.tuned is None:
        tunable = ", ".join(key for key, each in REGISTRY.items() if each.tuned)
        raise ValueError(f"no policy to tune is called {policy!r}; there are {tunable}")
    return entry.tuned


def repeats_at(size: float, repeats: int | None) -> int:
    """How many seeds a size is run with.

    >>> repeats_at(0.1, None), repeats_at(0.05, None), repeats_at(0.05, 5)
    (1, 3, 5)
    """
    return (SPARSE_REPEATS if size <= MAX_SPARSE_SIZE else 1) if repeats is None else repeats


def _known(value: float) -> float:
    return value if value == value else float("-inf")
