"""How likely a policy that no longer learns is to show what a log showed, event by event.

A policy with one best article is decided as soon as another one beats the shown one: the winner of
the last such user in this pool is tried first. For others the whole pool is scored, and its
distribution filled in.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.compilation import Counters, Floats, Slots, compiled, inlined
from topstory.kernels.contexts import leaning, load
from topstory.kernels.event_features import Context
from topstory.kernels.explorers.bounds import Bounds, share
from topstory.kernels.explorers.explorer import distribute
from topstory.kernels.models.model import comparable, enter, estimate, width
from topstory.kernels.scans.replay import Pools

Positions = NDArray[np.uint16] | NDArray[np.int32]


@inlined
def chance(
    rule: Bounds,
    state: Any,
    place: int,
    x: Any,
    segment: int,
    slots: Slots,
    trials: int,
    winners: Slots,
    winner: int,
) -> float:
    """The probability of the article at this place of the pool `slots`; NaN if a score is none.

    winners[winner] is the place of the article that won last time, which is tried first.
    """
    count = slots.shape[0]
    epsilon = share(rule, count, trials)
    own = estimate(state, slots[place], x, segment)
    if rule.alpha > 0.0:
        own += rule.alpha * width(state, slots[place], x, segment)
    if np.isnan(own):
        return np.nan
    near = 4e-12 * abs(own)  # no closer than this, scores are not equal to 40 bits
    first, ties = winners[winner], 1
    for j in range(-1, count):
        c = first if j < 0 else j
        if c == place or (j >= 0 and c == first):
            continue
        score = estimate(state, slots[c], x, segment)
        if rule.alpha > 0.0 and not score > own + near:  # a bonus is never negative
            score += rule.alpha * width(state, slots[c], x, segment)
        if own - score > near:
            continue
        if np.isnan(score):
            return np.nan
        theirs, ours = comparable(score), comparable(own)
        if theirs > ours:
            winners[winner] = c
            return float(epsilon / count)
        if theirs == ours:
            ties += 1
    winners[winner] = place
    return float(epsilon / count + (1.0 - epsilon) / ties)


@compiled
def shown_chances(
    start: int,
    contexts: Any,
    pool: Slots,
    position: Positions,
    pools: Pools,
    winners: Slots,
    segments: Slots,
    state: Any,
    rule: Bounds,
    trials: int,
    room: Context,
    out: Floats,
) -> None:
    """The probability of the shown article of the events start, start + 1, …, one for each `out`.

    `winners` has one place for each pool and kind of user; `segments` their users' segments, or
    nothing when the model has none.
    """
    kinds = winners.shape[0] // (pools.offsets.shape[0] - 1)
    current = -1
    for i in range(out.shape[0]):
        p = pool[start + i]
        first, last = pools.offsets[p], pools.offsets[p + 1]
        if p != current:
            enter(state, pools.slots, first, last)
            current = p
        x = load(contexts, start + i, room)
        segment = segments[i] if segments.shape[0] else 0
        kind = segment if segments.shape[0] else leaning(x, room.values.shape[0])
        out[i] = chance(
            rule,
            state,
            position[start + i],
            x,
            segment,
            pools.slots[first:last],
            trials,
            winners,
            p * kinds + (kind & (kinds - 1)),
        )


@compiled
def score_pools(
    start: int,
    contexts: Any,
    pool: Slots,
    pools: Pools,
    begins: Counters,
    segments: Slots,
    state: Any,
    room: Context,
    estimates: Floats,
    widths: Floats,
) -> None:
    """Score every article of the pool of event start + i, from estimates[begins[i]] on.

    `widths` are left out if there is no room for them.
    """
    current = -1
    for i in range(begins.shape[0]):
        p = pool[start + i]
        first, last = pools.offsets[p], pools.offsets[p + 1]
        if p != current:
            enter(state, pools.slots, first, last)
            current = p
        x = load(contexts, start + i, room)
        segment = segments[i] if segments.shape[0] else 0
        for j in range(last - first):
            estimates[begins[i] + j] = estimate(state, pools.slots[first + j], x, segment)
            if widths.shape[0]:
                widths[begins[i] + j] = width(state, pools.slots[first + j], x, segment)


@compiled
def spread_chances(
    rule: Any,
    begins: Counters,
    trials: int,
    estimates: Floats,
    widths: Floats,
    work: Floats,
    out: Floats,
) -> None:
    """The probability of every article, from its score; NaN if a score of its pool is none.

    Pool i lies from begins[i] on. Without widths, the rule must not need them.
    """
    for i in range(begins.shape[0]):
        first = begins[i]
        last = begins[i + 1] if i + 1 < begins.shape[0] else out.shape[0]
        means = estimates[first:last]
        spreads = widths[first:last] if widths.shape[0] else means
        known = True
        for j in range(last - first):
            known = known and not (np.isnan(means[j]) or np.isnan(spreads[j]))
        distribute(rule, means, spreads, trials, out[first:last], work)
        if not known:
            out[first:last] = np.nan


@compiled
def predict(
    start: int,
    contexts: Any,
    pool: Slots,
    position: Positions,
    pools: Pools,
    begins: Counters,
    chances: Floats,
    which: NDArray[np.bool_],
    state: Any,
    room: Context,
    direct: Floats,
    shown: Floats,
) -> None:
    """A model's payoffs for the events start + i that `which` marks.

    direct[i] is the mean over the pool by `chances`, shown[i] that of the article shown.
    """
    current = -1
    for i in range(begins.shape[0]):
        if not which[i]:
            continue
        p = pool[start + i]
        first, last = pools.offsets[p], pools.offsets[p + 1]
        if p != current:
            enter(state, pools.slots, first, last)
            current = p
        x = load(contexts, start + i, room)
        total = 0.0
        for j in range(last - first):
            if chances[begins[i] + j] > 0.0:
                total += chances[begins[i] + j] * estimate(state, pools.slots[first + j], x, 0)
        direct[i] = total
        shown[i] = estimate(state, pools.slots[first + position[start + i]], x, 0)
