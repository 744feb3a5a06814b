"""What an evaluation found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from topstory.evaluation.intervals import Interval


@dataclass(frozen=True)
class Quantity:
    """A number with its 95 % intervals; nan where nothing can be said.

    >>> Quantity(0.1, Interval(0.08, 0.12), Interval(0.09, 0.11)).interval.low
    0.08
    """

    value: float
    interval: Interval  # for days like these; nan where the log is too short for that
    these_days: Interval  # for these very days: other clicks, and other visitors if known
    too_short: bool = False  # rates change so slowly that only these days can be spoken of

    @property
    def best_interval(self) -> Interval:
        """For days like these or, where the log is too short for that, for these days."""
        return self.these_days if self.too_short else self.interval


@dataclass(frozen=True)
class PolicyValue:
    """What one policy would earn, and how much of the log speaks about it."""

    policy: str
    value: Quantity  # payoff per visit
    lift: Quantity  # over the baseline: 0.1 is 10 % more
    smallest_lift: float  # that such a log shows with 80 % probability, at 5 %
    mean_weight: Quantity  # Σw/n: 1 if propensities are right and reach all that the policy shows
    effective_events: float  # as many events with equal weights are as good: (Σw)²/Σw²
    largest_share: float  # of one event in all weights
    unsupported: float  # share of what the policy shows that the log never shows, at least
    parameter: float | None  # τ or λ, chosen by the log; None: the estimator has none
    cautions: tuple[str, ...]  # what a reader must know before using the value


@dataclass(frozen=True)
class Evaluation:
    """The values of policies on one log."""

    values: Mapping[str, PolicyValue]
    logged: Quantity  # what the log itself earned per visit
    estimator: str
    baseline: str
    bucket: str
    events: int  # that judged
    trained_events: int  # before those, that policies given by name learned from
    binary: bool  # whether every payoff is 0 or 1
    covers: str  # which randomness the intervals cover, in words
    seconds: float = field(compare=False)  # that the judging took

    def __getitem__(self, policy: str) -> PolicyValue:
        return self.values[policy]

    def __repr__(self) -> str:
        found = ", ".join(f"{name} {each.value.value:.4f}" for name, each in self.values.items())
        return f"<Evaluation by {self.estimator}: {found}; logged {self.logged.value:.4f}>"
