"""One decision under a traffic mix: what a bucket shows, and how likely that was over all of them.

A visitor is in one of three buckets, drawn independently of the context. An article's propensity
is its chance over that draw and the bucket's own, whichever bucket the visitor is in:

    share_L·(ε/K + (1 − ε)·[best score]/ties) + share_D·[best estimate]/ties + share_U/K

A visitor who returns stays in one bucket, so given that bucket the propensity is one term of the
sum, without its share: the bucket's own.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.buckets import DEPLOYMENT, LEARNING, UNIFORM
from topstory.kernels.choice import score
from topstory.kernels.compilation import Counters, Floats, Slots, compiled
from topstory.kernels.contexts import load
from topstory.kernels.event_features import Context
from topstory.kernels.explorers.explorer import distribute, draw
from topstory.kernels.models.model import comparable
from topstory.kernels.randomness import EXPLORE, priority, stream, unit


@compiled
def decide(
    state: Any,
    x: Any,
    segment: int,
    slots: Slots,
    keys: NDArray[np.uint64],
    bonus: float,
    epsilon: float,
    shares: Floats,
    bucket: int,
    seed: np.uint64,
    decision: int,
    estimates: Floats,
    scores: Floats,
) -> tuple[int, float, float]:
    """The place of the chosen article in the pool, its propensity over the mix, and the bucket's.

    If the score of an article is not a number: -1 minus its place, 0 and 0.
    Fills in the pool's estimates and the learning bucket's scores. `keys` are by slot, `shares`
    are of the three buckets.
    """
    unusable = score(state, x, segment, slots, estimates, scores)  # widths, for now
    if unusable >= 0:
        return -1 - unusable, 0.0, 0.0
    count = slots.shape[0]
    best_score, best_estimate = -np.inf, -np.inf
    for j in range(count):
        # Not estimate + 0·width: an unseen article's width may be infinite.
        scores[j] = estimates[j] + bonus * scores[j] if bonus > 0.0 else estimates[j]
        best_score = max(best_score, comparable(scores[j]))
        best_estimate = max(best_estimate, comparable(estimates[j]))
    root = stream(seed, decision)
    everything = bucket == UNIFORM or (
        bucket == LEARNING and epsilon > 0.0 and unit(root, EXPLORE) < epsilon
    )
    score_ties, estimate_ties, chosen = 0, 0, -1
    for j in range(count):
        leads_score = comparable(scores[j]) == best_score
        leads_estimate = comparable(estimates[j]) == best_estimate
        score_ties += leads_score
        estimate_ties += leads_estimate
        leads = leads_score if bucket == LEARNING else leads_estimate
        if (everything or leads) and (
            chosen < 0 or priority(root, keys[slots[j]]) > priority(root, keys[slots[chosen]])
        ):
            chosen = j
    propensity = (shares[LEARNING] * epsilon + shares[UNIFORM]) / count
    own = 1.0 / count
    if bucket != UNIFORM:
        own = epsilon / count if bucket == LEARNING else 0.0
    if comparable(scores[chosen]) == best_score:
        propensity += shares[LEARNING] * (1.0 - epsilon) / score_ties
        if bucket == LEARNING:
            own += (1.0 - epsilon) / score_ties
    if comparable(estimates[chosen]) == best_estimate:
        propensity += shares[DEPLOYMENT] / estimate_ties
        if bucket == DEPLOYMENT:
            own += 1.0 / estimate_ties
    return chosen, min(propensity, 1.0), min(own, 1.0)


@compiled
def decide_randomised(
    state: Any,
    x: Any,
    segment: int,
    slots: Slots,
    keys: NDArray[np.uint64],
    rule: Any,
    shares: Floats,
    bucket: int,
    seed: np.uint64,
    decision: int,
    estimates: Floats,
    scores: Floats,
    room: Floats,
) -> tuple[int, float, float]:
    """`decide` for any explorer: the learning bucket draws from the explorer's own probabilities.

    Here `keys` are by place in the pool. `room` holds five numbers for each place.
    """
    count = slots.shape[0]
    widths, chances, work = room[:count], room[count : 2 * count], room[2 * count :]
    unusable = score(state, x, segment, slots, estimates, widths)
    if unusable >= 0:
        return -1 - unusable, 0.0, 0.0
    root = stream(seed, decision)
    draw(rule, estimates, widths, keys, root, decision, scores, work)
    best, ties, chosen = -np.inf, 0, -1
    for j in range(count):
        estimated = comparable(estimates[j])
        if estimated > best:
            best, ties = estimated, 0
        ties += estimated == best
        ours = theirs = 0.0
        if chosen >= 0 and bucket != UNIFORM:
            ours = comparable(scores[j] if bucket == LEARNING else estimates[j])
            theirs = comparable(scores[chosen] if bucket == LEARNING else estimates[chosen])
        if (
            chosen < 0
            or ours > theirs
            or (ours == theirs and priority(root, keys[j]) > priority(root, keys[chosen]))
        ):
            chosen = j
    distribute(rule, estimates, widths, decision, chances, work)
    learning, uniform = chances[chosen], 1.0 / count
    deployment = 1.0 / ties if comparable(estimates[chosen]) == best else 0.0
    propensity = shares[LEARNING] * learning + shares[DEPLOYMENT] * deployment
    propensity += shares[UNIFORM] * uniform
    own = uniform
    if bucket != UNIFORM:
        own = learning if bucket == LEARNING else deployment
    return chosen, min(propensity, 1.0), min(own, 1.0)


@compiled
def decide_all(
    state: Any,
    room: Context,
    contexts: Floats,
    segments: Slots,
    slots: Slots,
    keys: NDArray[np.uint64],
    bonus: float,
    epsilon: float,
    shares: Floats,
    buckets: Counters,
    seed: np.uint64,
    first: int,
    estimates: Floats,
    scores: Floats,
    places: Slots,
    propensities: Floats,
    own: Floats,
) -> None:
    """`decide` for many users at once: the decisions first, first + 1, … in `places`.

    To hand a state to a kernel costs more than a decision. No segments: there is but one.
    """
    for t in range(contexts.shape[0]):
        x = load(contexts, t, room)
        segment = segments[t] if segments.shape[0] else 0
        places[t], propensities[t], own[t] = decide(
            state,
            x,
            segment,
            slots,
            keys,
            bonus,
            epsilon,
            shares,
            buckets[t],
            seed,
            first + t,
            estimates,
            scores,
        )


@compiled
def rank(
    scores: Floats,
    keys: NDArray[np.uint64],
    slots: Slots,
    uniform: bool,
    seed: np.uint64,
    decision: int,
    first: int,
    out: Slots,
) -> None:
    """Fill `out` with places in the pool: `first`, then the best scores, ties by the same draws.

    With `uniform` all articles tie. `scores` is used up.
    """
    root = stream(seed, decision)
    out[0] = first
    scores[first] = np.nan
    for place in range(1, out.shape[0]):
        chosen = -1
        for j in range(scores.shape[0]):
            if np.isnan(scores[j]):
                continue
            if chosen < 0:
                chosen = j
                continue
            one, two = comparable(scores[j]), comparable(scores[chosen])
            if (one > two and not uniform) or (
                (one == two or uniform)
                and priority(root, keys[slots[j]]) > priority(root, keys[slots[chosen]])
            ):
                chosen = j
        out[place] = chosen
        scores[chosen] = np.nan
