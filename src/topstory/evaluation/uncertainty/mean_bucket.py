"""One bucket of a policy over several seeds: the mean over learning paths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from topstory.evaluation.intervals import NO_VARIANCE, Interval, Variance, rate_interval
from topstory.evaluation.result import ALL_LEVELS, Bucket, visitor_columns
from topstory.evaluation.uncertainty.next_period import NextPeriod, next_period
from topstory.evaluation.uncertainty.paths import path_ends, shared_luck, value_overlap
from topstory.evaluation.uncertainty.repeats import Estimate, added, mean_relative_ctr
from topstory.evaluation.visitor_groups import VisitorSums
from topstory.kernels.compilation import Floats
from topstory.kernels.scans.replay import PAYOFF, TRIALS, WEIGHT, WEIGHTED_PAYOFF


@dataclass(frozen=True, repr=False)
class MeanBucket:
    """What a bucket earned over all seeds. With one seed it is that run's `Bucket`.

    Intervals cover the clicks and hours of this log, its visitors where they are known to return
    and, with several seeds, the learning path. They are nan where the log is too short for how
    slowly its rates change. They say nothing of other days: `next_period` does.
    """

    runs: tuple[Bucket, ...]  # one for each seed

    @property
    def trials(self) -> int:
        """How many events a run retained, on average."""
        return round(float(self._sums[:, TRIALS].sum()) / len(self.runs))

    @property
    def expected_trials(self) -> float:
        """How many events any policy retains of a uniform log, on average: Σ 1/K."""
        return float(self._log_sums[:, TRIALS].sum()) / len(self.runs)

    @property
    def payoff(self) -> float:
        """What they paid, on average."""
        return float(self._sums[:, PAYOFF].sum()) / len(self.runs)

    @property
    def ctr(self) -> float:
        """Payoff for each trial; nan without trials."""
        return _rate(self._sums, TRIALS, PAYOFF)

    @property
    def weighted_ctr(self) -> float:
        """The CTR with each trial weighted by its pool's size."""
        return _rate(self._sums, WEIGHT, WEIGHTED_PAYOFF)

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the CTR."""
        return self._interval(TRIALS, PAYOFF)

    @property
    def too_short(self) -> bool:
        """Whether CTRs change so slowly that this log is too short to say how sure they are."""
        return self.runs[0].too_short

    @property
    def these_hours(self) -> bool:
        """Whether intervals are for the log's own hours: it has too few to speak of others."""
        return self.runs[0].these_hours

    @property
    def days_needed(self) -> int | None:
        """The days that a log needs at least, to say more; None: enough, or days are not known."""
        return self.runs[0].days_needed

    @property
    def weighted_interval(self) -> Interval:
        """The 95 % interval of the pool-weighted CTR."""
        return self._interval(WEIGHT, WEIGHTED_PAYOFF)

    @property
    def relative_ctr(self) -> float:
        """The CTR divided by the random policy's."""
        return _ratio(self.ctr, _rate(self._log_sums, TRIALS, PAYOFF))

    @property
    def relative_interval(self) -> Interval:
        """The 95 % interval of the relative CTR."""
        return self._relative.interval

    @property
    def weighted_relative_ctr(self) -> float:
        """The pool-weighted CTR divided by the random policy's: the log's mean payoff."""
        return _ratio(self.weighted_ctr, _rate(self._log_sums, WEIGHT, WEIGHTED_PAYOFF))

    @cached_property
    def path_ends(self) -> Interval | None:
        """The lowest and highest relative CTR of the seeds, if they disagree; None: they do not."""
        return path_ends(self.runs)

    @cached_property
    def next_period(self) -> NextPeriod | None:
        """What another day or week may bring; None if the log has too few days."""
        return next_period(self.runs)

    @cached_property
    def _relative(self) -> Estimate:
        return mean_relative_ctr(self.runs)

    @cached_property
    def _sums(self) -> Floats:
        return np.asarray(np.sum([run.sums for run in self.runs], axis=0))

    @cached_property
    def _log_sums(self) -> Floats:
        return np.asarray(np.sum([run.log_sums for run in self.runs], axis=0))

    def _interval(self, trials: int, payoff: int) -> Interval:
        binary = all(run.binary for run in self.runs)
        ours, paid = self._sums[:, trials], self._sums[:, payoff]
        count = float(self._sums[:, TRIALS].sum()) / len(self.runs)
        path, returning = self._path(trials, payoff), None
        levels = added([run.levels for run in self.runs])
        if len(levels) == ALL_LEVELS:
            returning = visitor_columns(VisitorSums(*levels[1:]), trials, payoff)
        log = self.runs[0].log_sums[:, trials], self.runs[0].log_sums[:, payoff]
        return rate_interval(ours, paid, binary, 0.95, count, path, returning, log)

    def _path(self, trials: int, payoff: int) -> Variance:
        """How much the mean over seeds varies with the learning path."""
        rates = [_rate(run.sums, trials, payoff) for run in self.runs if run.trials]
        if len(rates) < 2:
            return NO_VARIANCE
        luck = float(np.var(rates, ddof=1)) / len(rates)
        return Variance(luck * shared_luck(len(rates), value_overlap(self.runs)), len(rates) - 1)

    def __repr__(self) -> str:
        low, high = self.interval
        rate = "CTR" if all(run.binary for run in self.runs) else "payoff"
        return (
            f"<MeanBucket: {len(self.runs)} seeds, {rate} {self.ctr:.4f} [{low:.4f}, {high:.4f}]>"
        )


def _ratio(rate: float, base: float) -> float:
    return rate / base if base > 0 else float("nan")


def _rate(sums: Floats, trials: int, payoff: int) -> float:
    total = float(sums[:, trials].sum())
    return float(sums[:, payoff].sum()) / total if total else float("nan")
