"""The true value of a policy in a simulated world: what its trials pay on average, without luck.

Clicks are drawn with probabilities that the simulator knows. The policy learns from the clicks; its
value counts the probability of each retained event instead. So the luck of the clicks that are
counted is gone, and that of the learning path remains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topstory.events import EventLog
from topstory.kernels.buckets import DEPLOYMENT, LEARNING
from topstory.kernels.compilation import Floats, Slots
from topstory.kernels.scans.replay import TRIALS, ReplaySums


@dataclass(frozen=True, eq=False)
class ExpectedPayoffs:
    """What the shown article of each event pays on average, and what random articles pay."""

    payoffs: Floats  # (n,)
    random: float

    @classmethod
    def of(cls, payoffs: Floats, log: EventLog) -> ExpectedPayoffs:
        """With random articles' mean, weighted as the plain CTR is: by one over the pool's size."""
        if payoffs.shape != (len(log),):
            raise ValueError(
                f"a log of {len(log)} events needs as many expected payoffs, got the shape "
                f"{payoffs.shape}"
            )
        weights = 1.0 / log.pool_sizes[log.pool]
        return cls(payoffs, float((weights * payoffs).sum() / weights.sum()))


class TrueValue:
    """Counts the expected payoff of each bucket's trials while one replay goes on.

    The kernel sums by block: with every event as a block of its own, the sums say which events
    were retained.
    """

    def __init__(self, expected: ExpectedPayoffs, log: EventLog) -> None:
        if len(expected.payoffs) != len(log):
            raise ValueError(
                f"these expected payoffs are of a log of {len(expected.payoffs)} events, and this "
                f"one has {len(log)}"
            )
        self.expected = expected
        self.payoff, self.trials = np.zeros(2), np.zeros(2)

    def by_event(self, sums: ReplaySums, events: int) -> ReplaySums:
        """Where the kernel counts a chunk: each event on its own, the articles as they are."""
        return ReplaySums(np.zeros((2, events, 4)), sums.articles)

    def add(self, counted: ReplaySums, start: int, blocks: Slots, sums: ReplaySums) -> None:
        """Take in a chunk, and add it to the log's own blocks."""
        for bucket in (DEPLOYMENT, LEARNING):
            kept = np.flatnonzero(counted.blocks[bucket, :, TRIALS])
            np.add.at(sums.blocks[bucket], blocks[kept], counted.blocks[bucket, kept])
            self.payoff[bucket] += self.expected.payoffs[start + kept].sum()
            self.trials[bucket] += len(kept)

    def relative_ctr(self) -> dict[str, float]:
        """By bucket: relative to articles shown at random; nan without trials."""
        with np.errstate(invalid="ignore"):
            values = self.payoff / self.trials / self.expected.random
        return {"deployment": float(values[DEPLOYMENT]), "learning": float(values[LEARNING])}
