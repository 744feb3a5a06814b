"""Algorithm 3: what a policy would have earned, from a log of randomly shown articles."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from topstory.evaluation.replays.delay import NOTHING_LATE, known_events
from topstory.evaluation.replays.prepared_log import PreparedLog, chunks, prepared
from topstory.evaluation.replays.python_replay import replay_in_python
from topstory.evaluation.replays.retention import warn_if_unlikely
from topstory.evaluation.replays.truth import ExpectedPayoffs, TrueValue
from topstory.evaluation.result import ArticleResult, Bucket, Result
from topstory.events import EventLog
from topstory.events.log import check_log
from topstory.explorers.explorer import WORK
from topstory.kernels.buckets import DEPLOYMENT, LEARNING
from topstory.kernels.compilation import Counters, Slots
from topstory.kernels.scans.replay import (
    KINDS,
    MANY_POOLS,
    PAYOFF,
    TRIALS,
    Memory,
    Pools,
    ReplaySums,
    Rule,
)
from topstory.kernels.scans.replay import (
    replay as replay_kernel,
)
from topstory.models.contexts import scoring_rows
from topstory.models.input_range import NotFiniteError
from topstory.policies import Policy
from topstory.policies.half_life import even_parts, ticks_of
from topstory.policies.log_learner import payoff_range
from topstory.policies.policy import check_seed

Progress = Callable[[int, int], object]


class Chooser(Protocol):
    """A policy of one's own. With a `greedy` like `choose`, it has a deployment bucket too."""

    def choose(self, user: Any, pool: Any) -> Any:
        """The article to show: its id, or anything with it as `.article`."""

    def learn(self, user: Any, article: Any, payoff: Any) -> Any:
        """Take in a trial."""


def replay(
    policy: Policy | Chooser,
    log: EventLog,
    size: float = 1.0,
    seed: int = 0,
    progress: Progress | None = None,
    delay: float | str | timedelta = 0,
    batch: int = 1,
) -> Result:
    """Run a policy over a log (Li et al. 2010, Algorithm 3).

    For each event the policy chooses from the pool; where it chooses what was shown, the event is
    retained: its payoff counts, and the policy learns from it. All else is ignored. The deployment
    bucket is measured along the way: the greedy choice of the current estimates, never learned
    from. A log with recorded propensities is made uniform by rejection sampling first.

    Time runs K times faster for the policy than it would live, since it sees 1 event in K.

    Args:
        policy: a `Policy`, or any object with `choose(user, pool)` and `learn(user, article,
            payoff)`. It is not changed; `result.policy` is the trained one.
        log: what happened.
        size: the share of retained events to learn from, the same events for every policy (the
            paper's data sizes). All of them evaluate.
        seed: decides which events those are, and which are rejected.
        progress: called with (events done, events in all), now and then.
        delay: how late payoffs come: seconds, or text such as `"10min"`. A retained event is
            learned from at the first event that is later by this, by the log's own clock.
        batch: learn every so many events of the log, from all that is known by then. What is not
            learned from when the log ends never is.

    Warns:
        NotUniformWarning: the articles were not shown uniformly at random, so the result is biased.
        RetentionWarning: far more or fewer events were retained than 1 in K.

    Raises:
        NotFiniteError: a score was not a number.
        FeatureModelMismatch: the policy learned contexts of another feature model than the log's.

    >>> import topstory as ts
    >>> random = np.random.default_rng(0)
    >>> shown = random.choice(["rain", "sun"], 1000)
    >>> clicked = random.random(1000) < np.where(shown == "sun", 0.2, 0.1)
    >>> log = ts.EventLog.from_arrays(
    ...     np.ones((1000, 1)), [["rain", "sun"]], np.zeros(1000, int), shown, clicked
    ... )
    >>> result = ts.replay(ts.policy("ucb", alpha=0.5), log)
    >>> result.learning.trials, result.learning.ctr > result.random_ctr
    (526, True)
    """
    check_log(log)
    if not (hasattr(policy, "choose") and hasattr(policy, "learn")):
        hint = f": ts.policy({policy!r}) makes it" if isinstance(policy, str) else ""
        raise TypeError(
            f"policy must be a Policy, or an object with choose(user, pool) and learn(user, "
            f"article, payoff); got {policy!r}{hint}"
        )
    check_size(size)
    check_seed(seed)
    known = known_events(log, delay, batch)
    prepared(log, seed).warn(log)
    result = replay_unwarned(policy, log, size, seed, progress, known=known)
    warn_if_unlikely(policy, result.buckets, result.uniformity)
    return result


def check_size(size: float) -> None:
    """Refuse what is not a share of the data."""
    if not 0 <= size <= 1:
        raise ValueError(f"size must be between 0 and 1: the share to learn from, got {size!r}")


