"""What an evaluation found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from topstory.evaluation.intervals import Interval

MAX_LIFT = 10.0  # that is written as a number


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
    days_needed: int | None = None  # by a log that could speak of others, at least

    @property
    def best_interval(self) -> Interval:
        """For days like these or, where the log is too short for that, for these days."""
        return self.these_days if self.too_short else self.interval

    def around(self, value: float) -> Quantity:
        """Another estimate of the same, with these intervals, stretched so that they hold it.

        >>> both = Interval(0.08, 0.12)
        >>> Quantity(0.1, both, both).around(0.13).interval
        Interval(low=0.08, high=0.13)
        """
        such, these = (
            Interval(min(each.low, value), max(each.high, value))
            for each in (self.interval, self.these_days)
        )
        return replace(self, value=value, interval=such, these_days=these)


def lift_number(lift: float) -> str:
    """A lift in percent; beyond ten times as much, that it is more.

    >>> lift_number(0.0512), lift_number(-1.0), lift_number(8.5e9)
    ('+5.1', '-100.0', '> +1,000')
    """
    return f"{100 * lift:+.1f}" if lift <= MAX_LIFT else f"> +{100 * MAX_LIFT:,.0f}"


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
    # Estimated propensities may have odds off by this factor, and the lift's interval would still
    # exclude 0; None: they were recorded, or the interval does not exclude 0 anyway.
    robust_to: float | None = None


@dataclass(frozen=True)
class WeightBin:
    """Events whose weights are above `low`, up to `high`; the first are those with weight 0."""

    low: float
    high: float
    events: float  # their share of all events
    weight: float  # their share of all weight


@dataclass(frozen=True)
class ArticleSupport:
    """One article: how the log showed it, and how the policy would."""

    article: str
    offered: int  # visits whose pool had it
    shown: int
    wanted: float  # share of visits in which the policy would show it, as far as the log tells
    mean_weight: float  # Σ 1/p where shown / offered: 1 if the propensities are right
    error: float  # its standard error, as if events were independent


@dataclass(frozen=True)
class Examination:
    """Of one policy."""

    policy: str
    weights: tuple[WeightBin, ...]
    articles: tuple[ArticleSupport, ...]  # those it would show most
    estimates: Mapping[str, Quantity]  # the value by every estimator
    turns: tuple[str, ...]  # what would change the conclusion, in words


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
    propensities: str  # where they are from, in words
    seconds: float = field(compare=False)  # that the judging took
    # A closer look at each policy, if it was asked for; the baseline has none.
    examined: Mapping[str, Examination] = field(default_factory=dict, repr=False)

    def __getitem__(self, policy: str) -> PolicyValue:
        return self.values[policy]

    def __repr__(self) -> str:
        found = ", ".join(f"{name} {each.value.value:.4f}" for name, each in self.values.items())
        return f"<Evaluation by {self.estimator}: {found}; logged {self.logged.value:.4f}>"
