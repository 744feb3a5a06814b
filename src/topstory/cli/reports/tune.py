"""What `topstory tune --json` prints, and its table is drawn from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from topstory.cli.reports.replay import Ends, MaybeFloat

if TYPE_CHECKING:
    from topstory.evaluation import Estimate, Point, Tuning


class EstimateReport(msgspec.Struct, frozen=True):
    """A bucket's relative CTR, over all seeds."""

    relative_ctr: Annotated[MaybeFloat, Meta(description="divided by the random policy's")]
    interval: Annotated[Ends, Meta(description="its 95 % interval")]


class PointReport(msgspec.Struct, frozen=True):
    """One parameter value."""

    parameters: Annotated[dict[str, float], Meta(description="epsilon or alpha, and the ridge")]
    deployment: Annotated[EstimateReport, Meta(description="served greedily, never learned from")]
    learning: Annotated[EstimateReport, Meta(description="explored, and learned from")]
    repeats: Annotated[int, Meta(description="seeds that were averaged")]
    seconds: Annotated[float, Meta(description="taken by their replays, one after the other")]
    chosen: Annotated[bool, Meta(description="the best of its curve; none if nothing was clicked")]


class CurveReport(msgspec.Struct, frozen=True):
    """The tuning curve at one data size."""

    size: Annotated[float, Meta(description="the share of retained events learned from")]
    points: Annotated[tuple[PointReport, ...], Meta(description="in the order of the grid")]


class TuneReport(msgspec.Struct, frozen=True):
    """The tuning of one policy: the whole document."""

    format: Annotated[str, Meta(description="`topstory-tune`")]
    version: Annotated[int, Meta(description="1; fields may be added under the same version")]
    log: Annotated[str, Meta(description="as it was given")]
    events: Annotated[int, Meta(description="that were replayed each time")]
    policy: Annotated[str, Meta(description="its name here")]
    paper: Annotated[str, Meta(description="its name in the paper")]
    on: Annotated[str, Meta(description="the bucket that decides")]
    curves: Annotated[tuple[CurveReport, ...], Meta(description="one for each size")]


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
    known = math.isfinite(found.interval.low) and math.isfinite(found.interval.high)
    return EstimateReport(
        found.value if math.isfinite(found.value) else None,
        (found.interval.low, found.interval.high) if known else None,
    )
