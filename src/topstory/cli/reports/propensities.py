"""What `topstory propensities --json` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

if TYPE_CHECKING:
    from topstory.evaluation import PropensityEstimate


class CalibrationReport(msgspec.Struct, frozen=True):
    """Chances of one range: what was said, and what happened."""

    low: float
    high: float
    pairs: Annotated[int, Meta(description="of a visit and an article of its pool")]
    said: Annotated[float, Meta(description="the mean chance")]
    shown: Annotated[float, Meta(description="the share that was shown")]


class OverlapReport(msgspec.Struct, frozen=True):
    """How one article was shown."""

    article: str
    offered: Annotated[int, Meta(description="visits whose pool had it")]
    shown: int
    mean_chance: Annotated[float, Meta(description="over the visits it was offered to")]
    smallest: Annotated[float, Meta(description="of those chances")]
    mean_weight: Annotated[float, Meta(description="Σ 1/p where shown / offered: 1 if p is right")]


class PropensityReport(msgspec.Struct, frozen=True):
    """Estimated propensities: the whole document."""

    format: Annotated[str, Meta(description="`topstory-propensities`")]
    version: Annotated[int, Meta(description="1; fields may be added under the same version")]
    log: Annotated[str, Meta(description="the log as given")]
    out: Annotated[str, Meta(description="the log with its propensities")]
    events: int
    method: str
    estimate: Annotated[str, Meta(description="the mark of the log, in words")]
    calibrated: bool
    losses: Annotated[
        dict[str, float],
        Meta(description="mean −ln p of what was shown, unseen, of all models tried"),
    ]
    calibration: tuple[CalibrationReport, ...]
    calibration_error: Annotated[float, Meta(description="mean |said − shown|, of what was shown")]
    articles: Annotated[tuple[OverlapReport, ...], Meta(description="the most shown first")]
    hardly_shown: Annotated[
        float, Meta(description="share of pairs of visit and article with a chance below 1 %")
    ]
    surprises: Annotated[
        float, Meta(description="share of visits that were not shown the likeliest article")
    ]
    effective_events: Annotated[
        float, Meta(description="what the log is worth for a policy that shows all alike")
    ]
    cautions: tuple[str, ...]
    seconds: float


def propensity_report(log: str, out: str, found: PropensityEstimate) -> PropensityReport:
    """An estimate as a record."""
    return PropensityReport(
        format="topstory-propensities",
        version=1,
        log=log,
        out=out,
        events=len(found.log),
        method=found.method,
        estimate=found.log.propensity_estimate or "",
        calibrated=found.calibrated,
        losses=dict(found.losses),
        calibration=tuple(CalibrationReport(*each) for each in found.calibration),
        calibration_error=found.calibration_error,
        articles=tuple(OverlapReport(*each) for each in found.articles),
        hardly_shown=found.hardly_shown,
        surprises=found.surprises,
        effective_events=found.effective_events,
        cautions=found.cautions,
        seconds=found.seconds,
    )
