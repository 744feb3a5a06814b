"""The arithmetic: machines for a rate, each at most so busy."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from benchmarks.capacity.costs import Costs

BUSY = 0.6  # of a core or a learner: the rest is for bursts, and for what a failed machine leaves
FEWEST = 2  # front ends: one may fail


class Need(NamedTuple):
    """What a rate needs."""

    rate: float  # decisions a second
    payoffs: float  # for each
    fronts: int  # cores of front ends
    learners: int  # and as many databases, with at least as many pools
    database_cores: float  # busy ones, in all
    log: float  # bytes of write-ahead log a second, in all
    rows: float  # a day


def most(costs: Costs, payoffs: float) -> float:
    """Decisions a second that one learner takes."""
    return BUSY / costs.folding(1.0, payoffs)


def need(costs: Costs, rate: float, payoffs: float) -> Need:
    """Reckoned from the costs of a request.

    >>> need(Costs(), 10_000, 0.1).learners
    1
    """
    return Need(
        rate,
        payoffs,
        max(FEWEST, ceil(rate * costs.front(1.0, payoffs) / BUSY)),
        ceil(rate / most(costs, payoffs)),
        rate * costs.in_database(1.0, payoffs),
        rate * costs.logged(1.0, payoffs),
        rate * (1 + payoffs) * 86_400,
    )
