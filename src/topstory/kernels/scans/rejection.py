"""DR-ns over a log's columns (Dudík, Erhan, Langford and Li 2012): a policy learns from any log.

An event (x, a, r) that was shown with probability p joins the policy's history with probability
min(1, c·π/p), where π is the probability with which the policy, as it is now, would show a. So its
history is one that it could have had itself. Every event counts, with the factor c.

Of equal scores the policy's own priorities decide, as in replay: they belong to the policy.
"""

from typing import Any, NamedTuple

import numpy as np

from topstory.kernels.buckets import LEARNING
from topstory.kernels.compilation import Counters, Floats, Slots, compiled, inlined, specialised
from topstory.kernels.contexts import leaning, load, rolled
from topstory.kernels.event_features import Context
from topstory.kernels.explorers.bounds import Bounds, share
from topstory.kernels.explorers.explorer import distribute, raised
from topstory.kernels.models.model import enter, estimate, paid, shown, takes, width
from topstory.kernels.randomness import KEEP, stream, unit
from topstory.kernels.scans.replay import LogColumns, Memory, Pools, Rule, leads

BINS = 2048  # of the ratios p/π, by their logarithm: they are known to 1 %
SMALLEST = 1e-8  # the ratio of the first bin
STEP = -np.log(SMALLEST) / BINS

# Places in `History.numbers`.
FACTOR, LEAST, PAID, EVENTS, RATIOS, ACCEPTED, EXCESS, WEIGHT = range(8)
NUMBERS = 8


class History(NamedTuple):
    """What was met so far."""

    numbers: Floats  # c, the smallest p/π, the log's payoff and events, ratios seen, …
    ratios: Counters  # (BINS + 1,) how many p/π were in each bin; the last: those that are infinite
    limits: Floats  # (2,) the quantile q, and the largest c


def chance(
    rule: Any,
    state: Any,
    place: int,
    x: Any,
    segment: int,
    pools: Pools,
    p: int,
    root: np.uint64,
    decision: int,
    memory: Memory,
    kind: int,
) -> float:
    """The probability of the article at this place of pool p."""
    raise NotImplementedError("called from kernels only")


@specialised(chance, inline=False)
def _chance(
    rule: Any,
    state: Any,
    place: Any,
    x: Any,
    segment: Any,
    pools: Any,
    p: Any,
    root: Any,
    decision: Any,
    memory: Any,
    kind: Any,
) -> Any:
    def best(
        rule: Any,
        state: Any,
        place: Any,
        x: Any,
        segment: Any,
        pools: Any,
        p: Any,
        root: Any,
        decision: Any,
        memory: Any,
        kind: Any,
    ) -> float:
        s = pools.slots[pools.offsets[p] + place]
        size = pools.offsets[p + 1] - pools.offsets[p]
        explores = rule.alpha > 0.0
        own = estimate(state, s, x, segment)
        if explores:
            key, trials = pools.keys[s], memory.trials[0]
            own = raised(rule, state, s, x, segment, own, np.nan, 0.0, root, key, trials)
        if np.isnan(own) and memory.unusable[0] < 0:
            memory.unusable[0], memory.unusable[1] = decision, s
        won = leads(
            state,
            s,
            own,
            x,
            segment,
            rule,
            explores,
            pools,
            root,
            decision,
            memory,
            LEARNING,
            p,
            kind,
        )
        epsilon = share(rule, size, memory.trials[0])
        return float(epsilon / size + (1.0 - epsilon if won else 0.0))

    def whole(
        rule: Any,
        state: Any,
        place: Any,
        x: Any,
        segment: Any,
        pools: Any,
        p: Any,
        root: Any,
        decision: Any,
        memory: Any,
        kind: Any,
    ) -> float:
        slots = pools.slots[pools.offsets[p] : pools.offsets[p + 1]]
        size = slots.shape[0]
        means, spreads = memory.work[size : 2 * size], memory.work[2 * size : 3 * size]
        for j in range(size):
            means[j] = estimate(state, slots[j], x, segment)
            spreads[j] = width(state, slots[j], x, segment)
            if np.isnan(means[j] + spreads[j]) and memory.unusable[0] < 0:
                memory.unusable[0], memory.unusable[1] = decision, slots[j]
        if memory.unusable[0] >= 0:
            return 0.0
        out = memory.work[:size]
        distribute(rule, means, spreads, memory.trials[0], out, memory.work[3 * size :])
        return float(out[place])

    return best if rule.instance_class is Bounds else whole


