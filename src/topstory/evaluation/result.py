"""What a replay found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from topstory.evaluation.blocks import HOUR, Blocks
from topstory.evaluation.dependence import ENOUGH
from topstory.evaluation.intervals import (
    NOTHING_KNOWN,
    Interval,
    LogRatio,
    Rates,
    log_ratio,
    rate_dependence,
    rate_interval,
)
from topstory.evaluation.visitor_groups import VisitorSums
from topstory.events import Rejection, Uniformity
from topstory.html_table import html_table
from topstory.kernels.compilation import Floats
from topstory.kernels.scans.replay import PAYOFF, TRIALS, WEIGHT, WEIGHTED_PAYOFF


@dataclass(frozen=True)
class Window:
    """A bucket's trials in one stretch of time."""

    start: Any  # datetime64, or the number of the first event where the log has no times
    trials: int
    payoff: float

    @property
    def ctr(self) -> float:
        """Payoff for each trial; nan without trials."""
        return self.payoff / self.trials if self.trials else float("nan")


ALL_LEVELS = 3
Levels = tuple[Floats, ...]  # sums by block; and by group of visitors, and by bin of cells


@dataclass(frozen=True, repr=False)
class Bucket:
    """One bucket's outcome: its trials, what they paid, and how sure that is.

    The plain CTR is the paper's. Events with a small pool are retained more often, so where pool
    sizes vary it over-weights them; the pool-weighted CTR, ΣK·r / ΣK, does not. Both relative CTRs
    divide by the log's own, weighted alike: the CTR of the random policy without its luck.
    """

    sums: Floats  # (blocks, 4)
    log_sums: Floats  # (blocks, 4) the same of the log itself
    blocks: Blocks
    binary: bool
    visitors: VisitorSums | None = None  # None: no visitor is known to have returned
    log_visitors: VisitorSums | None = None

    @property
    def trials(self) -> int:
        """How many events were retained."""
        return round(float(self.sums[:, TRIALS].sum()))

    @property
    def expected_trials(self) -> float:
        """How many events any policy retains of a uniform log, on average: Σ 1/K."""
        return float(self.log_sums[:, TRIALS].sum())

    @property
    def payoff(self) -> float:
        """What they paid, in all."""
        return float(self.sums[:, PAYOFF].sum())

    @property
    def ctr(self) -> float:
        """Payoff for each trial; nan without trials."""
        return _rate(self.sums, TRIALS, PAYOFF)

    @property
    def weighted_ctr(self) -> float:
        """The CTR with each trial weighted by its pool's size."""
        return _rate(self.sums, WEIGHT, WEIGHTED_PAYOFF)

    @property
    def relative_ctr(self) -> float:
        """The CTR divided by the random policy's."""
        return _ratio(self.ctr, _rate(self.log_sums, TRIALS, PAYOFF))

    @property
    def weighted_relative_ctr(self) -> float:
        """The pool-weighted CTR divided by the random policy's: the log's mean payoff."""
        return _ratio(self.weighted_ctr, _rate(self.log_sums, WEIGHT, WEIGHTED_PAYOFF))

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the CTR."""
        return self.interval_at(0.95)

    def interval_at(self, level: float) -> Interval:
        """The interval of the CTR at another level; nan where the log is too short for one."""
        sums = _columns(self.sums, TRIALS, PAYOFF)
        of_visitors = visitor_columns(self.visitors, TRIALS, PAYOFF)
        log = _columns(self.log_sums, TRIALS, PAYOFF)
        return rate_interval(*sums, self.binary, level, visitors=of_visitors, log=log)

    @property
    def too_short(self) -> bool:
        """Whether CTRs change so slowly that this log is too short to say how sure they are."""
        return rate_dependence(_columns(self.log_sums, TRIALS, PAYOFF)).too_short

    @property
    def these_hours(self) -> bool:
        """Whether intervals are for the log's own hours: it has too few to speak of others."""
        known = int((self.log_sums[:, TRIALS] > 0).sum())
        return self.blocks.origin is not None and known < ENOUGH

    @property
    def days_needed(self) -> int | None:
        """The days that a log needs at least, to say more; None: enough, or days are not known."""
        if self.blocks.origin is None or not (self.too_short or self.these_hours):
            return None
        needed = rate_dependence(_columns(self.log_sums, TRIALS, PAYOFF)).needed
        return self.blocks.days_of(needed)

    @property
    def weighted_interval(self) -> Interval:
        """The 95 % interval of the pool-weighted CTR."""
        sums = _columns(self.sums, WEIGHT, WEIGHTED_PAYOFF)
        of_visitors = visitor_columns(self.visitors, WEIGHT, WEIGHTED_PAYOFF)
        log = _columns(self.log_sums, WEIGHT, WEIGHTED_PAYOFF)
        return rate_interval(*sums, self.binary, 0.95, self.trials, visitors=of_visitors, log=log)

    @property
    def relative_interval(self) -> Interval:
        """The 95 % interval of the relative CTR."""
        found = log_ratio_of(self.levels, self.log_levels)
        return NOTHING_KNOWN if found is None else found.interval(0.95)

    @property
    def levels(self) -> Levels:
        """Sums by block and, where visitors return, by group of them and by bin of cells."""
        return _levels(self.sums, self.visitors)

    @property
    def log_levels(self) -> Levels:
        """The same of the log itself."""
        return _levels(self.log_sums, self.log_visitors)

    def over_time(self, hours: float = 1) -> list[Window]:
        """The CTR over time, in windows of so many hours.

        Where the log has no times, a window is one of 160 runs of events, and `hours` is ignored.
        """
        blocks = self.blocks.in_hours(hours)
        firsts = np.arange(0, len(self.sums), blocks)
        sums = np.add.reduceat(self.sums, firsts) if len(firsts) else self.sums
        return [
            Window(start, round(row[TRIALS]), float(row[PAYOFF]))
            for start, row in zip(self.blocks.starts()[firsts], sums, strict=True)
        ]

    def __repr__(self) -> str:
        low, high = self.interval
        rate = "CTR" if self.binary else "payoff"
        return f"<Bucket: {self.trials:,} trials, {rate} {self.ctr:.4f} [{low:.4f}, {high:.4f}]>"


