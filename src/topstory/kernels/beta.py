"""The beta distribution in kernels: its distribution function and its quantiles."""

import math

from topstory.kernels.compilation import compiled, inlined
from topstory.kernels.normal import quantile

_TINY = 1e-300
_MAX_TERMS = 100_000  # about √(a + b) are needed
_MAX_STEPS = 100


@inlined
def log_beta(a: float, b: float) -> float:
    """Ln B(a, b)."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@inlined
def fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    found = d
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        step = 1.0
        for term in (even, odd):
            d = 1.0 + term * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + term / c
            c = c if abs(c) > _TINY else _TINY
            step = c * d
            found *= step
        if abs(step - 1.0) < 3e-16:
            break
    return found


@compiled
def beta_below(x: float, a: float, b: float, log_whole: float) -> float:
    """The probability of less than x; `log_whole` is ln B(a, b)."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    scale = math.exp(a * math.log(x) + b * math.log1p(-x) - log_whole)
    if x < (a + 1.0) / (a + b + 2.0):
        return scale * fraction(x, a, b) / a
    return 1.0 - scale * fraction(1.0 - x, b, a) / b


@compiled
def beta_quantile(u: float, a: float, b: float) -> float:
    """The x with a probability of u below it, for a, b > 0: Newton's method, held in a bracket."""
    log_whole = log_beta(a, b)
    if a >= 1.0 and b >= 1.0:  # Abramowitz and Stegun, 26.5.22
        z = -quantile(u)
        al, h = (z * z - 3.0) / 6.0, 2.0 / (1.0 / (2.0 * a - 1.0) + 1.0 / (2.0 * b - 1.0))
        w = z * math.sqrt(max(al + h, 0.0)) / h
        w -= (1.0 / (2.0 * b - 1.0) - 1.0 / (2.0 * a - 1.0)) * (al + 5.0 / 6.0 - 2.0 / (3.0 * h))
        x = a / (a + b * math.exp(min(2.0 * w, 700.0)))
    else:  # the two ends, as powers of x and of 1 − x
        low = math.exp(a * math.log(a / (a + b))) / a
        whole = low + math.exp(b * math.log(b / (a + b))) / b
        if u < low / whole:
            x = (a * whole * u) ** (1.0 / a)
        else:
            x = 1.0 - (b * whole * (1.0 - u)) ** (1.0 / b)
    low, high = 0.0, 1.0
    for _ in range(_MAX_STEPS):
        if not low < x < high:
            x = 0.5 * (low + high)
        if not low < x < high:
            break
        off = beta_below(x, a, b, log_whole) - u
        if off > 0.0:
            high = x
        else:
            low = x
        density = math.exp((a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x) - log_whole)
        step = off / density if density > 0.0 else math.inf
        x -= step
        if abs(step) <= 1e-8 * x:  # the next one would be its square
            break
    return min(max(x, 0.0), 1.0)
