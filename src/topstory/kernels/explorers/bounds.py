"""The best estimate + α·width, and a uniform draw now and then: greedy, ε-greedy, UCB, random."""

import math
from typing import Any, NamedTuple

import numpy as np

from topstory.kernels.compilation import Floats, body, inlined, instance_of
from topstory.kernels.explorers.explorer import distribute, draw, explored, raised, stages
from topstory.kernels.models.model import comparable, widest, width
from topstory.kernels.randomness import EXPLORE, priority, unit


class Bounds(NamedTuple):
    """α and ε; a `decay` above 0 makes ε = min(1, decay·(K/t)^⅓) instead, t counting trials.

    With `epochs` above 0, ε is 1 whenever epochs·t^⅔ passes a whole number, and else 0.
    """

    alpha: float
    epsilon: float
    decay: float
    epochs: float = 0.0

    @property
    def steady(self) -> bool:
        """Whether ε does not depend on the trials."""
        return self.decay == 0.0 and self.epochs == 0.0


@inlined
def share(rule: Bounds, pool_size: int, trials: int) -> float:
    """ε of this decision."""
    if rule.epochs > 0.0:
        before = math.floor(rule.epochs * float(trials) ** (2.0 / 3.0))
        after = math.floor(rule.epochs * (trials + 1.0) ** (2.0 / 3.0))
        return 1.0 if after > before else 0.0
    if rule.decay == 0.0:
        return rule.epsilon
    falling = rule.decay * (pool_size / (trials + 1.0)) ** (1.0 / 3.0)
    return min(1.0, float(falling))


@body(stages, instance_of(Bounds), inline=True)
def _stages(rule: Any) -> int:
    return 2 if rule.alpha > 0.0 else 1


@body(raised, instance_of(Bounds), inline=True)
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
    if score > rival + near:  # a bonus is never negative
        return float(score)
    highest = score + rule.alpha * widest(state, a, x)
    if highest < rival - near:
        return float(highest)
    return float(score + rule.alpha * width(state, a, x, segment))


@body(explored, instance_of(Bounds), inline=True)
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
    if rule.epsilon == 0.0 and rule.decay == 0.0 and rule.epochs == 0.0:
        return bool(leads)
    if not unit(root, EXPLORE) < share(rule, slots.shape[0], trials):
        return bool(leads)
    highest = place
    for j in range(slots.shape[0]):
        if priority(root, keys[slots[j]]) > priority(root, keys[slots[highest]]):
            highest = j
    return bool(highest == place)


@body(draw, instance_of(Bounds), inline=False)
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
    epsilon = share(rule, estimates.shape[0], trials)
    if epsilon > 0.0 and unit(root, EXPLORE) < epsilon:
        scores[:] = 0.0
        return
    bound(rule, estimates, widths, scores)


@inlined
def bound(rule: Bounds, estimates: Floats, widths: Floats, scores: Floats) -> None:
    """Estimate + α·width."""
    for j in range(estimates.shape[0]):
        # Not estimate + 0·width: an unseen article's width may be infinite.
        scores[j] = estimates[j] + rule.alpha * widths[j] if rule.alpha > 0.0 else estimates[j]


@body(distribute, instance_of(Bounds), inline=False)
def _distribute(rule: Any, estimates: Any, widths: Any, trials: Any, out: Any, work: Any) -> None:
    count = estimates.shape[0]
    bound(rule, estimates, widths, out)
    best, ties = -np.inf, 0
    for j in range(count):
        score = comparable(out[j])
        if score > best:
            best, ties = score, 1
        elif score == best:
            ties += 1
    epsilon = share(rule, count, trials)
    for j in range(count):
        leads = comparable(out[j]) == best
        out[j] = epsilon / count
        if leads:
            out[j] += (1.0 - epsilon) / ties
