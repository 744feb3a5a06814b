"""Inverse-gap weighting (SquareCB, Foster and Rakhlin 2020): better estimates, higher chances.

With K articles, t trials so far and γ = c·√t, an article whose estimate is a gap below the best
has probability 1/(K + γ·gap); the best has the rest. A floor f gives everyone at least f/K.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from topstory.kernels.compilation import Floats, body, inlined, instance_of
from topstory.kernels.explorers.explorer import distribute, draw, explored, raised, stages
from topstory.kernels.models.model import comparable, estimate
from topstory.kernels.randomness import open_unit, priority


class Gaps(NamedTuple):
    """What γ grows by, and the share that is spread evenly."""

    c: float
    floor: float


@inlined
def weigh(rule: Gaps, estimates: Floats, trials: int, out: Floats) -> None:
    """The probabilities. Articles that tie for the best share the rest."""
    count = estimates.shape[0]
    gamma = rule.c * math.sqrt(trials + 1.0)
    best = -np.inf
    for j in range(count):
        best = max(best, comparable(estimates[j]))
    rest, ties = 1.0, 0
    for j in range(count):
        gap = best - comparable(estimates[j])
        if gap > 0.0:
            out[j] = 1.0 / (count + gamma * gap)
            rest -= out[j]
        else:
            out[j] = -1.0
            ties += 1
    for j in range(count):
        if out[j] < 0.0:
            out[j] = rest / ties
        out[j] = rule.floor / count + (1.0 - rule.floor) * out[j]


@inlined
def race(chance: float, root: np.uint64, key: np.uint64) -> float:
    """The highest of these wins with just the given chances: ln p + a Gumbel draw."""
    if chance <= 0.0:
        return -np.inf
    return math.log(chance) - math.log(-math.log(open_unit(root, key)))


@body(stages, instance_of(Gaps), inline=True)
def _stages(rule: Any) -> int:
    return 1


@body(raised, instance_of(Gaps), inline=True)
def _raised(
    rule: Any,
    state: Any,
    a: Any,
    x: Any,
    segment: Any,
    score: Any,
    rival: Any,
    near: Any,
    root: Any,
    key: Any,
    trials: Any,
) -> float:
    return float(score)  # never asked for: one scan, of estimates, is all


@body(explored, instance_of(Gaps), inline=True)
def _explored(
    rule: Any,
    leads: Any,
    state: Any,
    place: Any,
    x: Any,
    segment: Any,
    slots: Any,
    keys: Any,
    root: Any,
    trials: Any,
    work: Any,
) -> bool:
    count = slots.shape[0]
    for j in range(count):
        work[j] = estimate(state, slots[j], x, segment)
    weigh(rule, work[:count], trials, work[count : 2 * count])
    own = comparable(race(work[count + place], root, keys[slots[place]]))
    for j in range(count):
        theirs = comparable(race(work[count + j], root, keys[slots[j]]))
        if theirs > own or (
            theirs == own and priority(root, keys[slots[j]]) > priority(root, keys[slots[place]])
        ):
            return False
    return True


@body(draw, instance_of(Gaps), inline=False)
def _draw(
    rule: Any,
    estimates: Any,
    widths: Any,
    keys: Any,
    root: Any,
    trials: Any,
    scores: Any,
    work: Any,
) -> None:
    weigh(rule, estimates, trials, scores)
    for j in range(estimates.shape[0]):
        scores[j] = race(scores[j], root, keys[j])


@body(distribute, instance_of(Gaps), inline=False)
def _distribute(rule: Any, estimates: Any, widths: Any, trials: Any, out: Any, work: Any) -> None:
    weigh(rule, estimates, trials, out)
