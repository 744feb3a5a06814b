"""How much more deployment earns than stories at random, and how sure that is, in words."""

from __future__ import annotations

from math import isfinite

import msgspec

from topstory.anytime import anytime_lift

FEW = 30  # payoffs of a bucket: with fewer, nothing is said


class LiveLift(msgspec.Struct, frozen=True):
    """Deployment over uniform, as a share: 0.4 is 40 % more."""

    value: float | None  # None: too little was seen
    interval: tuple[float, float] | None  # it holds however often one looks
    words: str


def lift(
    deployment: tuple[float, float],
    uniform: tuple[float, float],
    payoffs: tuple[float, float] | None = (0.0, 1.0),
) -> LiveLift:
    """Of (shows, payoff) in both buckets, if payoffs are in that range.

    >>> lift((40_000, 2400), (10_000, 400)).words
    'certainly better'
    >>> lift((400, 24), (100, 3)).words
    'too early to say'
    """
    (shows, earned), (others, chance) = deployment, uniform
    if shows <= 0 or others <= 0 or chance <= 0 or earned < 0:
        return LiveLift(None, None, "too early to say")
    value = (earned / shows) / (chance / others) - 1
    if payoffs is None or payoffs[0] < 0:
        return LiveLift(value, None, "no interval: payoffs have no range (limits.payoffs)")
    most = payoffs[1]
    if earned > most * shows or chance > most * others:  # paid for before the range was set
        return LiveLift(value, None, "no interval: some payoffs were out of range")
    low, high = anytime_lift(shows, earned / most, others, chance / most)
    interval = (low, high) if isfinite(high) else None
    if min(earned, chance) < FEW * most:
        return LiveLift(value, interval, "too early to say")
    return LiveLift(value, interval, _words(low, high))


def _words(low: float, high: float) -> str:
    if low > 0:
        return "certainly better"
    if high < 0:
        return "certainly worse"
    if low > -0.05 and high < 0.05:
        return "about the same"
    if low > -0.1 and high > 0.1:
        return "probably better"
    return "not yet clear"
