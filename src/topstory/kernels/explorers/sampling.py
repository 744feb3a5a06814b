"""Thompson sampling of scores: each article's is drawn from N(estimate, (α·width)²).

Scores are drawn, not coefficients: given the state, articles are then independent. So the chance
that an article wins is one integral, over the score s that it wins with,

    P(a) = ∫ φ_a(s) Π_{b≠a} Φ_b(s) ds,

which Gauss–Legendre panels as narrow as the scores' own spread give to about 1e-12.
"""

from typing import Any, NamedTuple

import numpy as np

from topstory.kernels.compilation import (
    Floats,
    body,
    compiled,
    inlined,
    instance_of,
    specialised,
)
from topstory.kernels.explorers.explorer import distribute, draw, raised, scanned
from topstory.kernels.models.model import comparable, widest, width
from topstory.kernels.normal import below, density, quantile
from topstory.kernels.randomness import open_unit

_REACH = 7.0  # standard deviations: what lies beyond has a chance of 1e-12
_PANEL = 2.5  # standard deviations of the narrowest score that still matters
_LEAST_SPREAD = 1e-9  # of the widest: an exact score is drawn as if it were this unsure
_NODES, _WEIGHTS = (
    tuple(float(value) for value in values) for values in np.polynomial.legendre.leggauss(16)
)


@scanned
class Sampled(NamedTuple):
    """α, and whether a draw below the estimate counts as the estimate."""

    alpha: float
    optimistic: bool


@inlined
def normal(rule: Sampled, root: np.uint64, key: np.uint64) -> float:
    """The article's draw in this decision: how many standard deviations it is off."""
    z = quantile(open_unit(root, key))
    return max(z, 0.0) if rule.optimistic else z


@specialised(raised, inline=True)
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
) -> Any:
    if rule.instance_class is not Sampled:
        return None
    may_be_unseen = hasattr(state.instance_class, "spread")  # then its width is infinite

    def body(
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
        z = normal(rule, root, key)
        if z >= 0.0 and score > rival + near:
            return float(score)
        if z <= 0.0 and score < rival - near and not may_be_unseen:
            return float(score)
        farthest = score + rule.alpha * widest(state, a, x) * z
        if farthest < rival - near if z > 0.0 else farthest > rival + near:
            return float(farthest)
        return sampled(rule.alpha, score, width(state, a, x, segment), z)

    return body


@inlined
def sampled(alpha: float, estimate: float, width: float, z: float) -> float:
    """The drawn score. An article of which nothing is known (an infinite width) comes first."""
    if alpha == 0.0:
        return estimate
    if np.isinf(width):
        return np.inf
    return estimate + alpha * width * z


@body(draw, instance_of(Sampled), inline=False)
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
        z = normal(rule, root, keys[j])
        scores[j] = sampled(rule.alpha, estimates[j], widths[j], z)


@body(distribute, instance_of(Sampled), inline=False)
def _distribute(rule: Any, estimates: Any, widths: Any, trials: Any, out: Any, work: Any) -> None:
    count = estimates.shape[0]
    widest = 0.0
    for j in range(count):
        widest = max(widest, widths[j])
    if rule.alpha == 0.0 or np.isinf(widest) or rule.alpha * widest == 0.0:
        # No chance: the best estimates, or the articles of which nothing is known.
        unseen = rule.alpha > 0.0 and np.isinf(widest)
        equal_shares(estimates, widths, unseen, out)
        return
    # Distances from the leader, in units of the widest spread: a spread of 1e-20 beside an estimate
    # of 1 is then a number of a usual size, and not lost in rounding.
    scale, lead, leader = rule.alpha * widest, -np.inf, 0
    for j in range(count):
        surely = estimates[j] - (0.0 if rule.optimistic else _REACH * rule.alpha * widths[j])
        if surely > lead:
            lead, leader = surely, j
    best = estimates[leader]
    for j in range(count):
        work[j] = max(widths[j] / widest, _LEAST_SPREAD)
        # What `choose` takes for equal is equal here too, however sure the scores are.
        level = comparable(estimates[j]) == comparable(best)
        work[count + j] = 0.0 if level else (estimates[j] - best) / scale
    win_chances(work[count : 2 * count], work[:count], rule.optimistic, out, work[2 * count :])


@inlined
def equal_shares(estimates: Floats, widths: Floats, unseen: bool, out: Floats) -> None:
    """1/ties for each of those that lead."""
    best, ties = -np.inf, 0.0
    for j in range(estimates.shape[0]):
        out[j] = widths[j] if unseen else comparable(estimates[j])
        if out[j] > best:
            best, ties = out[j], 0.0
        ties += out[j] == best
    for j in range(estimates.shape[0]):
        out[j] = 1.0 / ties if out[j] == best else 0.0


@compiled
def win_chances(
    means: Floats, spreads: Floats, optimistic: bool, out: Floats, work: Floats
) -> None:
    """The probability that each of some independent normal draws is the largest.

    Optimistic draws are no lower than their means. `work` has room for two numbers each.
    """
    count = means.shape[0]
    low, high = -np.inf, -np.inf
    for j in range(count):
        low = max(low, means[j] - (0.0 if optimistic else _REACH * spreads[j]))
        high = max(high, means[j] + _REACH * spreads[j])
        out[j] = 0.0
    if optimistic:  # all draws at or below the best mean: those that have it win with it
        all_below, ties = 1.0, 0.0
        for j in range(count):
            all_below *= below((low - means[j]) / spreads[j])
            ties += comparable(means[j]) == comparable(low)
        for j in range(count):
            if comparable(means[j]) == comparable(low):
                out[j] = all_below / ties
    chance, rate = work[:count], work[count : 2 * count]
    s = low
    while s < high:
        panel = high - s
        for j in range(count):
            if s < means[j] + _REACH * spreads[j]:  # else it is below s for sure
                panel = min(panel, _PANEL * spreads[j])
        end = s + panel
        if end <= s:  # narrower than a number can say
            break
        for node in range(len(_NODES)):
            at = s + 0.5 * panel * (1.0 + _NODES[node])
            product = 0.5 * panel * _WEIGHTS[node]
            for j in range(count):
                z = (at - means[j]) / spreads[j]
                if z < _REACH:
                    chance[j] = below(z)
                    rate[j] = density(z) / spreads[j]
                    product *= chance[j]
                else:
                    rate[j] = 0.0
            for j in range(count):
                if rate[j] > 0.0:
                    out[j] += product * rate[j] / chance[j]
        s = end
    total = 0.0
    for j in range(count):
        total += out[j]
    for j in range(count):
        out[j] /= total
