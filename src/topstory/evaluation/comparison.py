"""Several policies, each replayed from the start on the same events of one log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from topstory.evaluation.prepared_log import prepared
from topstory.evaluation.replay import check_size, replay_unwarned
from topstory.evaluation.result import Lift, Result, lift
from topstory.evaluation.retention import warn_if_unlikely
from topstory.evaluation.run import BUCKETS
from topstory.evaluation.warm_start import WarmStart, needs_offset, warm_start
from topstory.events import EventLog
from topstory.policies.registry import REGISTRY, policy

if TYPE_CHECKING:
    from pyarrow import Table

BASELINE = "egreedy"  # what lifts are over, as in the paper's Table 1
ALL = "all"  # stands for every registered policy

Parameters = dict[str, float]
Progress = Callable[[str, float, float], object]


@dataclass(frozen=True)
class Comparison:
    """The replays of several policies, in the order given."""

    log: EventLog = field(repr=False)  # the events that every policy was replayed on
    results: Mapping[str, Result] = field(repr=False)  # by policy
    warm: WarmStart | None = field(repr=False)  # where the offsets come from; None: no warm policy

    def lift(self, policy: str, bucket: str = "deployment") -> Lift | None:
        """How much more a policy earned than ε-greedy; None if that was not replayed too."""
        base = self.results.get(BASELINE)
        return None if base is None else lift(self.results[policy], base, bucket)

    def table(self) -> Table:
        """A row for each policy and bucket, as an Arrow table."""
        import pyarrow as pa

        rows = []
        for name, result in self.results.items():
            for bucket in BUCKETS:
                found, over = getattr(result, bucket), self.lift(name, bucket)
                rows.append(
                    {
                        "policy": name,
                        "paper": REGISTRY[name].paper,
                        "bucket": bucket,
                        "trials": found.trials,
                        "payoff": found.payoff,
                        "ctr": found.ctr,
                        **_ends("", found.interval),
                        "relative_ctr": found.relative_ctr,
                        **_ends("relative_", found.relative_interval),
                        "weighted_ctr": found.weighted_ctr,
                        **_ends("weighted_", found.weighted_interval),
                        "weighted_relative_ctr": found.weighted_relative_ctr,
                        "lift": None if over is None else over.value,
                        **_ends("lift_", (None, None) if over is None else over.interval),
                        "seconds": result.seconds,
                    }
                )
        return pa.Table.from_pylist(rows)


def compare(
    policies: str | Iterable[str],
    log: EventLog,
    *,
    warm_from: EventLog | None = None,
    size: float = 1.0,
    seed: int = 0,
    progress: Progress | None = None,
    **parameters: float | None,
) -> Comparison:
    """Replay several policies on one log, and put what they earned side by side.

    Args:
        policies: names, such as `["egreedy", "linucb-hybrid"]`; `"all"` stands for every one.
        log: what happened.
        warm_from: a log of random exploration that the offsets of warm policies are fitted on. By
            default it is the first tenth of `log`, and every policy is replayed on the rest.
        size: the share of retained events to learn from, as in `ts.replay`.
        seed: of the policies and of the replays.
        progress: called with (what is done, events done, events in all), now and then.
        parameters: `alpha`, `epsilon`, `ridge`, …; each policy gets those that it takes.

    Warns:
        NotUniformWarning: once, if the log's articles were not shown uniformly at random.

    >>> import numpy as np
    >>> import topstory as ts
    >>> random = np.random.default_rng(0)
    >>> shown = random.choice(["rain", "sun"], 2000)
    >>> clicked = random.random(2000) < np.where(shown == "sun", 0.2, 0.1)
    >>> log = ts.EventLog.from_arrays(
    ...     np.ones((2000, 1)), [["rain", "sun"]], np.zeros(2000, int), shown, clicked
    ... )
    >>> found = ts.compare(["random", "egreedy", "ucb"], log, epsilon=0.5, alpha=0.1)
    >>> found.lift("ucb", "learning").value > 0
    True
    >>> found.table().column_names[:4]
    ['policy', 'paper', 'bucket', 'trials']
    """
    assigned = assign_parameters(policies, parameters)
    check_size(size)
    check_policies(assigned, seed)
    if not len(log):
        raise ValueError("the log has no events")
    warm = warm_start(log, warm_from) if any(map(needs_offset, assigned)) else None
    if warm is not None:
        log = warm.log
    prepared(log, seed).warn()
    results: dict[str, Result] = {}
    for name, own in assigned.items():
        made = policy(name, seed=seed, **own, **_offset(name, {} if warm is None else warm.offset))
        follow = _follower(progress, name, len(results) * len(log), len(assigned) * len(log))
        # One event compiles the kernels, or loads them: the time measured is the replay's own.
        replay_unwarned(made, log[:1], 1.0, 0)
        results[name] = replay_unwarned(made, log, size, seed, follow)
        warn_if_unlikely(name, results[name].buckets, results[name].uniformity)
    return Comparison(log, results, warm)


def policy_names(policies: str | Iterable[str]) -> list[str]:
    """Each policy once, with `all` spelled out.

    >>> policy_names(["ucb", "ucb"]), policy_names("all") == list(REGISTRY)
    (['ucb'], True)
    """
    given = [policies] if isinstance(policies, str) else list(policies)
    names = [name for each in given for name in (REGISTRY if each == ALL else (each,))]
    return list(dict.fromkeys(names))


def assign_parameters(
    policies: str | Iterable[str], parameters: Mapping[str, float | None]
) -> dict[str, Parameters]:
    """Each policy, with those of the parameters that it takes; None counts as not given.

    >>> assign_parameters(["ucb", "egreedy"], {"alpha": 0.3, "epsilon": 0.1, "ridge": None})
    {'ucb': {'alpha': 0.3}, 'egreedy': {'epsilon': 0.1}}
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    assigned: dict[str, Parameters] = {}
    for name in policy_names(policies):
        if name not in REGISTRY:
            raise ValueError(f"no policy is called {name!r}; there are {', '.join(REGISTRY)}")
        assigned[name] = {key: value for key, value in given.items() if key in _taken(name)}
    if not assigned:
        raise ValueError("a comparison needs at least one policy")
    if unused := unused_parameters(assigned, given):
        raise ValueError(f"{unused[0]} does not apply to {', '.join(assigned)}")
    return assigned


def unused_parameters(policies: Iterable[str], parameters: Iterable[str]) -> list[str]:
    """The names of those parameters that none of the policies takes."""
    taken = {key for name in policies for key in _taken(name)}
    return [key for key in parameters if key not in taken]


def _taken(name: str) -> tuple[str, ...]:
    return (*REGISTRY[name].model_parameters, *REGISTRY[name].explorer_parameters)


def check_policies(assigned: Mapping[str, Parameters], seed: int) -> None:
    """Refuse a bad value of a parameter before any work is done."""
    for name, own in assigned.items():
        policy(name, seed=seed, **own, **_offset(name, {}))


def _offset(name: str, offset: Mapping[str, Any]) -> dict[str, Any]:
    return {"offset": offset} if needs_offset(name) else {}


def _follower(
    progress: Progress | None, name: str, before: int, total: int
) -> Callable[[int, int], object] | None:
    """The progress of one replay as that of all of them."""
    if progress is None:
        return None
    progress(f"{REGISTRY[name].paper}: compiling", before, total)

    def follow(done: int, _: int) -> None:
        progress(REGISTRY[name].paper, before + done, total)

    return follow


def _ends(prefix: str, interval: tuple[float | None, float | None]) -> dict[str, float | None]:
    low, high = interval
    return {f"{prefix}low": low, f"{prefix}high": high}
