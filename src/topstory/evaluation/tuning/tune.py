"""Which parameter to run a policy with: a replay for each, on a log that is not judged on (§5.5.1).

What decides is the total that a site earns over both buckets, at its own split of traffic; the
paper chooses on the deployment bucket. All points are read together (`recommendation`), since the
highest one is mostly luck. Values that cannot be told apart go to the one that costs less while
learning. Where the recommended value is the last one tried, more are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from topstory.engines import Engine
from topstory.engines import engine as named_engine
from topstory.evaluation.exploration import LEARNING_SHARE, check_learning_share
from topstory.evaluation.replays.run import BUCKETS, TOTAL, Outcome, Run
from topstory.evaluation.replays.runs import cost, play_all
from topstory.evaluation.tuning.curves import Tuning, known_value, tuning_of
from topstory.evaluation.tuning.grids import (
    DEFAULT_RIDGES,
    grid_runs,
    has_ridge,
    next_value,
    parameter_name,
    payoff_scale,
    searched_grid,
)
from topstory.evaluation.uncertainty.paths import default_repeats
from topstory.events import EventLog
from topstory.events.log import check_log

MAX_WIDENINGS = 2  # how often values beyond the edge are tried

Progress = Callable[[float, float], object]


def tune(
    policy: str,
    log: EventLog,
    *,
    grid: Sequence[float] | None = None,
    ridges: Sequence[float] | None = None,
    sizes: Sequence[float] = (1.0,),
    on: str = TOTAL,
    learning_share: float = LEARNING_SHARE,
    repeats: int | None = None,
    seed: int = 0,
    engine: str | Engine = "local",
    progress: Progress | None = None,
    **given: Any,
) -> Tuning:
    """Replay a policy with every parameter of a grid, and say which to run it with.

    Args:
        policy: its name, such as `linucb-hybrid`.
        log: what happened.
        grid: values of ε or α. By default there are eight, or three if ridges are searched too,
            and more beyond the edge if the best one is there; of α and the like, on the scale of
            the log's payoffs.
        ridges: values of `ridge` to search as well, for a linear model: by default 1, 10 and 100,
            unless `ridge` is given.
        sizes: the shares of retained events to learn from; each is tuned on its own.
        on: what decides: `total`, what a site earns over both buckets, or the CTR of one bucket,
            `deployment` (as in the paper) or `learning`.
        learning_share: the share of visits that learn, in the total.
        repeats: how many seeds to average: `seed`, `seed + 1`, …; by default 3, and up to 20 for
            logs of fewer than 500,000 events.
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
    6
    """
    if on not in (*BUCKETS, TOTAL):
        raise ValueError(f"on must be 'total', 'deployment' or 'learning', got {on!r}")
    check_log(log)
    check_learning_share(learning_share)
    numbers = {key: value for key, value in given.items() if isinstance(value, int | float)}
    others = {key: value for key, value in given.items() if key not in numbers}
    parameter = parameter_name(policy)
    if ridges is None and has_ridge(policy) and "ridge" not in given and grid is None:
        ridges, chosen_ridges = DEFAULT_RIDGES, False
    else:
        chosen_ridges = True
    scale = payoff_scale(log.payoff)
    tried = {
        parameter: tuple(searched_grid(policy, not chosen_ridges, scale) if grid is None else grid)
    }
    if ridges is not None:
        tried["ridge"] = tuple(ridges)
    may_widen = [*([parameter] if grid is None else []), *([] if chosen_ridges else ["ridge"])]
    outcomes: dict[Run, Outcome] = {}
    runs: list[Run] = []
    done = 0.0
    widened: tuple[str, ...] = ()
    for rounds in range(MAX_WIDENINGS + 1):
        runs = grid_runs(
            *(policy, tried[parameter], tried.get("ridge"), sizes),
            *(default_repeats(len(log)) if repeats is None else repeats, seed, numbers),
        )
        total = sum(cost(run) for run in runs)
        missing = [run for run in runs if run not in outcomes]
        for outcome in play_all(missing, log, named_engine(engine), others):
            outcomes[outcome.run] = outcome
            done += cost(outcome.run)
            if progress is not None:
                progress(done, total)
        found = [outcomes[run] for run in runs]
        tuning = tuning_of(policy, on, found, learning_share, widened, scale)
        wider = _widened(tuning, tried, may_widen, scale) if rounds < MAX_WIDENINGS else {}
        if not wider:
            break
        tried |= wider
        widened = tuple(dict.fromkeys((*widened, *wider)))
    return tuning


def _widened(
    tuning: Tuning, tried: Mapping[str, tuple[float, ...]], names: Sequence[str], scale: float
) -> dict[str, tuple[float, ...]]:
    """More values for the parameters whose best value is at the edge of what was tried."""
    found: dict[str, tuple[float, ...]] = {}
    for size in tuning.sizes:
        if not known_value(getattr(tuning.best(size), tuning.on).value) > float("-inf"):
            continue
        for name in set(names) & set(tuning.at_edge(size)):
            values = found.get(name, tried[name])
            lower = tuning.best(size).parameters[name] == min(values)
            if lower or tuning.best(size).parameters[name] == max(values):
                beyond = next_value(tuning.policy, name, values, lower, scale)
                if beyond is not None:
                    found[name] = tuple(sorted((*values, beyond)))
    return found