@inlined
def note(history: History, ratio: float) -> None:
    """Take in p/π of an event; infinite if the policy would not have shown it."""
    history.numbers[RATIOS] += 1.0
    if ratio == np.inf:
        history.ratios[BINS] += 1
        return
    history.numbers[LEAST] = min(history.numbers[LEAST], ratio)
    place = int(np.log(max(ratio, SMALLEST) / SMALLEST) / STEP)
    history.ratios[min(place, BINS - 1)] += 1


@inlined
def factor(history: History) -> float:
    """c: the q-quantile of all p/π so far, rounded down to its bin; with q = 0 the smallest."""
    most = history.limits[1]
    if history.limits[0] == 0.0:
        return float(min(most, history.numbers[LEAST]))
    below = 0.0
    for place in range(BINS):
        below += history.ratios[place]
        if below >= history.limits[0] * history.numbers[RATIOS]:
            edge = SMALLEST * np.exp(place * STEP)
            return float(min(most, max(edge, history.numbers[LEAST])))
    return float(most)


@compiled
def learn_by_rejection(
    start: int,
    traffic: LogColumns,
    pools: Pools,
    segments: Slots,
    state: Any,
    rule: Rule,
    room: Context,
    memory: Memory,
    history: History,
    out: Floats,
) -> int:
    """Run the events start, start + 1, …, one for each column of `out`.

    out[0] and out[1] become c·(m + w(r − m)) and c, where w = π/p and m is the log's mean payoff
    before the event: r̂ of the doubly robust estimate, the same for all articles. Returns how many
    were run: fewer than all if the state does not take the next trial.
    """
    dimension = room.values.shape[0]
    numbers = history.numbers
    for i in range(out.shape[1]):
        t = start + i
        p = traffic.pool[t]
        if p != memory.current[0]:
            enter(state, pools.slots, pools.offsets[p], pools.offsets[p + 1])
            memory.current[0] = p
        place = traffic.position[t]
        x = load(traffic.contexts, t, room)
        segment = segments[i] if segments.shape[0] else 0
        kind = (segment if segments.shape[0] else leaning(x, dimension)) & (
            memory.champion.shape[1] - 1
        )
        decision = rule.first + t
        root = stream(rule.seed, decision)
        policy = chance(
            rule.explorer,
            state,
            place,
            x,
            segment,
            pools,
            p,
            root,
            decision,
            memory,
            kind,
        )
        size = pools.offsets[p + 1] - pools.offsets[p]
        logged = np.float64(traffic.propensity[t]) if traffic.propensity.shape[0] else 1.0 / size
        weight, payoff = policy / logged, np.float64(traffic.payoff[t])
        c = numbers[FACTOR]
        joins = policy > 0.0 and unit(stream(rule.log_seed, t), KEEP) < c * weight
        s = pools.slots[pools.offsets[p] + place]
        trial = rolled(x, s)
        if joins and not takes(state, s, trial):
            return i
        mean = numbers[PAID] / numbers[EVENTS] if numbers[EVENTS] > 0.0 else 0.0
        out[0, i] = c * (mean + weight * (payoff - mean))
        out[1, i] = c
        numbers[PAID] += payoff
        numbers[EVENTS] += 1.0
        numbers[WEIGHT] += c * weight
        numbers[EXCESS] += max(0.0, c * weight - 1.0)
        note(history, logged / policy if policy > 0.0 else np.inf)
        if joins:
            numbers[ACCEPTED] += 1.0
            memory.trials[0] += 1
            shown(state, s, trial, segment)
            if payoff != 0.0:
                paid(state, s, trial, segment, payoff)
            numbers[FACTOR] = factor(history)
    return len(out[0])
