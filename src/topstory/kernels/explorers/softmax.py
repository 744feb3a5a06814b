"""Softmax: an article's probability is proportional to exp(estimate / temperature).

The same as adding to each estimate its own draw of temperature·Gumbel, and taking the largest. So
a replayed event needs no sum over the pool, and a scan may stop early.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from topstory.kernels.compilation import body, inlined, instance_of
from topstory.kernels.explorers.explorer import distribute, draw, raised, scanned
from topstory.kernels.models.model import comparable
from topstory.kernels.randomness import open_unit


@scanned
class Heated(NamedTuple):
    """The temperature."""

    temperature: float


@inlined
def gumbel(root: np.uint64, key: np.uint64) -> float:
    """The article's draw in this decision."""
    return -math.log(-math.log(open_unit(root, key)))


@body(raised, instance_of(Heated), inline=True)
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
    return float(score + rule.temperature * gumbel(root, key))


@body(draw, instance_of(Heated), inline=False)
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
    for j in range(estimates.shape[0]):
        scores[j] = estimates[j] + rule.temperature * gumbel(root, keys[j])


@body(distribute, instance_of(Heated), inline=False)
def _distribute(rule: Any, estimates: Any, widths: Any, trials: Any, out: Any, work: Any) -> None:
    best = -np.inf
    for j in range(estimates.shape[0]):
        best = max(best, estimates[j])
    total = 0.0
    for j in range(estimates.shape[0]):
        # What `choose` takes for equal is equal here too, however cold it is.
        level = comparable(estimates[j]) == comparable(best)
        out[j] = 1.0 if level else math.exp((estimates[j] - best) / rule.temperature)
        total += out[j]
    for j in range(estimates.shape[0]):
        out[j] /= total
