"""What a replay found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from topstory.evaluation.blocks import HOUR, Blocks
from topstory.evaluation.intervals import Interval, rate_interval, ratio_interval
from topstory.events import Rejection, Uniformity
from topstory.html_table import html_table
from topstory.kernels.compilation import Floats
from topstory.kernels.replay import PAYOFF, TRIALS, WEIGHT, WEIGHTED_PAYOFF


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
        """The interval of the CTR at another level."""
        return rate_interval(self.sums[:, TRIALS], self.sums[:, PAYOFF], self.binary, level)

    @property
    def weighted_interval(self) -> Interval:
        """The 95 % interval of the pool-weighted CTR."""
        weights, payoff = self.sums[:, WEIGHT], self.sums[:, WEIGHTED_PAYOFF]
        return rate_interval(weights, payoff, self.binary, 0.95, self.trials)

    @property
    def relative_interval(self) -> Interval:
        """The 95 % interval of the relative CTR."""
        return ratio_interval(
            self.sums[:, TRIALS],
            self.sums[:, PAYOFF],
            self.log_sums[:, TRIALS],
            self.log_sums[:, PAYOFF],
            0.95,
        )

    def over_time(self, hours: float = 1) -> list[Window]:
        """The CTR over time, in windows of so many hours.

        Where the log has no times, a window is one of 200 runs of events, and `hours` is ignored.
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
        return f"<Bucket: {self.trials:,} trials, CTR {self.ctr:.4f} [{low:.4f}, {high:.4f}]>"


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


def _ratio(rate: float, base: float) -> float:
    return rate / base if base > 0 else float("nan")


def _rate(sums: Floats, trials: int, payoff: int) -> float:
    total = float(sums[:, trials].sum())
    return float(sums[:, payoff].sum()) / total if total else float("nan")
