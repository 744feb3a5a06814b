"""What `topstory replay --json` prints, and tables are drawn from: records without behaviour."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Ends = tuple[float, float] | None  # of a 95 % interval; None: it cannot be known
MaybeFloat = float | None


class BucketReport(msgspec.Struct, frozen=True):
    """What one bucket earned."""

    trials: Annotated[int, Meta(description="events retained")]
    payoff: Annotated[float, Meta(description="what they paid, in all")]
    ctr: Annotated[MaybeFloat, Meta(description="payoff for each trial: the paper's CTR")]
    interval: Annotated[Ends, Meta(description="its 95 % interval")]
    relative_ctr: Annotated[MaybeFloat, Meta(description="divided by the random policy's")]
    relative_interval: Annotated[Ends, Meta(description="its 95 % interval")]
    weighted_ctr: Annotated[MaybeFloat, Meta(description="each trial weighted by its pool's size")]
    weighted_interval: Annotated[Ends, Meta(description="its 95 % interval")]
    weighted_relative_ctr: Annotated[
        MaybeFloat, Meta(description="divided by the random policy's, weighted alike")
    ]


class LiftReport(msgspec.Struct, frozen=True):
    """How much more was earned than by ε-greedy: 0.1 is 10 % more."""

    value: Annotated[MaybeFloat, Meta(description="the lift")]
    interval: Annotated[Ends, Meta(description="its 95 % interval")]


class PolicyReport(msgspec.Struct, frozen=True):
    """One policy's replay."""

    policy: Annotated[str, Meta(description="its name here")]
    paper: Annotated[str, Meta(description="its name in the paper")]
    parameters: Annotated[dict[str, float], Meta(description="alpha, epsilon, ridge, …")]
    deployment: Annotated[BucketReport, Meta(description="served greedily, never learned from")]
    learning: Annotated[BucketReport, Meta(description="explored, and learned from")]
    deployment_lift: Annotated[
        LiftReport | None, Meta(description="over `egreedy`; null if that was not replayed too")
    ]
    learning_lift: Annotated[LiftReport | None, Meta(description="the same of the other bucket")]
    seconds: Annotated[float, Meta(description="taken by the replay, compilation aside")]
    events_per_second: Annotated[MaybeFloat, Meta(description="of the log")]


class UniformityReport(msgspec.Struct, frozen=True):
    """Whether articles were shown uniformly at random: a chi-square test of the events replayed."""

    statistic: Annotated[float, Meta(description="chi-square")]
    degrees_of_freedom: Annotated[int, Meta(description="0: nothing could be tested")]
    p_value: Annotated[float, Meta(description="a small one: not uniform")]


class WarmReport(msgspec.Struct, frozen=True):
    """Where the warm policies' offsets come from."""

    source: Annotated[
        str, Meta(description="the log they were fitted on, or `first tenth` of the log itself")
    ]
    events: Annotated[int, Meta(description="how many events that was")]
    articles: Annotated[int, Meta(description="articles of the replayed log that have an offset")]


class Report(msgspec.Struct, frozen=True):
    """Replays of one log: the whole document."""

    format: Annotated[str, Meta(description="`topstory-replay`")]
    version: Annotated[int, Meta(description="1; fields may be added under the same version")]
    log: Annotated[str, Meta(description="as it was given; `simulated` in the demo")]
    events: Annotated[int, Meta(description="passed over: all, or nine tenths (see `warm`)")]
    kept: Annotated[int, Meta(description="of them, left by rejection sampling")]
    lost: Annotated[
        MaybeFloat,
        Meta(description="the share lost to it; null where propensities are not recorded"),
    ]
    articles: Annotated[int, Meta(description="in the log")]
    smallest_pool: Annotated[int, Meta(description="of the events passed over")]
    largest_pool: Annotated[int, Meta(description="of the events passed over")]
    random_ctr: Annotated[MaybeFloat, Meta(description="the random policy's CTR, without its luck")]
    size: Annotated[float, Meta(description="the share of retained events learned from")]
    seed: Annotated[int, Meta(description="of the policies and of the replay")]
    uniformity: Annotated[UniformityReport, Meta(description="were articles shown uniformly?")]
    warnings: Annotated[tuple[str, ...], Meta(description="also on standard error")]
    warm: Annotated[WarmReport | None, Meta(description="null without warm policies")]
    policies: Annotated[tuple[PolicyReport, ...], Meta(description="in the order of replay")]
