"""What `topstory train --json` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from topstory.cli.reports.finite import Ends, MaybeFloat, finite, finite_ends
from topstory.policies.entries import settings_of

if TYPE_CHECKING:
    from topstory.evaluation import Bucket, Training


class HeldOutBucket(msgspec.Struct, frozen=True):
    """What one bucket earned on the held-out events."""

    trials: Annotated[int, Meta(description="events retained")]
    ctr: Annotated[MaybeFloat, Meta(description="payoff per trial")]
    interval: Annotated[Ends, Meta(description="its 95 % interval, over the clicks of this log")]
    relative_ctr: Annotated[MaybeFloat, Meta(description="divided by the random policy's")]
    relative_interval: Annotated[Ends, Meta(description="its 95 % interval")]


class HeldOutReport(msgspec.Struct, frozen=True):
    """The policy that the rest of the log taught, replayed on the last part without learning."""

    events: Annotated[int, Meta(description="events held out, at the end of the log")]
    binary: Annotated[bool, Meta(description="whether every payoff there is 0 or 1: a click")]
    random_ctr: Annotated[MaybeFloat, Meta(description="the random policy's CTR there")]
    deployment: Annotated[HeldOutBucket, Meta(description="its greedy choices")]
    learning: Annotated[HeldOutBucket, Meta(description="its choices with exploration")]


class TrainReport(msgspec.Struct, frozen=True):
    """A trained policy: the whole document."""

    format: Annotated[str, Meta(description="`topstory-train`")]
    version: Annotated[int, Meta(description="1; fields may be added under the same version")]
    log: Annotated[str, Meta(description="the log as given")]
    out: Annotated[str, Meta(description="the file of the trained policy")]
    policy: Annotated[str, Meta(description="its name in topstory")]
    paper: Annotated[str, Meta(description="its name in the paper")]
    parameters: Annotated[dict[str, float | str], Meta(description="alpha, epsilon, ridge, …")]
    articles: Annotated[int, Meta(description="articles that it knows")]
    events: Annotated[int, Meta(description="events that it learned from")]
    weights: Annotated[str, Meta(description="`none` or `propensity`")]
    effective_events: Annotated[
        float, Meta(description="as many events with equal weights would teach as much")
    ]
    capped: Annotated[int, Meta(description="events whose weight was limited to 10")]
    refitted: Annotated[
        bool, Meta(description="whether it learned the held-out events, too, in the end")
    ]
    held_out: Annotated[HeldOutReport | None, Meta(description="null if none were")]
    seconds: Annotated[float, Meta(description="duration of the learning")]
    events_per_second: Annotated[MaybeFloat, Meta(description="learned per second")]
    context: Annotated[
        int, Meta(description="numbers of a context: `context` of the service's configuration")
    ] = 1
    payoffs: Annotated[
        tuple[float, float], Meta(description="the least and the largest payoff that it learned")
    ] = (0.0, 1.0)
    features: Annotated[
        str | None, Meta(description="the feature model as given: `features` of the service")
    ] = None


def train_report(
    log: str,
    out: str,
    policy: str,
    weights: str,
    training: Training,
    features: str | None = None,
) -> TrainReport:
    """A training as a record."""
    from topstory.policies import REGISTRY

    model = training.policy.model
    numbers = model.parameters() | training.policy.explorer.parameters()
    return TrainReport(
        format="topstory-train",
        version=1,
        log=log,
        out=out,
        policy=policy,
        paper=REGISTRY[policy].paper,
        parameters=settings_of(numbers),
        articles=sum(article is not None for article in model.roster.ids),
        events=training.events,
        weights=weights,
        effective_events=training.effective_events,
        capped=training.capped,
        refitted=training.refitted,
        held_out=_held_out(training),
        seconds=training.seconds,
        events_per_second=training.events / training.seconds if training.seconds else None,
        context=model.dimension or 1,
        payoffs=training.payoffs,
        features=features,
    )


def _held_out(training: Training) -> HeldOutReport | None:
    found = training.held_out
    if found is None:
        return None
    return HeldOutReport(
        events=training.held_out_events,
        binary=found.deployment.binary,
        random_ctr=finite(found.random_ctr),
        deployment=_bucket(found.deployment),
        learning=_bucket(found.learning),
    )


def _bucket(bucket: Bucket) -> HeldOutBucket:
    return HeldOutBucket(
        trials=bucket.trials,
        ctr=finite(bucket.ctr),
        interval=finite_ends(bucket.interval),
        relative_ctr=finite(bucket.relative_ctr),
        relative_interval=finite_ends(bucket.relative_interval),
    )