@dataclass(frozen=True)
class ArticleResult:
    """One article: how the policy used it, and what it pays for a random user (its base CTR)."""

    shown: int  # trials of the learning bucket
    payoff: float
    deployed: int  # trials of the deployment bucket
    deployed_payoff: float
    base_shown: int  # events of the log
    base_payoff: float

    @property
    def ctr(self) -> float:
        """The CTR for the users the policy chose it for: lifted, if it chose well (Fig. 3)."""
        return self.payoff / self.shown if self.shown else float("nan")

    @property
    def base_ctr(self) -> float:
        """The CTR for a random user."""
        return self.base_payoff / self.base_shown if self.base_shown else float("nan")


@dataclass(frozen=True)
class Result:
    """What a policy would have earned: one replay of one log."""

    learning: Bucket
    deployment: Bucket
    events: int  # replayed: those of the log, less those lost to rejection sampling
    lost: float  # the share of the log lost to rejection sampling; 0 for a uniform log
    by_article: Mapping[str, ArticleResult] = field(repr=False)
    policy: Any = field(repr=False)  # the trained one
    uniformity: Uniformity = field(repr=False)
    size: float
    seed: int
    seconds: float
    true_relative_ctr: Mapping[str, float] | None = None  # by bucket; only a simulator knows it
    rejection: Rejection | None = field(default=None, repr=False)  # None: the log is uniform

    @property
    def buckets(self) -> dict[str, Bucket]:
        """By name; a policy of one's own without `greedy` has no deployment bucket."""
        deployed = {"deployment": self.deployment} if hasattr(self.policy, "greedy") else {}
        return deployed | {"learning": self.learning}

    @property
    def random_ctr(self) -> float:
        """The random policy's CTR, which relative CTRs divide by."""
        return _rate(self.learning.log_sums, TRIALS, PAYOFF)

    @property
    def weighted_random_ctr(self) -> float:
        """The random policy's pool-weighted CTR: the log's mean payoff."""
        return _rate(self.learning.log_sums, WEIGHT, WEIGHTED_PAYOFF)

    def plot(self, hours: float | None = None, axes: Any = None) -> Any:
        """Draw the mean payoff of both buckets over time; returns matplotlib's axes.

        Args:
            hours: how long a point stands for; by default a twentieth of the log or more.
            axes: where to draw; by default on a new figure.
        """
        from topstory.report.replay_figure import draw_replay

        width = self._usual_hours() if hours is None else hours
        curves = {
            name: [(w.start, w.ctr) for w in bucket.over_time(width) if w.trials]
            for name, bucket in self.buckets.items()
        }
        ends = {name: (each.ctr, *each.interval) for name, each in self.buckets.items()}
        rate = "CTR" if self.learning.binary else "payoff"
        return draw_replay(curves, ends, self.random_ctr, rate, axes)

    def _usual_hours(self) -> float:
        blocks = self.learning.blocks
        return max(1, blocks.count // 20) * blocks.width / HOUR

    def _repr_html_(self) -> str:
        rate = "CTR" if self.learning.binary else "payoff"
        names = ["", rate, "95 % interval", f"relative {rate}", "95 % interval", "trials"]
        rows = [
            [
                *(name, bucket.ctr, list(bucket.interval)),
                *(bucket.relative_ctr, list(bucket.relative_interval), bucket.trials),
            ]
            for name, bucket in self.buckets.items()
        ]
        return html_table(f"Result: {self.policy!r}, {self.events:,} events", names, rows)


def log_ratio_of(ours: Levels, theirs: Levels) -> LogRatio | None:
    """The ratio of two rates, from a bucket's sums and another's over the same clusters."""
    pairs = [
        (_columns(a, TRIALS, PAYOFF), _columns(b, TRIALS, PAYOFF))
        for a, b in zip(ours, theirs, strict=False)
    ]
    return log_ratio(*pairs[0], pairs[1:] if len(pairs) == ALL_LEVELS else None)


def visitor_columns(
    visitors: VisitorSums | None, trials: int, payoff: int
) -> tuple[Rates, Rates] | None:
    """By group of visitors, and by bin of cells."""
    if visitors is None:
        return None
    return _columns(visitors.groups, trials, payoff), _columns(visitors.cells, trials, payoff)


def _levels(sums: Floats, visitors: VisitorSums | None) -> Levels:
    return (sums,) if visitors is None else (sums, visitors.groups, visitors.cells)


def _columns(sums: Floats, trials: int, payoff: int) -> Rates:
    return sums[:, trials], sums[:, payoff]


def _ratio(rate: float, base: float) -> float:
    return rate / base if base > 0 else float("nan")


def _rate(sums: Floats, trials: int, payoff: int) -> float:
    total = float(sums[:, trials].sum())
    return float(sums[:, payoff].sum()) / total if total else float("nan")
