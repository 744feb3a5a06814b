"""Algorithm 3 over a log's columns: which events a policy retains, and what they paid.

Most events are rejected, so the scan tries to prove that first: it scores the shown article, then
the champion that last won for such users in this pool, then the others, last winners first. The
first that beats the shown article ends the event. What is chosen never depends on this order.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.buckets import DEPLOYMENT, LEARNING
from topstory.kernels.compilation import (
    Counters,
    Floats,
    Slots,
    compiled,
    inlined,
)
from topstory.kernels.contexts import leaning, load, rolled
from topstory.kernels.event_features import Context
from topstory.kernels.explorers.explorer import explored, raised, stages
from topstory.kernels.models.model import comparable, enter, estimate, paid, shown, takes
from topstory.kernels.randomness import KEEP, LEARN, priority, stream, unit

# Places in a bucket's row of sums: over its trials, also weighted by the pool's size K.
TRIALS, PAYOFF, WEIGHT, WEIGHTED_PAYOFF = 0, 1, 2, 3

# Champions are remembered for each pool and this many kinds of users, by their leaning: a power
# of 2; where pools are very many, for all users together.
KINDS, MANY_POOLS = 8, 100_000


class LogColumns(NamedTuple):
    """The log's columns."""

    contexts: Any  # (n, d) floats, or SparseRows
    pool: Slots  # (n,)
    position: NDArray[np.uint16] | NDArray[np.int32]  # (n,) of the shown article in its pool
    payoff: NDArray[np.float32]  # (n,)
    propensity: NDArray[np.float32]  # (n,), or (0,) for a uniform log
    least: float  # the rate of rejection: the smallest K·propensity, outliers aside


class Pools(NamedTuple):
    """Pool p holds the articles in slots[offsets[p]:offsets[p + 1]]."""

    offsets: Counters  # (pools + 1,)
    slots: Slots
    keys: NDArray[np.uint64]  # (articles,) what an article's random priorities depend on


class Rule(NamedTuple):
    """How to choose, and from which events to learn."""

    explorer: Any  # `Bounds`, `Sampled` …
    seed: np.uint64
    first: int  # number of the policy's first decision
    size: float
    log_seed: np.uint64  # for what is the same for every policy on a log


class Memory(NamedTuple):
    """What speeds up the scan without changing its result."""

    order: Slots  # (2, slots) the pools' articles, last winners first: for each bucket
    champion: Slots  # (pools, kinds, 2)
    current: Counters  # (1,) the pool that the state is prepared for
    unusable: Counters  # (2,) the first decision and article without a number as score, or -1
    trials: Counters  # (1,) learned so far
    work: Floats  # numbers for each article of the largest pool
    known: Counters  # (n,) how many events before each one may be learned from, or (0,) for all
    waiting: Slots  # (n,) 1 + the user's segment if the event will be learned from, else 0; or (0,)
    cursor: Counters  # (1,) the first event that may be waiting


class ReplaySums(NamedTuple):
    """What happened: sums by bucket and block of time, and by bucket and article."""

    blocks: Floats  # (2, blocks, 4)
    articles: Floats  # (2, articles, 2)


@inlined
def kept(traffic: LogColumns, t: int, pool_size: int, log_seed: np.uint64) -> bool:
    """Rejection sampling: keep an event with probability least/(K·propensity).

    Then what was shown is uniform among the events kept.
    """
    if traffic.propensity.shape[0] == 0:
        return True
    chance = traffic.least / (pool_size * traffic.propensity[t])
    return bool(unit(stream(log_seed, t), KEEP) < chance)


@inlined
def teaches(t: int, size: float, log_seed: np.uint64) -> bool:
    """Whether event t is among the share of events to learn from: the same for every policy."""
    return bool(size >= 1.0 or unit(stream(log_seed, t), LEARN) < size)


@compiled
def counts(
    traffic: LogColumns, t: int, pool_size: int, size: float, log_seed: np.uint64
) -> tuple[bool, bool]:
    """Whether event t is kept, and whether it teaches: for a replay in Python."""
    return kept(traffic, t, pool_size, log_seed), teaches(t, size, log_seed)


@inlined
def beats(
    state: Any,
    c: int,
    s: int,
    own: float,
    x: Any,
    segment: int,
    rule: Any,
    explores: bool,
    pools: Pools,
    root: np.uint64,
    decision: int,
    trials: int,
    unusable: Counters,
) -> bool:
    """Whether article c is chosen before article s, whose score is `own`."""
    near = 4e-12 * abs(own)  # no closer than this, scores are not equal to 40 bits
    score = estimate(state, c, x, segment)
    if explores:
        key = pools.keys[c]
        score = raised(rule, state, c, x, segment, score, own, near, root, key, trials)
    if score - own > near or own - score > near:
        return bool(score > own)
    if np.isnan(score) and unusable[0] < 0:  # all the comparisons before are false then
        unusable[0], unusable[1] = decision, c
    theirs, ours = comparable(score), comparable(own)
    if theirs != ours:
        return bool(theirs > ours)
    return bool(priority(root, pools.keys[c]) > priority(root, pools.keys[s]))


