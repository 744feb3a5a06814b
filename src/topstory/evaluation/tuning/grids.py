"""Which values a tuning tries, and the runs that try them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from topstory.evaluation.replays.run import Run
from topstory.evaluation.uncertainty.paths import check_repeats
from topstory.policies import REGISTRY
from topstory.policies.entries import Parameter
from topstory.policies.policy import check_seed

SIZES = (1.0, 0.3, 0.2, 0.1, 0.05, 0.01)  # the paper's
RIDGES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
# Searched with every value of ε or α, of which there are then fewer: curves are smooth.
DEFAULT_RIDGES = (1.0, 10.0, 100.0)
RIDGE_STEP = 10.0
# At this size and below, the luck of the learning path is larger than that of clicks.
MAX_SPARSE_SIZE, SPARSE_REPEATS = 0.05, 3


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
    if repeats is not None:
        check_repeats(repeats)
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


def parameter_name(policy: str) -> str:
    """`epsilon` or `alpha`: the one parameter that the paper tunes.

    >>> parameter_name("ucb-seg"), parameter_name("egreedy")
    ('alpha', 'epsilon')
    """
    return _tuned(policy).name


def default_grid(policy: str, scale: float = 1.0) -> tuple[float, ...]:
    """The values of ε or α that are tried, where payoffs are `scale` times as large as clicks.

    >>> default_grid("ucb", 20.0)[:3], default_grid("egreedy", 20.0)[:3]
    ((0.6, 1.2, 2.0), (0.01, 0.03, 0.06))
    """
    tuned = _tuned(policy)
    factor = scale**tuned.scales
    return tuned.grid if factor == 1 else tuple(float(f"{v * factor:.2g}") for v in tuned.grid)


def payoff_scale(payoff: npt.NDArray[np.float32]) -> float:
    """How large payoffs are beside clicks, by their distance from the median; 1 for clicks.

    The mean square of the distance over its mean: a few large payoffs do not decide, and where
    most payoffs are 0, it is the size of the others.

    >>> payoff_scale(np.float32([0, 0, 1, 0])), payoff_scale(np.float32([0, 0, 20, 0]))
    (1.0, 20.0)
    """
    if not len(payoff):
        return 1.0
    apart = np.abs(payoff.astype(np.float64) - float(np.median(payoff)))
    mean = float(apart.mean())
    return float((apart**2).mean()) / mean if mean else 1.0


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


def has_ridge(policy: str) -> bool:
    """Whether a policy has a ridge to search, the weight of its prior; a learned one knows it.

    >>> has_ridge("linucb-disjoint"), has_ridge("ucb")
    (True, False)
    """
    entry = REGISTRY[policy]
    return "ridge" in entry.model_parameters and not entry.from_prior


def searched_grid(policy: str, with_ridges: bool, scale: float = 1.0) -> tuple[float, ...]:
    """The values of ε or α that are tried by default.

    >>> searched_grid("linucb-disjoint", True)
    (0.1, 0.4, 1.0)
    """
    grid = default_grid(policy, scale)
    return grid[2::2] if with_ridges else grid


def next_value(
    policy: str, name: str, tried: Sequence[float], lower: bool, scale: float = 1.0
) -> float | None:
    """A value beyond all that were tried; None if there is none.

    >>> next_value("ucb", "alpha", [0.1, 0.4, 1.0], lower=True)
    0.06
    >>> next_value("ucb", "alpha", [0.4, 1.5], lower=False)
    3.0
    >>> next_value("egreedy", "epsilon", [0.5, 1.0], lower=False)
    """
    if name == "ridge":
        return min(tried) / RIDGE_STEP if lower else max(tried) * RIDGE_STEP
    grid = default_grid(policy, scale)
    if lower:
        return max((v for v in grid if v < min(tried)), default=min(tried) / 2)
    beyond = min((v for v in grid if v > max(tried)), default=2 * max(tried))
    if name == "epsilon":  # a share
        return min(beyond, 1.0) if max(tried) < 1 else None
    return beyond
