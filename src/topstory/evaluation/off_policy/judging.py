"""From weighted events to values with intervals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from topstory.evaluation.dependence import ENOUGH
from topstory.evaluation.intervals import quantile
from topstory.evaluation.off_policy.cautions import cautions, estimated
from topstory.evaluation.off_policy.estimators.dr import Dr
from topstory.evaluation.off_policy.estimators.weighted_events import Estimator, WeightedEvents
from topstory.evaluation.off_policy.quantities import UNKNOWN_QUANTITY, mean_of, ratio_of, share_of
from topstory.evaluation.off_policy.sensitivity import robust_to
from topstory.evaluation.off_policy.together import level_for_all
from topstory.evaluation.off_policy.value import PolicyValue, Quantity
from topstory.evaluation.replays.prepared_log import chunks
from topstory.evaluation.uncertainty.clusters import ClusteredSums, clustered_sums
from topstory.events import EventLog
from topstory.kernels.compilation import Floats

LOGGED = "logged"
POWER = 0.8
PER_POLICY = 3  # columns: numerator, denominator, weight


class Judge(ABC):
    """The sums of all policies over one log; their columns end with the payoff and the count."""

    binary: bool  # whether every payoff is 0 or 1
    recorded: bool  # whether the log has propensities
    estimate: str | None  # how they were estimated; None: they were not
    sums: ClusteredSums

    def __init__(self, names: Sequence[str], estimators: Mapping[str, Estimator]) -> None:
        self._names, self._estimators = list(names), estimators
        self._width = judged_width(len(names))

    @property
    def _total(self) -> Floats:
        return self.sums.total

    @property
    @abstractmethod
    def _unbiased(self) -> Judge:
        """Of the same events by dr: a bias cannot be seen, so intervals are those without one."""

    @abstractmethod
    def _sizes(self, name: str) -> WeightSizes:
        """Of the weights of a policy."""

    @abstractmethod
    def _moments(self, name: str, value: float) -> tuple[float, float]:
        """Σe² and Σe⁴ of the errors e = numerator − value · denominator."""

    @abstractmethod
    def _robust(self, name: str, baseline: str) -> float | None:
        """How wrong estimated propensities may be, if that is known: see `robust_to`."""

    def logged(self) -> Quantity:
        """What the log itself earned."""
        value, gradient = self._ratio(-2, -1)
        error = self.sums.error(gradient, self._column(-1))
        return share_of(value, error, self._total[-1]) if self.binary else mean_of(value, error)

    def value(self, name: str, baseline: str) -> PolicyValue:
        """What one policy would earn."""
        i = PER_POLICY * self._names.index(name)
        estimator, weights = self._estimators[name], self._sizes(name)
        value, gradient = self._ratio(i, i + 1)
        sizes = self._column(-1 if estimator.name == "dm" else i + 2)
        error = self.sums.error(gradient, sizes).limited(self._telling(name, value))
        total = float(self._total[i + 2])
        effective = total**2 / weights.squares if weights.squares else 0.0
        share = weights.largest / total if total else 0.0
        mean, mean_gradient = self._ratio(i + 2, -1)
        mean_error = self.sums.error(mean_gradient, self._column(-1))
        mean_weight = mean_of(mean, mean_error)
        bounded = self.binary and estimator.name == "snips"
        lift, smallest = self._lift(name, value, gradient, baseline, sizes)
        worth = share_of(value, error, effective) if bounded else mean_of(value, error)
        if estimator.biased:
            exact = self._unbiased.value(name, baseline)
            worth, lift = exact.value.around(worth.value), exact.lift.around(lift.value)
            smallest = exact.smallest_lift
        warned = list(cautions(estimator.name, mean_weight, effective, share, worth))
        robust = None
        if self.estimate is not None:
            robust = None if name == baseline else self._robust(name, baseline)
            warned.append(estimated(lift, robust))
        return PolicyValue(
            policy=name,
            value=worth,
            lift=lift,
            smallest_lift=smallest,
            mean_weight=mean_weight,
            effective_events=effective,
            largest_share=share,
            unsupported=max(0.0, 1 - mean) if mean_weight.best_interval.high < 1 else 0.0,
            parameter=estimator.parameter,
            cautions=tuple(warned),
            robust_to=robust,
        )

    def covers(self) -> str:
        """Which randomness the intervals cover, in words."""
        what = "clicks" if self.binary else "payoffs"
        when = "runs of events" if self.sums.blocks.origin is None else "hours"
        if self.sums.these_hours:
            who = "other clicks and other visitors" if self.sums.returning else "other clicks"
            return (
                f"{who} in these very hours; to speak of others, a log has {ENOUGH} hours or more"
            )
        if self.sums.returning:
            return f"other {what}, other visitors and other {when} like those of this log"
        return f"other {what} and other {when} like those of this log; visitors as if never twice"

    def propensities(self) -> str:
        """Where the log's propensities are from, in words."""
        if self.estimate is not None:
            return f"estimated, not recorded: {self.estimate}"
        return "as recorded" if self.recorded else "taken to be 1 / the pool's size"

    def lifts_together(self, baseline: str) -> dict[str, Quantity]:
        """The lift of every policy, with intervals that hold for all of them at once."""
        known = {}
        for name in self._names:
            place = PER_POLICY * self._names.index(name)
            ratio, gradient = self._log_ratio(*self._ratio(place, place + 1), baseline)
            known[name] = (place, ratio, gradient)
        level = level_for_all(self.sums, [gradient for _, _, gradient in known.values()])
        return {
            name: ratio_of(
                ratio,
                self.sums.error(gradient, self._column(place + 2)).limited(
                    self._telling(name, self._ratio(place, place + 1)[0])
                ),
                level,
            )
            if ratio > 0
            else UNKNOWN_QUANTITY
            for name, (place, ratio, gradient) in known.items()
        }

    def _log_ratio(self, value: float, gradient: Floats, baseline: str) -> tuple[float, Floats]:
        """The value over the baseline's, and the gradient of its logarithm; nan if one is 0."""
        place = PER_POLICY * self._names.index(baseline) if baseline != LOGGED else -2
        base, base_gradient = self._ratio(place, place + 1)
        if not (value > 0 and base > 0):
            return float("nan"), np.zeros(self._width)
        return value / base, gradient / value - base_gradient / base

    def _telling(self, name: str, value: float) -> float:
        """How many events the variance of a value rests on: (Σe²)²/Σe⁴ of their errors e.

        A few clicks with large weights make nearly all of it; then it is hardly known itself, and
        an interval with the freedom of its many blocks would be too narrow.
        """
        second, fourth = self._moments(name, value)
        return max(1.0, second**2 / fourth) if fourth > 0 else np.inf

    def _lift(
        self, name: str, value: float, gradient: Floats, baseline: str, sizes: Floats
    ) -> tuple[Quantity, float]:
        ratio, log_gradient = self._log_ratio(value, gradient, baseline)
        if not ratio > 0:
            return UNKNOWN_QUANTITY, float("nan")
        error = self.sums.error(log_gradient, sizes).limited(self._telling(name, value))
        found = ratio_of(ratio, error)
        spread, degrees = error.these_days if found.too_short else error.such_days
        if degrees < 1:
            return found, float("nan")
        reach = quantile(degrees, 0.95) + quantile(degrees, 2 * POWER - 1)
        return found, float(np.expm1(reach * spread**0.5))

    def _ratio(self, over: int, under: int) -> tuple[float, Floats]:
        """Σ one column / Σ another, and what a cluster's sums add to its error."""
        gradient, total = np.zeros(self._width), float(self._total[under])
        if total == 0:
            return float("nan"), gradient
        value = float(self._total[over]) / total
        gradient[over], gradient[under] = 1 / total, -value / total
        return value, gradient

    def _column(self, place: int) -> Floats:
        one = np.zeros(self._width)
        one[place] = 1.0
        return one