@inlined
def leads(
    state: Any,
    s: int,
    own: float,
    x: Any,
    segment: int,
    rule: Any,
    explores: bool,
    pools: Pools,
    root: np.uint64,
    decision: int,
    memory: Memory,
    bucket: int,
    p: int,
    kind: int,
) -> bool:
    """Whether article s, whose score is `own`, is the one chosen from pool p."""
    champion = memory.champion[p, kind, bucket]
    start = pools.offsets[p]
    for j in range(start - 1, pools.offsets[p + 1]):
        c = champion if j < start else memory.order[bucket, j]
        if (
            c != s
            and (c != champion or j < start)
            and beats(
                state,
                c,
                s,
                own,
                x,
                segment,
                rule,
                explores,
                pools,
                root,
                decision,
                memory.trials[0],
                memory.unusable,
            )
        ):
            if j >= start:
                memory.order[bucket, j] = memory.order[bucket, start]
                memory.order[bucket, start] = c
                memory.champion[p, kind, bucket] = c
            return False
    memory.champion[p, kind, bucket] = s
    return True


@inlined
def record(
    sums: ReplaySums, bucket: int, block: int, s: int, payoff: float, pool_size: int
) -> None:
    """Count one trial."""
    sums.blocks[bucket, block, TRIALS] += 1.0
    sums.blocks[bucket, block, PAYOFF] += payoff
    sums.blocks[bucket, block, WEIGHT] += pool_size
    sums.blocks[bucket, block, WEIGHTED_PAYOFF] += pool_size * payoff
    sums.articles[bucket, s, TRIALS] += 1.0
    sums.articles[bucket, s, PAYOFF] += payoff


@inlined
def catch_up(
    known: int,
    traffic: LogColumns,
    pools: Pools,
    state: Any,
    room: Context,
    memory: Memory,
) -> bool:
    """Learn from the events that are known by now. False: the state does not take the next one."""
    while memory.cursor[0] < known:
        t = memory.cursor[0]
        if memory.waiting[t]:
            s = pools.slots[pools.offsets[traffic.pool[t]] + traffic.position[t]]
            trial = rolled(load(traffic.contexts, t, room), s)
            segment = memory.waiting[t] - 1
            if not takes(state, s, trial):
                return False
            memory.trials[0] += 1
            shown(state, s, trial, segment)
            payoff = np.float64(traffic.payoff[t])
            if payoff != 0.0:
                paid(state, s, trial, segment, payoff)
        memory.cursor[0] += 1
    return True


@compiled
def replay(
    start: int,
    traffic: LogColumns,
    pools: Pools,
    segments: Slots,
    blocks: Slots,
    state: Any,
    rule: Rule,
    room: Context,
    memory: Memory,
    sums: ReplaySums,
) -> int:
    """Run the events start, start + 1, …, one for each entry of `blocks`.

    Returns how many were run: fewer than all if the state does not take the next trial, which then
    changed nothing. `segments` holds their users' segments, or nothing when the model has none.
    What was counted is worth nothing if a score was not a number: `memory.unusable` says so.
    """
    scans = stages(rule.explorer)
    dimension = room.values.shape[0]
    for i in range(blocks.shape[0]):
        t = start + i
        p = traffic.pool[t]
        if memory.known.shape[0] and not catch_up(
            memory.known[t], traffic, pools, state, room, memory
        ):
            return i
        if p != memory.current[0]:
            enter(state, pools.slots, pools.offsets[p], pools.offsets[p + 1])
            memory.current[0] = p
        pool_size = pools.offsets[p + 1] - pools.offsets[p]
        s = pools.slots[pools.offsets[p] + traffic.position[t]]
        x = load(traffic.contexts, t, room)
        segment = segments[i] if segments.shape[0] else 0
        kind = (segment if segments.shape[0] else leaning(x, dimension)) & (
            memory.champion.shape[1] - 1
        )
        decision = rule.first + t

        # Both buckets' choices in one loop: written out twice they took the compiler twice as long.
        root = stream(rule.seed, decision)
        deployed = chosen = False
        own = estimate(state, s, x, segment)
        for scan in range(scans):
            explores = scan == 1
            if explores:
                key, trials = pools.keys[s], memory.trials[0]
                own = raised(
                    rule.explorer, state, s, x, segment, own, np.nan, 0.0, root, key, trials
                )
            chosen = leads(
                state,
                s,
                own,
                x,
                segment,
                rule.explorer,
                explores,
                pools,
                root,
                decision,
                memory,
                LEARNING if explores else DEPLOYMENT,
                p,
                kind,
            )
            if not explores:
                deployed = chosen
        chosen = explored(
            rule.explorer,
            chosen,
            state,
            traffic.position[t],
            x,
            segment,
            pools.slots[pools.offsets[p] : pools.offsets[p + 1]],
            pools.keys,
            root,
            memory.trials[0],
            memory.work,
        )

        if (deployed or chosen) and kept(traffic, t, pool_size, rule.log_seed):
            if np.isnan(own) and memory.unusable[0] < 0:  # no article beats it
                memory.unusable[0], memory.unusable[1] = decision, s
            payoff = np.float64(traffic.payoff[t])
            trial = rolled(x, s)
            learns = chosen and teaches(t, rule.size, rule.log_seed)
            later = memory.known.shape[0] > 0
            if learns and not later and not takes(state, s, trial):
                return i
            for bucket in range(2):
                if deployed if bucket == DEPLOYMENT else chosen:
                    record(sums, bucket, blocks[i], s, payoff, pool_size)
            if learns and later:
                memory.waiting[t] = 1 + segment
            elif learns:
                memory.trials[0] += 1
                shown(state, s, trial, segment)
                if payoff != 0.0:
                    paid(state, s, trial, segment, payoff)
    return len(blocks)
