"""From weighted events to values with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from topstory.evaluation.intervals import quantile
from topstory.evaluation.off_policy.cautions import cautions, estimated
from topstory.evaluation.off_policy.estimators.dr import Dr
from topstory.evaluation.off_policy.estimators.weighted_events import Estimator, WeightedEvents
from topstory.evaluation.off_policy.quantities import UNKNOWN_QUANTITY, mean_of, ratio_of, share_of
from topstory.evaluation.off_policy.sensitivity import robust_to
from topstory.evaluation.off_policy.together import level_for_all
from topstory.evaluation.off_policy.value import PolicyValue, Quantity
from topstory.evaluation.uncertainty.clusters import ClusteredSums, clustered_sums
from topstory.events import EventLog
from topstory.kernels.compilation import Floats

LOGGED = "logged"
POWER = 0.8
PER_POLICY = 3  # columns: numerator, denominator, weight


class Judge:
    """The sums of all policies over one log; their columns end with the payoff and the count."""

    def __init__(
        self,
        log: EventLog,
        events: Mapping[str, WeightedEvents],
        estimators: Mapping[str, Estimator],
    ) -> None:
        self._names, self.events, self._estimators = list(events), events, estimators
        self._log = log
        self._width = PER_POLICY * len(events) + 2
        payoff = next(iter(events.values())).payoff
        self.binary = bool(np.isin(payoff, (0.0, 1.0)).all())

        def columns(start: int, stop: int) -> Floats:
            found = np.ones((self._width, stop - start))
            for i, name in enumerate(self._names):
                part = events[name].part(start, stop)
                terms = estimators[name].terms(part)
                found[PER_POLICY * i] = terms.numerator
                found[PER_POLICY * i + 1] = terms.denominator
                found[PER_POLICY * i + 2] = part.weight
            found[-2] = payoff[start:stop]
            return found

        self.sums: ClusteredSums = clustered_sums(log, self._width, columns)
        self._total = self.sums.total

    @cached_property
    def _unbiased(self) -> Judge:
        """Of the same events by dr: a bias cannot be seen, so intervals are those without one."""
        return Judge(self._log, self.events, dict.fromkeys(self._names, Dr()))

    def logged(self) -> Quantity:
        """What the log itself earned."""
        value, gradient = self._ratio(-2, -1)
        error = self.sums.error(gradient, self._column(-1))
        return share_of(value, error, self._total[-1]) if self.binary else mean_of(value, error)

    def value(self, name: str, baseline: str) -> PolicyValue:
        """What one policy would earn."""
        i = PER_POLICY * self._names.index(name)
        estimator, weight = self._estimators[name], self.events[name].weight
        value, gradient = self._ratio(i, i + 1)
        sizes = self._column(-1 if estimator.name == "dm" else i + 2)
        error = self.sums.error(gradient, sizes).limited(self._telling(name, value))
        squares, total = float(weight @ weight), float(self._total[i + 2])
        effective = total**2 / squares if squares else 0.0
        share = float(weight.max(initial=0.0)) / total if total else 0.0
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
        warned = list(cautions(estimator.name, mean_weight, effective, share, worth.too_short))
        robust = None
        if self._log.propensity_estimate is not None:
            base = None if baseline == LOGGED else self.events[baseline]
            if name != baseline:
                robust = robust_to(self._log, self.events[name], base)
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
        when = "runs of events" if self.sums.blocks.origin is None else "hours"
        if self.sums.returning:
            return f"other clicks, other visitors and other {when} like those of this log"
        return f"other clicks and other {when} like those of this log; visitors as if never twice"

    def propensities(self) -> str:
        """Where the log's propensities are from, in words."""
        if self._log.propensity_estimate is not None:
            return f"estimated, not recorded: {self._log.propensity_estimate}"
        recorded = self._log.recorded_propensity is not None
        return "as recorded" if recorded else "taken to be 1 / the pool's size"

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
        terms = self._estimators[name].terms(self.events[name])
        squares = terms.numerator - value * terms.denominator
        squares *= squares
        fourth = float(squares @ squares)
        return max(1.0, float(squares.sum()) ** 2 / fourth) if fourth > 0 else np.inf

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
