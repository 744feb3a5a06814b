"""Levers: what editors set on single articles, beside what the policy has learned.

A pin gives an article a slot of the page until a time, a boost multiplies what is expected of it,
and limits hold it back: after so many shows, or from a random part of the visits. The uniform
bucket knows no pins and no boosts, so that what is measured there stays fair; limits hold there,
too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

import numpy as np

from topstory.kernels.compilation import Floats
from topstory.serving.journal.records import Levers

STORY = 1  # the slot that decisions are about


class Levered(Protocol):
    """An article with levers, or without."""

    @property
    def levers(self) -> Levers | None:
        """What an editor set."""
        ...

    @property
    def exhausted(self) -> bool:
        """Whether it was shown as often as it may be."""
        ...


@dataclass(frozen=True, eq=False)
class LeverPlan:
    """The levers of a pool at one time."""

    pins: Mapping[int, str]  # by slot
    factors: Mapping[str, float]
    shares: Mapping[str, float]  # of visits, below 1
    exhausted: tuple[str, ...]

    def thinned(self, ids: tuple[str, ...], seed: int, number: int) -> tuple[str, ...]:
        """The articles that this visit does not get: the same for the same number."""
        here = [(article, share) for article, share in self.shares.items() if article in ids]
        held = [a for a, share in here if chance(seed, number, f"share {a}") >= share]
        # Something must be shown: where limits would leave nothing, they do not hold.
        return tuple(held) if len(held) < len(ids) else ()

    def boosted(self, ids: tuple[str, ...], estimates: Floats) -> Floats:
        """What is expected, times the factors; below 0 a boost leads towards 0, too."""
        factors = np.array([self.factors.get(article, 1.0) for article in ids])
        return estimates + (factors - 1.0) * np.abs(estimates)


def plan_of(articles: Mapping[str, Levered], at: int) -> LeverPlan | None:
    """The plan of these articles at a time; None if no lever holds."""
    pins, factors, shares, exhausted = {}, {}, {}, []
    for article, each in articles.items():
        levers = each.levers
        if levers is None:
            continue
        if each.exhausted:
            exhausted.append(article)
            continue
        if is_pinned(levers, at):
            pins[levers.pin or STORY] = article
        if levers.boost != 1.0:
            factors[article] = levers.boost
        if levers.share < 1.0:
            shares[article] = levers.share
    if not (pins or factors or shares or exhausted):
        return None
    return LeverPlan(pins, factors, shares, tuple(exhausted))


def is_pinned(levers: Levers, at: int) -> bool:
    """Whether its pin holds at this time.

    >>> is_pinned(Levers(pin=1, pin_until=10), 9), is_pinned(Levers(pin=1, pin_until=10), 10)
    (True, False)
    """
    return levers.pin is not None and (levers.pin_until is None or at < levers.pin_until)


def chance(seed: int, number: int, what: str) -> float:
    """A number from 0 to 1 that depends on these alone, and is independent of any other.

    >>> chance(1, 2, "choice") == chance(1, 2, "choice") != chance(1, 3, "choice")
    True
    """
    digest = blake2b(f"{seed} {number} {what}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) * 2.0**-53
