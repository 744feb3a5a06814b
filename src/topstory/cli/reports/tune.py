"""What `topstory tune --json` prints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from topstory.cli.reports.finite import Ends, MaybeFloat, finite, finite_ends
from topstory.cli.reports.replay import SavedReport

TOTAL = "total"

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
    total: Annotated[
        EstimateReport, Meta(description="both buckets, with `learning_share` of visits learning")
    ]
    clicks_per_100000: Annotated[
        MaybeFloat, Meta(description="fewer clicks in 100,000 visits than without exploring")
    ]
    repeats: Annotated[int, Meta(description="number of seeds averaged")]
    seconds: Annotated[float, Meta(description="duration of their replays, added up")]
    chosen: Annotated[
        bool,
        Meta(description="whether it is recommended; no point is if nothing was clicked"),
    ]


class CurveReport(msgspec.Struct, frozen=True):
    """The tuning curve at one data size."""

    size: Annotated[float, Meta(description="share of retained events that was learned from")]
    points: Annotated[tuple[PointReport, ...], Meta(description="in the order of the grid")]
    expected: Annotated[
        EstimateReport | None,
        Meta(description="what the recommended point earns, without the luck of being chosen"),
    ]
    at_edge: Annotated[
        tuple[str, ...], Meta(description="parameters recommended at the edge of what was tried")
    ]
    sure: Annotated[bool, Meta(description="whether any other point is surely worse")]
    advice: Annotated[str, Meta(description="the recommendation in words")]


class TuneReport(msgspec.Struct, frozen=True):
    """The tuning of one policy: the whole document."""

    format: Annotated[str, Meta(description="`topstory-tune`")]
    version: Annotated[int, Meta(description="1; fields may be added under the same version")]
    log: Annotated[str, Meta(description="the log as given")]
    events: Annotated[int, Meta(description="events in each replay")]
    policy: Annotated[str, Meta(description="its name in topstory")]
    paper: Annotated[str, Meta(description="its name in the paper")]
    on: Annotated[str, Meta(description="what decides: `total`, `deployment` or `learning`")]
    learning_share: Annotated[float, Meta(description="share of visits that learn, in `total`")]
    widened: Annotated[
        tuple[str, ...], Meta(description="parameters of which more values were tried")
    ]
    curves: Annotated[tuple[CurveReport, ...], Meta(description="one for each data size")]
    saved: Annotated[
        SavedReport | None, Meta(description="the policy that --save wrote, if it was asked to")
    ] = None
    binary: Annotated[
        bool, Meta(description="whether payoffs are 0 or 1: if not, a CTR is a mean payoff")
    ] = True


def tune_report(log: str, events: int, tuning: Tuning, binary: bool = True) -> TuneReport:
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
        learning_share=tuning.learning_share,
        widened=tuning.widened,
        curves=tuple(_curve(tuning, size, binary) for size in tuning.sizes),
        binary=binary,
    )


def _curve(tuning: Tuning, size: float, binary: bool) -> CurveReport:
    best = tuning.best(size)
    known = math.isfinite(getattr(best, tuning.on).value)
    expected = _estimate(tuning.expected(size)) if known else None
    at_edge, sure = tuning.at_edge(size), known and tuning.differs(size)
    return CurveReport(
        size=size,
        points=tuple(_point(point, known and point is best) for point in tuning.curve(size)),
        expected=expected,
        at_edge=at_edge if known else (),
        sure=sure,
        advice=_advice(tuning, size, expected, sure, "clicks" if binary else "of payoff"),
    )


def _advice(
    tuning: Tuning, size: float, expected: EstimateReport | None, sure: bool, paid: str
) -> str:
    """One recommendation, and why."""
    what = {TOTAL: "over both buckets"}.get(tuning.on, f"in the {tuning.on} bucket")
    if expected is None:
        nothing = "There were no clicks" if paid == "clicks" else "The mean payoff is not above 0"
        return f"{nothing} {what}, so no value is known to be best."
    best, highest = tuning.best(size), tuning.highest(size)
    ends = expected.interval
    between = " (this log is too short to say how sure that is)"
    if ends is not None:
        between = f" (95 % interval {ends[0]:.2f} to {ends[1]:.2f})"
    sentences = [
        f"Use {_listed(best)}: it earns {expected.relative_ctr:.2f} times as much as random "
        f"articles {what}{between}, and exploring {_cost(best.exploration.clicks.value)} {paid} in "
        "100,000 visits."
    ]
    if not sure:
        sentences.append("No other value is surely worse: a longer log may tell them apart.")
    elif best is not highest:
        own = getattr(highest, tuning.on).value
        sentences.append(
            f"{_listed(highest).capitalize()} is higher on its own ({own:.2f}), which all values "
            "together do not bear out."
            if tuning.on != "deployment"
            else f"{_listed(highest).capitalize()} is higher ({own:.2f}), but not surely, and "
            f"earns {highest.learning.value:.2f} while learning, not {best.learning.value:.2f}."
        )
    if edges := tuning.at_edge(size):
        sentences.append(
            f"This is at the edge of what was tried for {' and '.join(edges)}: try values beyond "
            "it too."
        )
    return " ".join(sentences)


def _cost(value: float) -> str:
    """What it costs; where the learning bucket earned more, what it earns.

    >>> _cost(120.4), _cost(-2016.0)
    ('costs 120', 'earns 2016')
    """
    return f"{'earns' if round(value) < 0 else 'costs'} {abs(value):.0f}"


def _listed(point: Point) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in point.parameters.items())


def _point(point: Point, chosen: bool) -> PointReport:
    return PointReport(
        parameters=dict(point.parameters),
        deployment=_estimate(point.deployment),
        learning=_estimate(point.learning),
        total=_estimate(point.total),
        clicks_per_100000=finite(point.exploration.clicks.value),
        repeats=len(point.outcomes),
        seconds=sum(outcome.seconds for outcome in point.outcomes),
        chosen=chosen,
    )


def _estimate(found: Estimate) -> EstimateReport:
    return EstimateReport(finite(found.value), finite_ends(found.interval))
