"""Intervals that hold however often they are looked at while they grow: confidence sequences.

An ordinary 95 % interval is wrong once in twenty looks. Who looks every hour, and stops when it
looks good, is wrong far more often. These hold at all times at once: in 95 % of all streams not one
of their intervals, after any event, excludes the truth. They are nearly twice as wide.

Counts: against a true rate μ, bet on a mixture of all rates (Beta(½, ½)). The wealth

    M(μ) = B(½ + r, ½ + n − r) / (B(½, ½) μ^r (1 − μ)^(n − r))

is at most 1 on average, so it ever reaches 1/δ with probability δ at most (Ville). The interval is
where it has not. It holds for payoffs from 0 to 1 that do not depend on what is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Ends = tuple[float, float]

STEPS = 100  # halvings: to the last bit


def anytime_rate(trials: float, payoff: float, level: float = 0.95) -> Ends:
    """The interval of a rate that may be looked at after every trial.

    Args:
        trials: how many.
        payoff: what they paid in all; each paid 0 to 1.
        level: for all looks together.

    >>> low, high = anytime_rate(1000, 50)
    >>> round(low, 4), round(high, 4)
    (0.0287, 0.0792)
    >>> anytime_rate(0, 0)
    (0.0, 1.0)
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, such as 0.95, got {level!r}")
    if not 0 <= payoff <= trials:
        raise ValueError(
            "every trial must pay from 0 to 1 for such an interval: "
            f"{trials!r} trials paid {payoff!r}"
        )
    if not trials:
        return 0.0, 1.0
    limit = -math.log(1 - level)

    def inside(rate: float) -> bool:
        return log_wealth(trials, payoff, rate) < limit

    middle = payoff / trials
    return _edge(inside, middle, 0.0), _edge(inside, middle, 1.0)


def log_wealth(trials: float, payoff: float, rate: float) -> float:
    """Ln M: what betting against this rate has made of 1."""
    missed = trials - payoff
    if (rate <= 0 < payoff) or (rate >= 1 and missed > 0):
        return math.inf
    fit = payoff * math.log(rate) if payoff else 0.0
    fit += missed * math.log1p(-rate) if missed else 0.0
    mixture = math.lgamma(payoff + 0.5) + math.lgamma(missed + 0.5) - math.lgamma(trials + 1)
    return mixture - math.log(math.pi) - fit


def anytime_lift(
    trials: float, payoff: float, base_trials: float, base_payoff: float, level: float = 0.95
) -> Ends:
    """The lift of one rate over another, both of which may be looked at at any time.

    >>> low, high = anytime_lift(20_000, 1_200, 20_000, 800)
    >>> round(low, 2), round(high, 2)
    (0.15, 0.96)
    """
    each = 1 - (1 - level) / 2  # both hold, or one of them fails
    low, high = anytime_rate(trials, payoff, each)
    base_low, base_high = anytime_rate(base_trials, base_payoff, each)
    return low / base_high - 1, high / base_low - 1 if base_low else math.inf


class AnytimeValue:
    """The value of a policy from weighted events, one by one (Waudby-Smith et al. 2022).

    X = w r with r from 0 to 1 is predicted by the mean of those before, at most 1. With the squares
    V = Σ(X − X̂)² and S = Σ(X − μ) the wealth is a gamma-exponential mixture (Howard et al. 2021)

        ln M = S + V − (V + 1) ln(S + V + 1) + ln γ(V + 1, S + V + 1) − ln γ(1, 1)

    and μ is excluded from below where it reaches 2/δ; from above, by the same of w (1 − r).

    >>> value = AnytimeValue()
    >>> for _ in range(500):
    ...     value.add(weight=2.0, payoff=0.5)
    ...     value.add(weight=0.0, payoff=0.5)
    >>> low, high = value.interval()
    >>> 0.3 < low < 0.5 < high < 0.7
    True
    """

    def __init__(self) -> None:
        self.events = 0
        self._paid, self._missed = _Stream(), _Stream()

    def add(self, weight: float, payoff: float) -> None:
        """Take in an event: its weight π/p, and its payoff from 0 to 1."""
        if not (weight >= 0 and 0 <= payoff <= 1):
            raise ValueError(
                "an event needs a weight of at least 0 and a payoff from 0 to 1, got "
                f"{weight!r} and {payoff!r}"
            )
        self.events += 1
        self._paid.add(weight * payoff)
        self._missed.add(weight * (1 - payoff))

    def interval(self, level: float = 0.95) -> Ends:
        """Now; it holds at every other time as well."""
        if not self.events:
            return 0.0, 1.0
        low = max(0.0, self._paid.lower(level))
        return low, max(low, min(1.0, 1 - self._missed.lower(level)))


class _Stream:
    """Sums of numbers that are at least 0."""

    def __init__(self) -> None:
        self.count, self.total, self.squares = 0, 0.0, 0.0

    def add(self, number: float) -> None:
        self.count += 1
        predicted = min(1.0, (0.5 + self.total) / self.count)
        self.total += number
        self.squares += (number - predicted) ** 2

    def lower(self, level: float) -> float:
        """The lower limit of the mean, at half of the error."""
        limit = math.log(2 / (1 - level))

        def inside(distance: float) -> bool:
            return log_mixture(distance, self.squares) < limit

        far = 1.0
        while inside(far):
            far *= 2
        return (self.total - _edge(inside, 0.0, far)) / self.count


def log_mixture(distance: float, squares: float) -> float:
    """Ln M at S = distance and V = squares."""
    from scipy.special import gammainc

    shape, at = squares + 1.0, distance + squares + 1.0
    lower = math.log(float(gammainc(shape, at))) + math.lgamma(shape)  # ln γ(shape, at)
    return distance + squares - shape * math.log(at) + lower - math.log(float(gammainc(1.0, 1.0)))


def _edge(inside: Callable[[float], bool], start: float, end: float) -> float:
    """Where `inside` ends on the way from start, which is inside, to end."""
    if inside(end):
        return end
    for _ in range(STEPS):
        middle = (start + end) / 2
        start, end = (middle, end) if inside(middle) else (start, middle)
    return end
