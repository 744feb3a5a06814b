"""Several policies, each replayed from the start on the same events of one log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from topstory.evaluation.assignment import assign_parameters, check_policies, policy_names
from topstory.evaluation.exploration import (
    LEARNING_SHARE,
    ExplorationCost,
    check_learning_share,
    exploration_cost,
    total_bucket,
)
from topstory.evaluation.replays.delay import known_events
from topstory.evaluation.replays.logged import logged_bucket
from topstory.evaluation.replays.prepared_log import prepared
from topstory.evaluation.replays.replay import check_size, replay_unwarned
from topstory.evaluation.replays.retention import warn_if_unlikely
from topstory.evaluation.replays.run import BUCKETS, TOTAL
from topstory.evaluation.replays.truth import ExpectedPayoffs
from topstory.evaluation.replays.warm_start import WarmStart, start_of
from topstory.evaluation.result import Result
from topstory.evaluation.uncertainty.lift import Lift, lift
from topstory.evaluation.uncertainty.mean_bucket import MeanBucket
from topstory.evaluation.uncertainty.paths import check_repeats, default_repeats, too_few_paths
from topstory.evaluation.uncertainty.repeats import Estimate, mean_lift, mean_relative_ctr
from topstory.evaluation.uncertainty.simultaneous import Claim, simultaneous_lifts
from topstory.evaluation.uncertainty.winner import shrunk_relative_ctrs
from topstory.events import EventLog
from topstory.events.log import check_log
from topstory.html_table import html_table
from topstory.models.priors import Prior
from topstory.policies.entries import Setting
from topstory.policies.registry import REGISTRY, policy

if TYPE_CHECKING:
    from pyarrow import Table

BASELINE = "egreedy"  # what lifts are over, as in the paper's Table 1
LOGGED = "logged"  # what was shown, whoever chose it: what the site does today

Progress = Callable[[str, float, float], object]


@dataclass(frozen=True)
class Comparison:
    """The replays of several policies, in the order given."""

    log: EventLog = field(repr=False)  # the events that every policy was replayed on
    runs: Mapping[str, tuple[Result, ...]] = field(repr=False)  # by policy, one for each seed
    warm: WarmStart | None = field(repr=False)  # where offsets and priors come from; None: none
    learning_share: float = LEARNING_SHARE  # of visits that learn, in totals
    baseline: str = BASELINE  # what lifts are over: a policy, or LOGGED

    @property
    def results(self) -> dict[str, Result]:
        """The run of each policy with the first seed."""
        return {name: runs[0] for name, runs in self.runs.items()}

    @property
    def seeds(self) -> int:
        """How many runs each policy has."""
        return len(next(iter(self.runs.values())))

    def bucket(self, policy: str, bucket: str = "deployment") -> MeanBucket:
        """`deployment`, `learning` or `total` over all seeds of a policy."""
        return self._buckets[policy, bucket]

    @property
    def too_few_seeds(self) -> bool:
        """Whether paths that fail now and then would not be seen, so that intervals may be short.

        That is so with fewer than ten seeds on a log whose articles hardly change: what a path
        misses at first, it may miss to the end.
        """
        pool = float(self.log.pool_sizes[self.log.pool].mean())
        return too_few_paths(self.seeds, len(self.log.article_ids), pool)

    def lift(self, policy: str, bucket: str = "deployment") -> Lift | None:
        """How much more a policy earned than the baseline; None if that was not replayed too."""
        if self.baseline == LOGGED or (bucket == TOTAL and self.baseline in self.runs):
            ours = self.bucket(policy, bucket).runs
            return Lift(*mean_lift(ours, self.bucket(self.baseline, bucket).runs))
        if self.baseline not in self.runs:
            return None
        return lift(self.runs[policy], self.runs[self.baseline], bucket)

    def claims(self, bucket: str = "deployment") -> dict[str, Claim]:
        """The same lifts, for all policies at once: at most 5 % of comparisons claim a false one.

        Empty unless the baseline was replayed too.
        """
        return self._claims[bucket]

    def earned(self, policy: str, bucket: str = "deployment") -> Estimate:
        """A policy's relative CTR, with the luck of being the best or the worst taken off."""
        return self._shrunk[bucket][policy]

    def best(self, bucket: str = TOTAL) -> str:
        """The policy that earned most, with the luck of being the best taken off.

        By default over both buckets: of two that deploy alike it is the one that costs less while
        it learns. Policies that only a log can run, such as `omniscient`, do not count.
        """
        known = [name for name in self.runs if not REGISTRY[name].model.needs_log]
        if not known:
            raise ValueError(f"none of {', '.join(self.runs)} can be run on a site")
        values = {name: self.earned(name, bucket).value for name in known}
        return max(known, key=lambda name: values[name] if values[name] == values[name] else 0.0)

    def exploration(self, policy: str) -> ExplorationCost:
        """What exploring costs at this comparison's learning share."""
        return exploration_cost(
            self.bucket(policy, "deployment").runs,
            self.bucket(policy, "learning").runs,
            self.learning_share,
        )

    @cached_property
    def _buckets(self) -> dict[tuple[str, str], MeanBucket]:
        found = {
            (name, bucket): MeanBucket(tuple(getattr(run, bucket) for run in runs))
            for name, runs in self.runs.items()
            for bucket in BUCKETS
        }
        for name, runs in self.runs.items():
            found[name, TOTAL] = MeanBucket(
                tuple(total_bucket(r.deployment, r.learning, self.learning_share) for r in runs)
            )
        if self.baseline == LOGGED:
            today = logged_bucket(self.log, next(iter(self.results.values())).learning)
            shown = MeanBucket((today,) * self.seeds)
            found |= {(LOGGED, bucket): shown for bucket in (*BUCKETS, TOTAL)}
        return found

    @cached_property
    def _claims(self) -> dict[str, dict[str, Claim]]:
        base = self.baseline
        if base != LOGGED and base not in self.runs:
            return {bucket: {} for bucket in (*BUCKETS, TOTAL)}
        compared = dict.fromkeys([*self.runs, base])
        return {
            bucket: {
                name: claim
                for (name, _), claim in simultaneous_lifts(
                    runs, [(name, base) for name in runs if name != base]
                ).items()
            }
            for bucket in (*BUCKETS, TOTAL)
            for runs in [{name: self.bucket(name, bucket).runs for name in compared}]
        }

    @cached_property
    def _shrunk(self) -> dict[str, dict[str, Estimate]]:
        return {
            bucket: {name: mean_relative_ctr(self.bucket(name, bucket).runs) for name in self.runs}
            | shrunk_relative_ctrs(
                {
                    name: self.bucket(name, bucket).runs
                    for name in self.runs
                    if not REGISTRY[name].model.needs_log  # it cannot be deployed
                }
            )
            for bucket in (*BUCKETS, TOTAL)
        }

    def _repr_html_(self) -> str:
        table = self.table()
        columns = ["policy", "bucket", "trials", "ctr", "relative_ctr", "relative_low"]
        columns += ["relative_high", "lift", "lift_low", "lift_high"]
        rows = [[row[name] for name in columns] for row in table.to_pylist()]
        return html_table(f"Comparison on {len(self.log):,} events", columns, rows)

    def table(self) -> Table:
        """A row for each policy and bucket, as an Arrow table."""
        import pyarrow as pa

        rows = []
        for name, runs in self.runs.items():
            for bucket in BUCKETS:
                found, over = self.bucket(name, bucket), self.lift(name, bucket)
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
                        "seeds": len(runs),
                        "seconds": sum(run.seconds for run in runs),
                    }
                )
        return pa.Table.from_pylist(rows)