def replay_unwarned(
    policy: Policy | Chooser,
    log: EventLog,
    size: float,
    seed: int,
    progress: Progress | None = None,
    expected: ExpectedPayoffs | None = None,
    known: Counters = NOTHING_LATE,
) -> Result:
    """The same of a log whose warning, if any, was given: for many replays of one log.

    `expected` is what the shown article of each event pays on average, which only a simulated
    world knows. The policy learns from what was paid; `Result.true_relative_ctr` counts this.
    `known` says how many events before each one may have been learned from; by default all.
    """
    logged = prepared(log, seed)
    truth = None if expected is None else TrueValue(expected, log)
    began = perf_counter()
    if isinstance(policy, Policy):
        logged.check_range()
        policy.model.check_payoffs(*payoff_range(log))
    if isinstance(policy, Policy) and policy.model.compiles:
        trained, sums, slots = _replay_compiled(
            policy, log, logged, size, seed, progress, truth, known
        )
    elif truth is not None:
        raise TypeError("true values are counted only for policies that compile")
    else:
        trained, sums, slots = replay_in_python(policy, log, logged, size, seed, progress, known)
    seconds = perf_counter() - began

    by_block, visitors = logged.folded(sums.blocks)

    def bucket(which: int) -> Bucket:
        return Bucket(
            *(by_block[which], logged.by_block, logged.blocks, logged.binary),
            None if visitors is None else visitors.at(which),
            logged.visitors,
        )

    return Result(
        learning=bucket(LEARNING),
        deployment=bucket(DEPLOYMENT),
        events=logged.events,
        lost=1 - logged.events / len(log) if len(log) else 0.0,
        by_article=_by_article(log.article_ids, sums.articles[:, slots], logged),
        policy=trained,
        uniformity=logged.uniformity,
        size=size,
        seed=seed,
        seconds=seconds,
        true_relative_ctr=None if truth is None else truth.relative_ctr(),
        rejection=logged.rejection,
    )


def _replay_compiled(
    policy: Policy,
    log: EventLog,
    logged: PreparedLog,
    size: float,
    seed: int,
    progress: Progress | None,
    truth: TrueValue | None,
    known: Counters,
) -> tuple[Policy, ReplaySums, Slots]:
    trained = policy.copy()
    trained.use_contexts_of(log)
    model = trained.model
    slots = model.add_all(log.articles)
    model.see(log.dimension, log.event_features)
    if model.folds:
        model.use_log_sums(slots, *logged.by_fold(log, model.folds))
    members = slots[log.pool_members] if len(slots) else log.pool_members
    pools = Pools(log.pool_offsets, members, model.roster.keys)
    first = members[log.pool_offsets[:-1]]
    kinds = KINDS if len(first) <= MANY_POOLS else 1
    memory = Memory(
        order=np.stack([members, members]),
        champion=np.repeat(first, kinds * 2).reshape(len(first), kinds, 2),
        current=np.array([-1]),
        unusable=np.array([-1, -1]),
        trials=np.array([trained.trials]),
        work=np.empty(WORK * int(np.diff(log.pool_offsets).max(initial=1))),
        known=known,
        waiting=np.zeros(len(known), np.int32),
        cursor=np.array([0]),
    )
    sums = ReplaySums(np.zeros((2, logged.clusters, 4)), np.zeros((2, len(model.roster.ids), 2)))
    rule = Rule(
        explorer=trained.explorer.rule,
        seed=np.uint64(trained.seed),
        first=trained.decisions,
        size=float(size),
        log_seed=np.uint64(seed),
    )
    traffic = logged.traffic._replace(contexts=scoring_rows(model, log, log.users, members))
    room = model.room(log.dimension)
    ticks = None if trained.half_life is None else ticks_of(log, trained.half_life)
    for start, stop in chunks(len(log)):
        segments = model.segments(log.users, start, stop)
        blocks = logged.cluster_numbers(log, start, stop)
        counted = sums if truth is None else truth.by_event(sums, stop - start)
        cut = blocks if truth is None else np.arange(stop - start, dtype=np.int32)
        rest = (memory, counted)
        parts = [(0, stop - start)] if ticks is None else even_parts(ticks[start:stop])
        for begin, end in parts:
            if ticks is not None and trained.tick != ticks[start + begin]:
                trained.advance_to(int(ticks[start + begin]))
                room = model.room(log.dimension)
                memory.current[0] = -1
            done = begin
            while True:
                later = (start + done, traffic, pools, segments[done:], cut[done:end])
                done += replay_kernel(*later, model.kernel_state, rule, room, *rest)
                _check_scores(memory, trained)
                if done == end:
                    break
                model.renew()  # the next trial needs another prior, or form of the state
                room = model.room(log.dimension)
                memory.current[0] = -1
        if truth is not None:
            truth.add(counted, start, blocks, sums)
        if progress is not None:
            progress(stop, len(log))
    trained.decisions += len(log)
    trained.trials = int(memory.trials[0])
    return trained, sums, slots


def _check_scores(memory: Memory, policy: Policy) -> None:
    """Raise NotFiniteError if a score was not a number."""
    decision, slot = memory.unusable
    if decision >= 0:
        where = f" at event {decision - policy.decisions}"
        raise NotFiniteError(policy, policy.model.roster.ids[slot], where)


def _by_article(
    ids: tuple[str, ...], sums: npt.NDArray[np.float64], logged: PreparedLog
) -> dict[str, ArticleResult]:
    learned, deployed, base = sums[LEARNING], sums[DEPLOYMENT], logged.by_article
    return {
        article: ArticleResult(
            shown=round(learned[i, TRIALS]),
            payoff=float(learned[i, PAYOFF]),
            deployed=round(deployed[i, TRIALS]),
            deployed_payoff=float(deployed[i, PAYOFF]),
            base_shown=round(base[i, TRIALS]),
            base_payoff=float(base[i, PAYOFF]),
        )
        for i, article in enumerate(ids)
    }
