"""Scores from how often an article was shown: n = 1/width², and mean·n of its trials paid.

Three rules: UCB1's bound (Auer, Cesa-Bianchi and Fischer 2002), that of KL-UCB (Garivier and Cappé
2011), and a draw from the beta distribution of a Bernoulli mean (Thompson 1933; Chapelle and Li
2011). With draws, the chance that an article wins is an integral over the score that it wins with.
On the scale of log-odds y all factors of it are smooth whatever the counts,

    ln f(y) = a·y − (a + b)·ln(1 + eʸ) − ln B(a, b),

so Gauss–Legendre panels give it to about 1e-11; each F is summed up along the way.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from topstory.kernels.beta import beta_below, beta_quantile, log_beta
from topstory.kernels.compilation import Floats, body, compiled, inlined, instance_of
from topstory.kernels.explorers.explorer import distribute, draw, raised, scanned
from topstory.kernels.models.model import comparable, width
from topstory.kernels.randomness import open_unit

UCB1, KL, BETA = 0, 1, 2

_TAIL = 1e-13  # the chance that is left out at either end of an integral
_PANEL = 1.5  # standard deviations of the narrowest score that still matters
_ORDER = 16
_LEAST = 1e-9  # width², below which a mean is as good as certain: after 1e9 trials
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(_ORDER)


def _integrals() -> Floats:
    """(nodes, nodes) how much each node's value adds to the integral up to each node."""
    basis = np.linalg.inv(np.polynomial.legendre.legvander(_NODES, _ORDER - 1))
    primitive = np.polynomial.legendre.legint(np.eye(_ORDER), lbnd=-1.0)  # (order + 1, order)
    up_to = np.polynomial.legendre.legvander(_NODES, _ORDER) @ primitive
    return np.ascontiguousarray(up_to @ basis)


_UP_TO = _integrals()


@scanned
class Counts(NamedTuple):
    """Which of the rules, α, and what a draw counts as seen beforehand."""

    kind: int
    alpha: float
    successes: float
    failures: float


@inlined
def within(mean: float) -> float:
    """A mean as a probability."""
    return min(max(mean, 0.0), 1.0)


@inlined
def divergence(p: float, q: float) -> float:
    """Kl(p, q) of two Bernoulli variables, for q in (0, 1)."""
    found = 0.0
    if p > 0.0:
        found += p * math.log(p / q)
    if p < 1.0:
        found += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return found


@compiled
def kl_bound(mean: float, room: float) -> float:
    """The largest q with kl(mean, q) ≤ room. Newton's method: from above it never overshoots."""
    if mean >= 1.0 or room <= 0.0:
        return mean
    entropy = -math.log1p(-mean) * (1.0 - mean)
    if mean > 0.0:
        entropy -= mean * math.log(mean)
    # Two numbers that are never below q, by Pinsker's inequality and by kl without ln q.
    q = min(mean + math.sqrt(0.5 * room), 1.0 - math.exp(-(room + entropy) / (1.0 - mean)))
    for _ in range(100):
        if q >= 1.0 or q <= mean:
            break
        step = (divergence(mean, q) - room) * q * (1.0 - q) / (q - mean)
        q -= step
        if step <= 1e-9 * (q - mean):  # the next one would be about its square
            break
    return min(max(q, mean), 1.0)


@inlined
def counted(rule: Counts, estimate: float, width: float) -> tuple[float, float]:
    """The two parameters of an article's beta distribution; both 0 if nothing is known.

    One of them is 0 where the mean is certain, or as good as: it is then `estimate`.
    """
    square = (rule.alpha * width) ** 2
    if square <= _LEAST:
        return (1.0, 0.0)
    n = 1.0 / square
    return (
        rule.successes + n * within(estimate),
        rule.failures + n * (1.0 - within(estimate)),
    )


@inlined
def certain(a: float, b: float, estimate: float) -> float:
    """The score of an article that has no distribution."""
    return np.inf if a + b <= 0.0 else within(estimate)


@inlined
def scored(
    rule: Counts, estimate: float, width: float, trials: int, root: np.uint64, key: np.uint64
) -> float:
    """The score. An article of which nothing is known comes first."""
    if rule.alpha == 0.0:
        return estimate
    if rule.kind == BETA:
        a, b = counted(rule, estimate, width)
        if a <= 0.0 or b <= 0.0:
            return certain(a, b, estimate)
        return beta_quantile(open_unit(root, key), a, b)
    if np.isinf(width):
        return np.inf
    if rule.kind == UCB1:
        return estimate + rule.alpha * math.sqrt(math.log(trials + 1.0)) * width
    return kl_bound(within(estimate), rule.alpha * math.log(trials + 1.0) * width * width)