class LogJudge(Judge):
    """Of a log in memory."""

    def __init__(
        self,
        log: EventLog,
        events: Mapping[str, WeightedEvents],
        estimators: Mapping[str, Estimator],
    ) -> None:
        super().__init__(list(events), estimators)
        self.events, self._log = events, log
        payoff = next(iter(events.values())).payoff
        self.binary = bool(np.isin(payoff, (0.0, 1.0)).all())
        self.recorded = log.recorded_propensity is not None
        self.estimate = log.propensity_estimate

        def columns(start: int, stop: int) -> Floats:
            parts = {name: each.part(start, stop) for name, each in events.items()}
            return judged_columns(parts, estimators)

        self.sums = clustered_sums(log, self._width, columns)

    @cached_property
    def _unbiased(self) -> Judge:
        return LogJudge(self._log, self.events, dict.fromkeys(self._names, Dr()))

    def _sizes(self, name: str) -> WeightSizes:
        return WeightSizes.of(self.events[name].weight)

    def _moments(self, name: str, value: float) -> tuple[float, float]:
        second = fourth = 0.0
        for start, stop in chunks(len(self._log)):  # part by part: whole columns take memory
            terms = self._estimators[name].terms(self.events[name].part(start, stop))
            squares = (terms.numerator - value * terms.denominator) ** 2
            second += float(squares.sum())
            fourth += float(squares @ squares)
        return second, fourth

    def _robust(self, name: str, baseline: str) -> float | None:
        base = None if baseline == LOGGED else self.events[baseline]
        return robust_to(self._log, self.events[name], base)


class WeightSizes(NamedTuple):
    """What is reported of weights, beside their sum."""

    squares: float
    largest: float

    @classmethod
    def of(cls, weight: Floats) -> WeightSizes:
        """Of these."""
        return cls(float(weight @ weight), float(weight.max(initial=0.0)))


def judged_width(policies: int) -> int:
    """How many columns a judge of so many policies adds up."""
    return PER_POLICY * policies + 2


def judged_columns(
    events: Mapping[str, WeightedEvents], estimators: Mapping[str, Estimator]
) -> Floats:
    """(q, n) what the same events of all policies add to the sums."""
    payoff = next(iter(events.values())).payoff
    found = np.ones((judged_width(len(events)), len(payoff)))
    for i, (name, own) in enumerate(events.items()):
        terms = estimators[name].terms(own)
        found[PER_POLICY * i] = terms.numerator
        found[PER_POLICY * i + 1] = terms.denominator
        found[PER_POLICY * i + 2] = own.weight
    found[-2] = payoff
    return found
