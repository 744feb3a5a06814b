"""What `topstory replay --estimator dr-ns --json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from topstory.cli.reports.evaluate import QuantityReport, quantity_report
from topstory.cli.reports.finite import MaybeFloat, finite

if TYPE_CHECKING:
    from topstory.evaluation import LearningValue


class LearningReport(msgspec.Struct, frozen=True):
    """One policy that learns, at one quantile."""

    policy: str
    quantile: Annotated[float, Meta(description="0: unbiased; above: longer histories")]
    value: Annotated[QuantityReport, Meta(description="payoff per visit while it learns")]
    lift: Annotated[QuantityReport, Meta(description="over what was logged")]
    trials: Annotated[int, Meta(description="events that joined what the policy learned from")]
    kept: Annotated[float, Meta(description="the same, as a share of the log")]
    missing: Annotated[
        float, Meta(description="share of the policy's own trials that its history lacks")
    ]
    events_per_second: MaybeFloat
    bias_bound: Annotated[
        float, Meta(description="so far the value can be off by what is missing, at most")
    ] = 0.0


class LearningReports(msgspec.Struct, frozen=True):
    """Policies that learn, on a log of any known propensities: the whole document."""

    format: Annotated[str, Meta(description="`topstory-dr-ns`")]
    version: Annotated[int, Meta(description="1; fields may be added under the same version")]
    log: Annotated[str, Meta(description="the log as given")]
    events: int
    logged: Annotated[MaybeFloat, Meta(description="what the log itself earned per visit")]
    policies: tuple[LearningReport, ...]
    warnings: tuple[str, ...]


def learning_report(
    log: str,
    found: Sequence[tuple[str, LearningValue]],
    logged: float,
    warnings: Sequence[str],
) -> LearningReports:
    """Runs as a record."""
    return LearningReports(
        format="topstory-dr-ns",
        version=1,
        log=log,
        events=found[0][1].events,
        logged=finite(logged),
        policies=tuple(
            LearningReport(
                policy=name,
                quantile=run.quantile,
                value=quantity_report(run.value),
                lift=quantity_report(run.lift),
                trials=run.trials,
                kept=run.kept,
                missing=run.missing,
                events_per_second=finite(run.events / run.seconds) if run.seconds else None,
                bias_bound=run.bias_bound,
            )
            for name, run in found
        ),
        warnings=tuple(warnings),
    )
