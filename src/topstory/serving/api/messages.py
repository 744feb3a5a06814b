"""What is asked and answered over HTTP. The same types decode requests and make the OpenAPI."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from topstory.serving.api.buckets import Bucket

ArticleId = Annotated[str, Meta(min_length=1, max_length=200)]
PoolId = Annotated[str, Meta(min_length=1, max_length=63)]
# Without NUL, which PostgreSQL cannot keep in a text.
ClientId = Annotated[str, Meta(min_length=1, max_length=200, pattern="^[^\\x00]*$")]
DecisionId = Annotated[str, Meta(min_length=1, max_length=100)]
Numbers = Annotated[tuple[float, ...], Meta(min_length=1, max_length=10_000)]
Moment = Annotated[datetime, Meta(tz=True)]


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A body: a field that is not known is a mistake."""


class DecideRequest(Request, frozen=True):
    """Who came, and where."""

    user: Annotated[
        Numbers | dict[str, Any],
        Meta(description="the context, its constant 1 last; or a raw profile (feature model)"),
    ]
    pool: Annotated[PoolId | None, Meta(description="default: the first of the file")] = None
    visitor: Annotated[
        ClientId | None, Meta(description="the visitor's id: his bucket stays the same")
    ] = None
    request: Annotated[
        ClientId | None, Meta(description="your id: repeating it returns the same decision")
    ] = None
    exclude: Annotated[
        tuple[ArticleId, ...], Meta(max_length=1000, description="articles not to show")
    ] = ()
    slots: Annotated[
        int, Meta(ge=1, le=100, description="length of the ranking (the paper's F1 to F4: 4)")
    ] = 1


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What to show."""

    decision: Annotated[str, Meta(description="give it back with the feedback")]
    article: Annotated[str, Meta(description="for the story position")]
    ranking: Annotated[tuple[str, ...], Meta(description="it, and what follows")]
    bucket: Bucket
    propensity: Annotated[float, Meta(description="its probability over the whole traffic mix")]
    expires: Annotated[datetime, Meta(description="feedback is taken until then")]
    model_version: Annotated[int, Meta(description="the last record the model had learned from")]


class FeedbackRequest(Request, frozen=True):
    """What a decision paid."""

    decision: DecisionId
    payoff: Annotated[float, Meta(description="a click 0 or 1, or any finite number")]


class Acknowledged(msgspec.Struct, frozen=True, gc=False):
    """The payoff is in the journal, and in the model."""

    decision: str
    payoff: float
    repeated: Annotated[bool, Meta(description="it had been given before: nothing changed")]


class ArticleRequest(Request, frozen=True):
    """What an editor says of an article."""

    features: Annotated[Numbers | None, Meta(description="its constant 1 last")] = None
    profile: Annotated[
        dict[str, Any] | None, Meta(description="raw categories (feature model)")
    ] = None
    title: Annotated[str, Meta(max_length=500)] = ""
    link: Annotated[str, Meta(max_length=2000)] = ""
    begins: Annotated[Moment | None, Meta(description="shown from then on")] = msgspec.field(
        default=None, name="from"
    )
    ends: Annotated[Moment | None, Meta(description="not shown from then on")] = msgspec.field(
        default=None, name="until"
    )


class BucketCounts(msgspec.Struct, frozen=True):
    """What one bucket saw."""

    shows: int
    payoff: float
    ctr: float | None


class SegmentView(msgspec.Struct, frozen=True):
    """An article for one segment of users: those whose largest feature has this number."""

    segment: int
    shows: int
    payoff: float
    ctr: float | None
    estimate: Annotated[float | None, Meta(description="for a user wholly in the segment")]
    interval: Annotated[
        tuple[float, float] | None, Meta(description="estimate ± alpha widths (or 1, if no alpha)")
    ]


class ArticleView(msgspec.Struct, frozen=True):
    """An article, and how it does."""

    pool: str
    id: str
    title: str
    link: str
    features: tuple[float, ...] | None
    begins: datetime | None = msgspec.field(name="from")
    ends: datetime | None = msgspec.field(name="until")
    showable: bool
    shows: int
    payoff: float
    ctr: float | None
    buckets: dict[Bucket, BucketCounts]
    segments: tuple[SegmentView, ...]


class RemovedAnswer(msgspec.Struct, frozen=True):
    """The article is forgotten."""

    pool: str
    removed: str


class PoolStats(msgspec.Struct, frozen=True):
    """A pool: its policy, its articles, its buckets."""

    policy: str
    articles: int
    showable: int
    shows: int
    payoff: float
    buckets: dict[Bucket, BucketCounts]
    drift: Annotated[float, Meta(description="largest entry of |A·A⁻¹ − I|: rounding")]


class Stats(msgspec.Struct, frozen=True):
    """The service as a whole."""

    version: str
    uptime_seconds: float
    records: Annotated[int, Meta(description="the number of the last record")]
    waiting: Annotated[int, Meta(description="records not committed yet")]
    commits: int
    last_commit_seconds: float
    snapshot: Annotated[int, Meta(description="the last record in the newest snapshot")]
    snapshot_age_seconds: float
    clock_ahead_seconds: float
    failing: str | None
    fingerprint: Annotated[str, Meta(description="a hash of all that was learned and counted")]
    pools: dict[str, PoolStats]


class Health(msgspec.Struct, frozen=True):
    """Whether it lives, or is ready."""

    status: str
    reason: str | None = None