@body(raised, instance_of(Counts), inline=True)
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
    if rule.kind == UCB1 and score > rival + near:  # a bonus is never negative
        return float(score)
    return float(scored(rule, score, width(state, a, x, segment), trials, root, key))


@body(draw, instance_of(Counts), inline=False)
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
        scores[j] = scored(rule, estimates[j], widths[j], trials, root, keys[j])


@body(distribute, instance_of(Counts), inline=False)
def _distribute(rule: Any, estimates: Any, widths: Any, trials: Any, out: Any, work: Any) -> None:
    count = estimates.shape[0]
    best, draws = -np.inf, False
    for j in range(count):
        work[j] = work[count + j] = 0.0
        if rule.kind == BETA and rule.alpha > 0.0:
            a, b = counted(rule, estimates[j], widths[j])
            if a > 0.0 and b > 0.0:
                draws = True
                work[j], work[count + j] = a, b
                out[j] = -np.inf
            else:
                out[j] = certain(a, b, estimates[j])
        else:
            out[j] = scored(rule, estimates[j], widths[j], trials, np.uint64(0), np.uint64(0))
        best = max(best, comparable(out[j]))
    ties = 0
    for j in range(count):
        ties += comparable(out[j]) == best
    for j in range(count):
        out[j] = 1.0 / ties if comparable(out[j]) == best else 0.0
    if draws and best < np.inf:
        win_chances(out, best, work)


@inlined
def odds(p: float) -> float:
    """Log-odds: the y with p = 1/(1 + e⁻ʸ)."""
    return math.log(p) - math.log1p(-p)


@inlined
def rest(y: float) -> float:
    """ln(1 + eʸ)."""
    return y + math.log1p(math.exp(-y)) if y > 0.0 else math.log1p(math.exp(y))


@compiled
def win_chances(out: Floats, exact: float, work: Floats) -> None:
    """The probability that each of some independent draws is the largest.

    `work` begins with all a, then all b, of the beta distributions. Where they are 0 there is no
    draw: the best of those scores is `exact`, and `out` says who shares it. They win if all draws
    are below it.
    """
    count = out.shape[0]
    a, b = work[:count], work[count : 2 * count]
    whole, high = work[2 * count : 3 * count], work[3 * count : 4 * count]
    spread, so_far = work[4 * count : 5 * count], work[5 * count : 6 * count]
    reached, values = work[6 * count : 7 * count], work[7 * count : (7 + _ORDER) * count]
    start, end = -np.inf, -np.inf
    if exact > 0.0:
        start = np.inf if exact >= 1.0 else odds(exact)
    for j in range(count):
        if a[j] > 0.0:
            whole[j] = log_beta(a[j], b[j])
            start = max(start, odds(max(beta_quantile(_TAIL, a[j], b[j]), 1e-300)))
            high[j] = odds(min(beta_quantile(1.0 - _TAIL, a[j], b[j]), 1.0 - 2.0**-53))
            variance = 1.0 / a[j] + 0.5 / a[j] ** 2 + 1.0 / b[j] + 0.5 / b[j] ** 2  # about
            spread[j] = min(math.sqrt(variance), 2.0)  # the poles are at ±iπ
            end = max(end, high[j])
    below = 1.0
    for j in range(count):
        if a[j] > 0.0:
            so_far[j] = beta_below(1.0 / (1.0 + math.exp(-start)), a[j], b[j], whole[j])
            below *= so_far[j]
    for j in range(count):
        out[j] *= below
    while start < end:
        panel = end - start
        for j in range(count):
            if a[j] > 0.0 and start < high[j]:
                panel = min(panel, _PANEL * spread[j])
        if start + panel <= start:  # narrower than a number can say
            break
        for i in range(_ORDER):
            y = start + 0.5 * panel * (1.0 + _NODES[i])
            for j in range(count):
                log_f = a[j] * y - (a[j] + b[j]) * rest(y) - whole[j] if a[j] > 0.0 else -np.inf
                values[i * count + j] = 0.5 * panel * math.exp(log_f)
        for i in range(_ORDER):
            product = _WEIGHTS[i]
            for j in range(count):
                if a[j] > 0.0:
                    reached[j] = so_far[j]
                    for k in range(_ORDER):
                        reached[j] += _UP_TO[i, k] * values[k * count + j]
                    product *= reached[j]
            for j in range(count):
                if values[i * count + j] > 0.0 and reached[j] > 0.0:
                    out[j] += product * values[i * count + j] / reached[j]
        for i in range(_ORDER):
            for j in range(count):
                so_far[j] += _WEIGHTS[i] * values[i * count + j]
        start += panel
    total = 0.0
    for j in range(count):
        total += out[j]
    for j in range(count):
        out[j] /= total