def compare(
    policies: str | Iterable[str],
    log: EventLog,
    *,
    warm_from: EventLog | None = None,
    prior: Prior | None = None,
    size: float = 1.0,
    seed: int = 0,
    repeats: int | None = None,
    learning_share: float = LEARNING_SHARE,
    progress: Progress | None = None,
    expected: ExpectedPayoffs | None = None,
    baseline: str | None = None,
    delay: float | str | timedelta = 0,
    batch: int = 1,
    **parameters: Setting | None,
) -> Comparison:
    """Replay several policies on one log, and put what they earned side by side.

    Args:
        policies: names, such as `["egreedy", "linucb-hybrid"]`; `"all"` stands for every one.
        log: what happened.
        warm_from: a log of random exploration that the offsets of warm policies, and the priors of
            `…-prior` policies, are fitted on. By default it is the first tenth of `log`, and every
            policy is replayed on the rest.
        prior: that of `…-prior` policies, if it is known.
        size: the share of retained events to learn from, as in `ts.replay`.
        seed: the first one, of the policies and of the replays.
        repeats: how many seeds to run and average: `seed`, `seed + 1`, …. One run is one learning
            path, and another one may earn much more or less; intervals tell only with two or more.
            By default 3, and up to 20 for logs of fewer than 500,000 events.
        learning_share: the share of visits that learn, in totals over both buckets.
        progress: called with (what is done, events done, events in all), now and then.
        expected: what the events pay on average, if a simulator knows it: then results have true
            values too.
        baseline: what lifts are over: a policy, which is replayed too; or `"logged"`, what the log
            shows, whoever chose it. By default ε-greedy, if it is among the policies.
        delay: how late payoffs come, as in `ts.replay`.
        batch: learn every so many events, as in `ts.replay`.
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
    assigned = assign_parameters(_with_baseline(policies, baseline), parameters)
    check_log(log)
    check_size(size)
    check_policies(assigned, seed)
    if repeats is not None:
        check_repeats(repeats)
    check_learning_share(learning_share)
    if not len(log):
        raise ValueError("the log has no events")
    warm = start_of(assigned, log, warm_from, prior)
    if warm is not None:
        log = warm.log
    known = known_events(log, delay, batch)
    repeats = default_repeats(len(log)) if repeats is None else repeats
    prepared(log, seed).warn(log)
    runs: dict[str, tuple[Result, ...]] = {}
    for name, own in assigned.items():
        learned = {} if warm is None else warm.argument(name)
        found: list[Result] = []
        for path in range(repeats):
            made = policy(name, seed=seed + path, **own, **learned)
            before = (len(runs) * repeats + path) * len(log)
            follow = _follower(progress, name, before, len(assigned) * repeats * len(log))
            if not found:
                # One event compiles the kernels, or loads them: the time measured is the replay's.
                replay_unwarned(made, log[:1], 1.0, 0)
            found.append(replay_unwarned(made, log, size, seed + path, follow, expected, known))
            warn_if_unlikely(name, found[-1].buckets, found[-1].uniformity)
        runs[name] = tuple(found)
    return Comparison(log, runs, warm, learning_share, baseline or BASELINE)


def _with_baseline(policies: str | Iterable[str], baseline: str | None) -> str | list[str]:
    """The policies, and the baseline first if it is one and not among them."""
    if baseline is None or baseline == LOGGED:
        return policies if isinstance(policies, str) else list(policies)
    if baseline not in REGISTRY:
        raise ValueError(
            f"baseline must be {LOGGED!r} or a policy: {', '.join(REGISTRY)}; got {baseline!r}"
        )
    names = policy_names([policies] if isinstance(policies, str) else policies)
    return names if baseline in names else [baseline, *names]


def _follower(
    progress: Progress | None, name: str, before: int, total: int
) -> Callable[[int, int], object] | None:
    """The progress of one replay as that of all of them."""
    if progress is None:
        return None
    progress(REGISTRY[name].paper, before, total)

    def follow(done: int, _: int) -> None:
        progress(REGISTRY[name].paper, before + done, total)

    return follow


def _ends(prefix: str, interval: tuple[float | None, float | None]) -> dict[str, float | None]:
    low, high = interval
    return {f"{prefix}low": low, f"{prefix}high": high}
