"""One decision: every article of the pool scored, the best one chosen, with its propensity."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.compilation import Floats, Slots, compiled
from topstory.kernels.models.model import comparable, enter, estimate, width
from topstory.kernels.randomness import EXPLORE, priority, stream, unit


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
def choose(
    scores: Floats,
    keys: NDArray[np.uint64],
    epsilon: float,
    seed: np.uint64,
    decision: int,
) -> tuple[int, float]:
    """The place of the chosen article in the pool, and the probability that it was chosen.

    With probability epsilon a uniform draw, else the best score, ties broken uniformly at random:
    either way the highest of the decision's random priorities wins.
    """
    root = stream(seed, decision)
    explores = epsilon > 0.0 and unit(root, EXPLORE) < epsilon
    best = comparable(scores[0])
    for j in range(1, scores.shape[0]):
        best = max(best, comparable(scores[j]))
    ties = 0
    chosen = -1
    for j in range(scores.shape[0]):
        leads = comparable(scores[j]) == best
        if leads:
            ties += 1
        if (explores or leads) and (
            chosen < 0 or priority(root, keys[j]) > priority(root, keys[chosen])
        ):
            chosen = j
    propensity = epsilon / scores.shape[0]
    if comparable(scores[chosen]) == best:
        propensity += (1.0 - epsilon) / ties
    return chosen, propensity
