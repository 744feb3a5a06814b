"""Kernels compiled before they are needed: at installation, or when an image is built."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter

import numpy as np

from topstory.evaluation.replays.replay import replay
from topstory.events import EventLog
from topstory.policies import Policy
from topstory.policies.registry import policy

POLICIES = ("ucb", "linucb-disjoint", "linucb-hybrid")  # ε-greedy has their kernels, too
DIMENSION = 6  # of the paper's contexts and articles, the constant included
MAX_DIMENSION = 100
EVENTS = 300


def compile_kernels(
    policies: Iterable[str] = POLICIES,
    dimension: int = DIMENSION,
    progress: Callable[[str, float], None] | None = None,
) -> None:
    """Compile what a first replay would wait for, and keep it on disk.

    A later replay of these policies, in whatever process, finds it there if contexts and articles
    have `dimension` numbers each. For other numbers it finds those kernels that do not depend on
    them.

    Args:
        policies: names of policies.
        dimension: numbers in a context and in an article's features, the constant included.
        progress: called after each policy, with its name and the seconds that it took.

    >>> compile_kernels(["random"], dimension=2)
    """
    if not 1 <= dimension <= MAX_DIMENSION:
        raise ValueError(f"dimension must be from 1 to {MAX_DIMENSION}, got {dimension!r}")
    named = {name: _made(name) for name in policies}
    log = _small_log(dimension)
    for name, each in named.items():
        began = perf_counter()
        replay(each, log)
        if progress is not None:
            progress(name, perf_counter() - began)


def _made(name: str) -> Policy:
    try:
        return policy(name)
    except TypeError as error:  # it starts from something that only a log can give
        raise ValueError(f"{error}; its kernels are compiled by its first replay") from None


def _small_log(dimension: int) -> EventLog:
    """A log of the usual types; what is in it does not matter."""
    ids, number = ["a", "b"], np.arange(EVENTS)
    return EventLog.from_arrays(
        users=np.ones((EVENTS, dimension)),
        pools=[ids],
        pool=np.zeros(EVENTS, int),
        shown=[ids[each % 2] for each in number],
        payoff=number % 3 == 0,
        articles={each: np.ones(dimension) for each in ids},
    )
