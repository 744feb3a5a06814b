"""What `topstory evaluate --json` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from topstory.cli.reports.finite import Ends, MaybeFloat, finite, finite_ends

if TYPE_CHECKING:
    from topstory.evaluation import Evaluation, PolicyValue, Quantity


class QuantityReport(msgspec.Struct, frozen=True):
    """A number with its 95 % intervals; null where nothing can be said."""

    value: MaybeFloat
    interval: Annotated[Ends, Meta(description="for days like these; null: the log is too short")]
    these_days: Annotated[Ends, Meta(description="for these very days: other clicks and visitors")]


class ValueReport(msgspec.Struct, frozen=True):
    """What one policy would earn."""

    policy: Annotated[str, Meta(description="the file or the name, as given")]
    value: Annotated[QuantityReport, Meta(description="payoff per visit")]
    lift: Annotated[QuantityReport, Meta(description="over the baseline: 0.1 is 10 % more")]
    smallest_lift: Annotated[
        MaybeFloat, Meta(description="that this log shows with 80 % probability, at 5 %")
    ]
    mean_weight: Annotated[QuantityReport, Meta(description="Σw/n: 1 if all is well")]
    effective_events: Annotated[float, Meta(description="(Σw)²/Σw²")]
    largest_share: Annotated[float, Meta(description="of one event in all weights")]
    unsupported: Annotated[
        float, Meta(description="share of what the policy shows that the log never shows")
    ]
    parameter: Annotated[
        MaybeFloat, Meta(description="τ or λ, chosen by the log; null: none, or infinite")
    ]
    too_short: Annotated[bool, Meta(description="the log says nothing of other days")]
    cautions: Annotated[tuple[str, ...], Meta(description="what to know before using the value")]
    days_needed: Annotated[
        int | None, Meta(description="days of a log that could speak of others; null: this one can")
    ] = None
    robust_to: Annotated[
        float | None,
        Meta(
            description="estimated propensities may have odds off by this factor, and the lift "
            "still excludes 0; null: they were recorded, the log was judged in parts, or it does "
            "not exclude 0 anyway"
        ),
    ] = None


class EvaluationReport(msgspec.Struct, frozen=True):
    """An evaluation: the whole document."""

    format: Annotated[str, Meta(description="`topstory-evaluate`")]
    version: Annotated[int, Meta(description="1; fields may be added under the same version")]
    log: Annotated[str, Meta(description="the log as given")]
    estimator: str
    baseline: str
    bucket: str
    events: Annotated[int, Meta(description="events that judged")]
    trained_events: Annotated[int, Meta(description="events before those, that policies learned")]
    binary: Annotated[bool, Meta(description="whether every payoff is 0 or 1: a click")]
    logged: Annotated[QuantityReport, Meta(description="what the log itself earned per visit")]
    values: tuple[ValueReport, ...]
    covers: Annotated[str, Meta(description="which randomness the intervals cover")]
    warnings: tuple[str, ...]
    seconds: float
    events_per_second: MaybeFloat
    propensities: Annotated[str, Meta(description="where they are from, in words")] = ""


def evaluation_report(log: str, found: Evaluation, warnings: list[str]) -> EvaluationReport:
    """An evaluation as a record."""
    work = found.events * len(found.values)
    return EvaluationReport(
        format="topstory-evaluate",
        version=1,
        log=log,
        estimator=found.estimator,
        baseline=found.baseline,
        bucket=found.bucket,
        events=found.events,
        trained_events=found.trained_events,
        binary=found.binary,
        logged=quantity_report(found.logged),
        values=tuple(value_report(each) for each in found.values.values()),
        covers=found.covers,
        warnings=tuple(warnings),
        seconds=found.seconds,
        events_per_second=finite(work / found.seconds) if found.seconds else None,
        propensities=found.propensities,
    )


def value_report(value: PolicyValue) -> ValueReport:
    """What one policy would earn, as a record."""
    return ValueReport(
        policy=value.policy,
        value=quantity_report(value.value),
        lift=quantity_report(value.lift),
        smallest_lift=finite(value.smallest_lift),
        mean_weight=quantity_report(value.mean_weight),
        effective_events=value.effective_events,
        largest_share=value.largest_share,
        unsupported=value.unsupported,
        parameter=None if value.parameter is None else finite(value.parameter),
        too_short=value.value.too_short,
        days_needed=value.value.days_needed,
        cautions=value.cautions,
        robust_to=value.robust_to,
    )


def quantity_report(found: Quantity) -> QuantityReport:
    """A number with its intervals, as a record."""
    return QuantityReport(
        finite(found.value), finite_ends(found.interval), finite_ends(found.these_days)
    )
