"""The section `limits` of the configuration."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from topstory.serving.config.section import Positive, PositiveInt, Section


class LimitsConfig(Section, frozen=True):
    """Limits on requests, connections and memory."""

    body_bytes: Annotated[PositiveInt, Meta(description="size of a request body; above: 413")] = (
        1_000_000
    )
    policy_bytes: Annotated[
        PositiveInt,
        Meta(description="size of a request body that brings a policy, in base64; above: 413"),
    ] = 50_000_000
    promotions: Annotated[
        PositiveInt,
        Meta(
            description="policies that a pool is given in an hour; above: 429. The journal keeps "
            "each of them"
        ),
    ] = 20
    header_bytes: Annotated[
        PositiveInt, Meta(description="size of the request line and headers; above: 431")
    ] = 16_384
    request_seconds: Annotated[
        Positive, Meta(description="time to send a complete request; after: 408")
    ] = 10.0
    idle_seconds: Annotated[
        PositiveInt,
        Meta(description="a connection is closed if nothing was sent or read on it for so long"),
    ] = 75
    connections: Annotated[PositiveInt, Meta(description="open connections; above: 503")] = 1_000
    batch: Annotated[PositiveInt, Meta(description="requests in one array; above: 413")] = 1_000
    waiting: Annotated[
        PositiveInt, Meta(description="records waiting for a commit; above: 503")
    ] = 20_000
    rate: Annotated[Positive, Meta(description="requests per second and key; above: 429")] = 1e6
    burst: Annotated[
        PositiveInt, Meta(description="requests that may exceed that rate at once")
    ] = 10_000
    articles: Annotated[PositiveInt, Meta(description="articles in a pool; above: 409")] = 10_000
    magnitude: Annotated[
        Positive,
        Meta(description="largest absolute value in contexts, features and payoffs"),
    ] = 1_000.0
    context_norm: Annotated[
        Positive | None,
        Meta(
            description="largest length (Euclidean norm) of a context; above: 422. Long contexts "
            "weigh more than others. Not set: 1.5, enough for memberships that sum to 1 and the "
            "constant; no bound for a data folder of version 0.1"
        ),
    ] = None
    taught_norm: Annotated[
        Positive | None,
        Meta(
            description="longer contexts are accepted, but a linear model learns from them with "
            "the weight (taught_norm / length)²: the leverage xᵀA⁻¹x of one decision is at most "
            "taught_norm² / ridge. Not set: as `context_norm`"
        ),
    ] = None
    payoffs: Annotated[
        tuple[float, float] | None,
        Meta(
            description="lowest and highest payoff; outside: 422. Not set: 0 and 1, and no bound "
            "for a data folder of version 0.1"
        ),
    ] = None
    visitor_decisions: Annotated[
        PositiveInt,
        Meta(
            description="decisions per visitor and hour that teach the model, over all workers; "
            "more are answered, but not learned from"
        ),
    ] = 100
    remembered: Annotated[
        PositiveInt,
        Meta(description="recent decisions in memory; older ones are read from the journal"),
    ] = 100_000
    remembered_bytes: Annotated[
        PositiveInt, Meta(description="the memory that they take, about")
    ] = 200_000_000
    queue_seconds: Annotated[
        Positive,
        Meta(description="work that waits in a process; decisions above: 503. It is measured"),
    ] = 0.3
    decision_seconds: Annotated[
        Positive,
        Meta(
            description="work of one decision, 1 ns for each article and number of its d × d "
            "matrix; an article above: 409"
        ),
    ] = 0.1
    shared_features: Annotated[
        PositiveInt,
        Meta(
            description="`context` times the number of an article's features; above: 422. The "
            "hybrid model has three matrices of this size"
        ),
    ] = 2_000
    worker_seconds: Annotated[
        Positive,
        Meta(description="a worker that does not answer the learner for so long is restarted"),
    ] = 10.0
    shutdown_seconds: Annotated[
        PositiveInt, Meta(description="time to finish running requests at shutdown")
    ] = 10
