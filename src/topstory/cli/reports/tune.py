"""What `topstory tune --json` prints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from topstory.cli.reports.finite import Ends, MaybeFloat, finite, finite_ends

if TYPE_CHECKING:
    from topstory.evaluation import Estimate, Point, Tuning


class EstimateReport(msgspec.Struct, frozen=True):
    """The relative CTR of a bucket, averaged over seeds."""

    relative_ctr: Annotated[MaybeFloat, Meta(description="CTR / the random policy's CTR")]
    interval: Annotated[Ends, Meta(description="its 95 % interval")]


class PointReport(msgspec.Struct, frozen=True):
    """One parameter value."""

    parameters: Annotated[
        dict[str, float], Meta(description="epsilon or alpha, and the ridge if searched")
    ]
    deployment: Annotated[EstimateReport, Meta(description="served greedily, not learned from")]
    learning: Annotated[EstimateReport, Meta(description="explored and learned from")]
    repeats: Annotated[int, Meta(description="number of seeds averaged")]
    seconds: Annotated[float, Meta(description="duration of their replays, added up")]
    chosen: Annotated[
        bool,
        Meta(description="whether it is the best of its curve; no point is if nothing was clicked"),
    ]


class CurveReport(msgspec.Struct, frozen=True):
    """The tuning curve at one data size."""

    size: Annotated[float, Meta(description="share of retained events that was learned from")]
    points: Annotated[tuple[PointReport, ...], Meta(description="in the order of the grid")]


class TuneReport(msgspec.Struct, frozen=True):
    """The tuning of one policy: the whole document."""

    format: Annotated[str, Meta(description="`topstory-tune`")]
    version: Annotated[int, Meta(description="1; fields may be added under the same version")]
    log: Annotated[str, Meta(description="the log as given")]
    events: Annotated[int, Meta(description="events in each replay")]
    policy: Annotated[str, Meta(description="its name in topstory")]
    paper: Annotated[str, Meta(description="its name in the paper")]
    on: Annotated[str, Meta(description="bucket whose CTR decides")]
    curves: Annotated[tuple[CurveReport, ...], Meta(description="one for each data size")]


def tune_report(log: str, events: int, tuning: Tuning) -> TuneReport:
    """The tuning as a record."""
    from topstory.policies import REGISTRY

    return TuneReport(
        format="topstory-tune",
        version=1,
        log=log,
        events=events,
        policy=tuning.policy,
        paper=REGISTRY[tuning.policy].paper,
        on=tuning.on,
        curves=tuple(
            CurveReport(
                size,
                tuple(
                    _point(point, point is tuning.best(size) and _known(point, tuning.on))
                    for point in tuning.curve(size)
                ),
            )
            for size in tuning.sizes
        ),
    )


def _known(point: Point, bucket: str) -> bool:
    estimate: Estimate = getattr(point, bucket)
    return math.isfinite(estimate.value)


def _point(point: Point, chosen: bool) -> PointReport:
    return PointReport(
        parameters=dict(point.parameters),
        deployment=_estimate(point.deployment),
        learning=_estimate(point.learning),
        repeats=len(point.outcomes),
        seconds=sum(outcome.seconds for outcome in point.outcomes),
        chosen=chosen,
    )


def _estimate(found: Estimate) -> EstimateReport:
    return EstimateReport(finite(found.value), finite_ends(found.interval))
