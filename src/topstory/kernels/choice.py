"""One decision: every article of the pool scored, the best one chosen, with its propensity."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.compilation import Floats, Slots, compiled
from topstory.kernels.contexts import load
from topstory.kernels.event_features import Context
from topstory.kernels.explorers.explorer import distribute, draw
from topstory.kernels.models.model import comparable, enter, estimate, width
from topstory.kernels.randomness import priority, stream


@compiled
def score(state: Any, x: Any, segment: int, slots: Slots, estimates: Floats, widths: Floats) -> int:
    """Fill in the estimates and widths of the pool's articles.

    Returns the place of an article of which they are not numbers, or -1.
    """
    unusable = -1
    enter(state, slots, 0, slots.shape[0])
    for j in range(slots.shape[0]):
        estimates[j] = estimate(state, slots[j], x, segment)
        widths[j] = width(state, slots[j], x, segment)
        if np.isnan(estimates[j]) or np.isnan(widths[j]):
            unusable = j
    return unusable


@compiled
def score_all(
    state: Any,
    room: Context,
    contexts: Floats,
    segments: Slots,
    slots: Slots,
    estimates: Floats,
    widths: Floats,
) -> int:
    """`score` for each of many users: (n, pool) estimates and widths. No segments: there is one."""
    for t in range(contexts.shape[0]):
        x = load(contexts, t, room)
        segment = segments[t] if segments.shape[0] else 0
        unusable = score(state, x, segment, slots, estimates[t], widths[t])
        if unusable >= 0:
            return unusable
    return -1


@compiled
def choose(
    rule: Any,
    estimates: Floats,
    widths: Floats,
    keys: NDArray[np.uint64],
    seed: np.uint64,
    decision: int,
    trials: int,
    scores: Floats,
    work: Floats,
) -> tuple[int, float]:
    """The place of the chosen article in the pool, and the probability that it was chosen.

    Ties are broken uniformly at random: the highest of the decision's random priorities wins.
    `scores` has room for each article, `work` for as many numbers of each as `explorers.WORK` says.
    """
    root = stream(seed, decision)
    draw(rule, estimates, widths, keys, root, trials, scores, work)
    chosen = 0
    for j in range(1, scores.shape[0]):
        theirs, best = comparable(scores[j]), comparable(scores[chosen])
        if theirs > best or (
            theirs == best and priority(root, keys[j]) > priority(root, keys[chosen])
        ):
            chosen = j
    distribute(rule, estimates, widths, trials, scores, work)
    return chosen, scores[chosen]


@compiled
def choose_all(
    rule: Any,
    estimates: Floats,
    widths: Floats,
    keys: NDArray[np.uint64],
    seed: np.uint64,
    first: int,
    trials: int,
    scores: Floats,
    work: Floats,
    places: Slots,
    propensities: Floats,
) -> None:
    """`choose` for each of many users, whose decisions have the numbers from `first` on."""
    for t in range(places.shape[0]):
        places[t], propensities[t] = choose(
            rule, estimates[t], widths[t], keys, seed, first + t, trials, scores, work
        )


@compiled
def probabilities(
    rule: Any, estimates: Floats, widths: Floats, trials: int, out: Floats, work: Floats
) -> None:
    """The probability of every article of the pool."""
    distribute(rule, estimates, widths, trials, out, work)
