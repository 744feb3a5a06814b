"""What `topstory replay --json` and `topstory demo --json` print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from topstory.cli.reports.finite import Ends, MaybeFloat, finite, finite_ends
from topstory.policies.entries import settings_of

if TYPE_CHECKING:
    from topstory.evaluation import Claim, Comparison, Lift, WarmStart

FIRST_TENTH = "first tenth"


class BucketReport(msgspec.Struct, frozen=True):
    """What one bucket earned."""

    trials: Annotated[int, Meta(description="events retained")]
    expected_trials: Annotated[
        float, Meta(description="events that any policy retains on average: the sum of 1/K")
    ]
    payoff: Annotated[float, Meta(description="their total payoff")]
    ctr: Annotated[MaybeFloat, Meta(description="payoff per trial: the paper's CTR")]
    interval: Annotated[Ends, Meta(description="its 95 % interval")]
    relative_ctr: Annotated[MaybeFloat, Meta(description="CTR / the random policy's CTR")]
    relative_interval: Annotated[Ends, Meta(description="its 95 % interval")]
    weighted_ctr: Annotated[
        MaybeFloat, Meta(description="CTR with each trial weighted by the size of its pool")
    ]
    weighted_interval: Annotated[Ends, Meta(description="its 95 % interval")]
    weighted_relative_ctr: Annotated[
        MaybeFloat, Meta(description="weighted CTR / the random policy's weighted CTR")
    ]
    shrunk_relative_ctr: Annotated[
        MaybeFloat,
        Meta(description="relative CTR without the luck of being the best or worst of several"),
    ]
    shrunk_interval: Annotated[Ends, Meta(description="its 95 % interval")]
    next_day: Annotated[
        Ends, Meta(description="95 % prediction interval of another day's relative CTR; see `days`")
    ]
    next_week: Annotated[Ends, Meta(description="the same of another week's mean")]
    too_short: Annotated[
        bool, Meta(description="the CTR changes too slowly for the log's length: no interval")
    ] = False
    these_hours: Annotated[
        bool, Meta(description="less than a week: intervals are for the log's own hours alone")
    ] = False
    days_needed: Annotated[
        int | None,
        Meta(description="days of a log that says more; null: this one does, or has no times"),
    ] = None
    path_ends: Annotated[
        Ends,
        Meta(description="lowest and highest relative CTR of the seeds; null: they agree"),
    ] = None


class LiftReport(msgspec.Struct, frozen=True):
    """How much more a policy earned than the baseline: 0.1 means 10 % more."""

    value: Annotated[MaybeFloat, Meta(description="the lift")]
    interval: Annotated[Ends, Meta(description="its 95 % interval, on its own")]
    simultaneous_interval: Annotated[
        Ends, Meta(description="its interval among those of all policies: 95 % for all together")
    ]
    p_value: Annotated[MaybeFloat, Meta(description="corrected for the comparison of all policies")]
    sure: Annotated[
        bool, Meta(description="p_value <= 0.05: 5 % of comparisons call a wrong lift sure")
    ]
    too_short: Annotated[
        bool, Meta(description="it changes too slowly for the log's length: no interval")
    ] = False


class ExplorationReport(msgspec.Struct, frozen=True):
    """What exploring costs, and what a site earns over both buckets."""

    learning_share: Annotated[float, Meta(description="share of visits that learn")]
    clicks_per_100000: Annotated[
        MaybeFloat, Meta(description="fewer clicks in 100,000 visits than without exploring")
    ]
    interval: Annotated[Ends, Meta(description="its 95 % interval")]
    total_relative_ctr: Annotated[
        MaybeFloat, Meta(description="of both buckets at this share, over the random policy's")
    ]
    total_interval: Annotated[Ends, Meta(description="its 95 % interval")]
    shrunk_total: Annotated[
        MaybeFloat,
        Meta(description="the total without the luck of being the best or worst of several"),
    ]


class PolicyReport(msgspec.Struct, frozen=True):
    """The replay of one policy."""

    policy: Annotated[str, Meta(description="its name in topstory")]
    paper: Annotated[str, Meta(description="its name in the paper")]
    parameters: Annotated[dict[str, float | str], Meta(description="alpha, epsilon, ridge, …")]
    deployment: Annotated[BucketReport, Meta(description="served greedily, not learned from")]
    learning: Annotated[BucketReport, Meta(description="explored and learned from")]
    deployment_lift: Annotated[
        LiftReport | None, Meta(description="over `baseline`; null if that was not replayed")
    ]
    learning_lift: Annotated[
        LiftReport | None, Meta(description="the same for the learning bucket")
    ]
    exploration: Annotated[ExplorationReport, Meta(description="its cost, and the total")]
    seconds: Annotated[
        float, Meta(description="duration of the replays of all seeds, without compilation")
    ]
    events_per_second: Annotated[
        MaybeFloat, Meta(description="events of the log per second and seed")
    ]


class UniformityReport(msgspec.Struct, frozen=True):
    """A chi-square test of whether articles were shown uniformly at random."""

    statistic: Annotated[float, Meta(description="chi-square")]
    degrees_of_freedom: Annotated[int, Meta(description="0 if there was nothing to test")]
    p_value: Annotated[float, Meta(description="small if articles were not shown uniformly")]


class WarmReport(msgspec.Struct, frozen=True):
    """Where the offsets of warm policies and priors come from."""

    source: Annotated[
        str, Meta(description="the log they were fitted on, or `first tenth` of the log itself")
    ]
    events: Annotated[int, Meta(description="number of events they were fitted on")]
    articles: Annotated[int, Meta(description="articles of the replayed log that have an offset")]


class SavedReport(msgspec.Struct, frozen=True):
    """A policy that was trained on every event of the log, and written to a file."""

    file: Annotated[str, Meta(description="where")]
    policy: Annotated[str, Meta(description="which: the one recommended")]
    parameters: Annotated[dict[str, float | str], Meta(description="alpha, epsilon, ridge, …")]
    events: Annotated[int, Meta(description="that it learned from")]
    features: Annotated[
        str | None, Meta(description="file of the feature model that it goes with, if it has one")
    ] = None


class ReplayReport(msgspec.Struct, frozen=True):
    """Replays of one log: the whole document."""

    format: Annotated[str, Meta(description="`topstory-replay`")]
    version: Annotated[int, Meta(description="1; fields may be added under the same version")]
    log: Annotated[str, Meta(description="the log as given; `simulated` in the demo")]
    events: Annotated[
        int, Meta(description="events replayed: all, or all but the first tenth (see `warm`)")
    ]
    kept: Annotated[int, Meta(description="events left by rejection sampling")]
    lost: Annotated[
        MaybeFloat,
        Meta(description="share lost to rejection sampling; null without recorded propensities"),
    ]
    capped: Annotated[
        MaybeFloat,
        Meta(description="share of events with propensities too small for the rate of rejection"),
    ]
    bias_bound: Annotated[
        MaybeFloat,
        Meta(description="bound of what these can add to, or take from, any CTR (95 %)"),
    ]
    articles: Annotated[int, Meta(description="articles in the log")]
    smallest_pool: Annotated[int, Meta(description="size of the smallest pool of these events")]
    largest_pool: Annotated[int, Meta(description="size of the largest pool of these events")]
    random_ctr: Annotated[
        MaybeFloat, Meta(description="CTR of the random policy: the log's own, free of luck")
    ]
    size: Annotated[float, Meta(description="share of retained events that was learned from")]
    seed: Annotated[int, Meta(description="first seed of the policies and of the replays")]
    seeds: Annotated[int, Meta(description="how many are averaged: learning paths")]
    intervals: Annotated[str, Meta(description="what is random in every 95 % interval here")]
    days: Annotated[
        int | None, Meta(description="whole days behind `next_day`; null: fewer than five")
    ]
    uniformity: Annotated[
        UniformityReport, Meta(description="were articles shown uniformly at random?")
    ]
    warnings: Annotated[tuple[str, ...], Meta(description="also on standard error")]
    warm: Annotated[WarmReport | None, Meta(description="null if nothing was fitted")]
    policies: Annotated[tuple[PolicyReport, ...], Meta(description="in the order given")]
    baseline: Annotated[
        str, Meta(description="what lifts are over: a policy, or `logged`, what the log shows")
    ] = "egreedy"
    logged_ctr: Annotated[
        MaybeFloat, Meta(description="CTR of what the log shows; null unless it is the baseline")
    ] = None
    binary: Annotated[
        bool, Meta(description="whether payoffs are 0 or 1: if not, a CTR is a mean payoff")
    ] = True
    too_few_seeds: Annotated[
        bool, Meta(description="whether rare bad paths may be unseen, and intervals too narrow")
    ] = False
    saved: Annotated[
        SavedReport | None, Meta(description="the policy that --save wrote, if it was asked to")
    ] = None


def replay_report(
    name: str,
    comparison: Comparison,
    warnings: Sequence[str],
    warm_from: str | None = None,
    saved: SavedReport | None = None,
) -> ReplayReport:
    """A comparison as a record, with the names that its logs were given by."""
    log, results = comparison.log, comparison.results
    first = next(iter(results.values()))
    sizes = log.pool_sizes[log.pool]
    tested, rejected = first.uniformity, first.rejection
    period = comparison.bucket(next(iter(results))).next_period
    return ReplayReport(
        format="topstory-replay",
        version=1,
        log=name,
        events=len(log),
        kept=first.events,
        lost=None if rejected is None else first.lost,
        capped=None if rejected is None else rejected.capped / len(log),
        bias_bound=None if rejected is None else rejected.bias_bound,
        articles=len(log.article_ids),
        smallest_pool=int(sizes.min()),
        largest_pool=int(sizes.max()),
        random_ctr=finite(first.random_ctr),
        size=first.size,
        seed=first.seed,
        seeds=comparison.seeds,
        intervals=interval_scope(
            comparison.seeds, first.learning.visitors is not None, first.learning.binary
        ),
        days=None if period is None else period.days,
        uniformity=UniformityReport(tested.statistic, tested.degrees_of_freedom, tested.p_value),
        warnings=tuple(warnings),
        warm=_warm(comparison.warm, warm_from),
        policies=tuple(_policy(policy, comparison) for policy in results),
        baseline=comparison.baseline,
        logged_ctr=_logged_ctr(comparison),
        binary=first.learning.binary,
        too_few_seeds=comparison.too_few_seeds,
        saved=saved,
    )


def _logged_ctr(comparison: Comparison) -> float | None:
    from topstory.evaluation.comparison import LOGGED

    if comparison.baseline != LOGGED:
        return None
    return finite(comparison.bucket(LOGGED).weighted_ctr)


def _warm(start: WarmStart | None, warm_from: str | None) -> WarmReport | None:
    if start is None or not len(start.exploration):  # nothing was fitted: a prior was given
        return None
    source = FIRST_TENTH if start.first_tenth or warm_from is None else warm_from
    return WarmReport(source, len(start.exploration), len(start.offset))


def _policy(name: str, comparison: Comparison) -> PolicyReport:
    from topstory.policies import REGISTRY

    result = comparison.results[name]
    numbers = result.policy.model.parameters() | result.policy.explorer.parameters()
    seconds = sum(run.seconds for run in comparison.runs[name])
    return PolicyReport(
        policy=name,
        paper=REGISTRY[name].paper,
        parameters=settings_of(numbers),
        deployment=_bucket(comparison, name, "deployment"),
        learning=_bucket(comparison, name, "learning"),
        deployment_lift=_lift(comparison, name, "deployment"),
        learning_lift=_lift(comparison, name, "learning"),
        exploration=_exploration(name, comparison),
        seconds=seconds,
        events_per_second=comparison.seeds * len(comparison.log) / seconds if seconds else None,
    )


def _bucket(comparison: Comparison, name: str, which: str) -> BucketReport:
    bucket, shrunk = comparison.bucket(name, which), comparison.earned(name, which)
    period = bucket.next_period
    paid = bool(comparison.results[name].random_ctr)  # nothing can be relative to 0
    return BucketReport(
        trials=bucket.trials,
        expected_trials=bucket.expected_trials,
        payoff=bucket.payoff,
        ctr=finite(bucket.ctr),
        interval=finite_ends(bucket.interval),
        relative_ctr=finite(bucket.relative_ctr) if paid else None,
        relative_interval=finite_ends(bucket.relative_interval),
        weighted_ctr=finite(bucket.weighted_ctr),
        weighted_interval=finite_ends(bucket.weighted_interval),
        weighted_relative_ctr=finite(bucket.weighted_relative_ctr) if paid else None,
        shrunk_relative_ctr=finite(shrunk.value),
        shrunk_interval=finite_ends(shrunk.interval),
        too_short=bucket.too_short,
        these_hours=bucket.these_hours,
        days_needed=bucket.days_needed,
        next_day=None if period is None else finite_ends(period.day),
        next_week=None if period is None else finite_ends(period.week),
        path_ends=None if bucket.path_ends is None else finite_ends(bucket.path_ends),
    )


def _lift(comparison: Comparison, name: str, which: str) -> LiftReport | None:
    lift: Lift | None = comparison.lift(name, which)
    if lift is None:
        return None
    claim: Claim | None = comparison.claims(which).get(name)
    return LiftReport(
        value=finite(lift.value),
        interval=finite_ends(lift.interval),
        simultaneous_interval=None if claim is None else finite_ends(claim.interval),
        p_value=None if claim is None else claim.p_value,
        sure=claim is not None and claim.sure,
        too_short=lift.too_short,
    )


def _exploration(name: str, comparison: Comparison) -> ExplorationReport:
    cost, total = comparison.exploration(name), comparison.bucket(name, "total")
    return ExplorationReport(
        learning_share=cost.learning_share,
        clicks_per_100000=finite(cost.clicks.value),
        interval=finite_ends(cost.clicks.interval),
        total_relative_ctr=finite(total.relative_ctr),
        total_interval=finite_ends(total.relative_interval),
        shrunk_total=finite(comparison.earned(name, "total").value),
    )


def interval_scope(seeds: int, visitors: bool = False, binary: bool = True) -> str:
    """What is random in an interval, in words; payoffs are clicks if they are `binary`.

    >>> interval_scope(1)
    'clicks and hours of this log, on one learning path'
    >>> interval_scope(3, visitors=True)
    'clicks, visitors and hours of this log, and the learning path (3 seeds)'
    """
    what = "clicks" if binary else "payoffs"
    drawn = f"{what}, visitors and hours" if visitors else f"{what} and hours"
    if seeds == 1:
        return f"{drawn} of this log, on one learning path"
    return f"{drawn} of this log, and the learning path ({seeds} seeds)"
