"""Request and response bodies. The same types decode requests and describe them in OpenAPI."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

ArticleId = Annotated[str, Meta(min_length=1, max_length=200)]
PoolId = Annotated[str, Meta(min_length=1, max_length=63)]
# No NUL: PostgreSQL cannot store it in a text column.
ClientId = Annotated[str, Meta(min_length=1, max_length=200, pattern="^[^\\x00]*$")]
DecisionId = Annotated[str, Meta(min_length=1, max_length=100)]
Numbers = Annotated[tuple[float, ...], Meta(min_length=1, max_length=10_000)]
AwareDatetime = Annotated[datetime, Meta(tz=True)]

Bucket = Literal["learning", "deployment", "uniform"]
BUCKETS: tuple[Bucket, ...] = ("learning", "deployment", "uniform")  # by the kernel's codes


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A request body. Unknown fields are rejected."""


class DecideRequest(Request, frozen=True):
    """A visit that needs an article."""

    user: Annotated[
        Numbers | dict[str, Any],
        Meta(description="the context, ending in the constant 1; or a raw profile (feature model)"),
    ]
    pool: Annotated[PoolId | None, Meta(description="default: the first configured pool")] = None
    visitor: Annotated[
        ClientId | None, Meta(description="visitor id; a visitor always gets the same bucket")
    ] = None
    request: Annotated[
        ClientId | None, Meta(description="idempotency key; repeating it returns the same decision")
    ] = None
    exclude: Annotated[
        tuple[ArticleId, ...], Meta(max_length=1000, description="ids of articles not to show")
    ] = ()
    slots: Annotated[
        int, Meta(ge=1, le=100, description="length of the ranking (4 for the paper's F1 to F4)")
    ] = 1


class Decision(msgspec.Struct, frozen=True, gc=False):
    """Which article to show."""

    decision: Annotated[str, Meta(description="decision id, to send with the feedback")]
    article: Annotated[str, Meta(description="the article for the story position")]
    ranking: Annotated[
        tuple[str, ...], Meta(description="that article, then the rest of the ranking")
    ]
    bucket: Bucket
    propensity: Annotated[
        float, Meta(description="probability of the article over the whole traffic mix")
    ]
    expires: Annotated[datetime, Meta(description="feedback is accepted until then")]
    model_version: Annotated[
        int, Meta(description="number of the last record that the model had learned from")
    ]


class FeedbackRequest(Request, frozen=True):
    """The payoff of a decision."""

    decision: DecisionId
    payoff: Annotated[float, Meta(description="0 or 1 for a click, or any finite number")]


class Acknowledged(msgspec.Struct, frozen=True, gc=False):
    """The payoff is in the journal and in the model."""

    decision: str
    payoff: float
    repeated: Annotated[
        bool, Meta(description="the same payoff was recorded before; nothing changed")
    ]


class ArticleRequest(Request, frozen=True):
    """An article, as an editor describes it."""

    features: Annotated[Numbers | None, Meta(description="ending in the constant 1")] = None
    profile: Annotated[
        dict[str, Any] | None, Meta(description="the raw profile, with a feature model")
    ] = None
    title: Annotated[str, Meta(max_length=500)] = ""
    summary: Annotated[str, Meta(max_length=2000)] = ""
    link: Annotated[str, Meta(max_length=2000)] = ""
    picture: Annotated[str, Meta(max_length=2000, description="address of a picture")] = ""
    begins: Annotated[AwareDatetime | None, Meta(description="not shown before then")] = (
        msgspec.field(default=None, name="from")
    )
    ends: Annotated[AwareDatetime | None, Meta(description="not shown from then on")] = (
        msgspec.field(default=None, name="until")
    )


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A slot of the page that an article has until a time."""

    slot: Annotated[
        int, Meta(ge=1, le=100, description="1: the story position; 2 and more: in rankings")
    ] = 1
    until: Annotated[AwareDatetime | None, Meta(description="null: until it is changed")] = None


class LeversRequest(Request, frozen=True):
    """The levers of an article: all of them, what is left out is undone."""

    pin: Annotated[
        Pin | None,
        Meta(description="show it in this slot, but in the uniform bucket"),
    ] = None
    boost: Annotated[
        float,
        Meta(ge=0.1, le=10, description="times what is expected of it, but in the uniform bucket"),
    ] = 1.0
    max_shows: Annotated[
        Annotated[int, Meta(ge=0, le=2**53)] | None,
        Meta(description="at most so many shows in all"),
    ] = None
    max_share: Annotated[
        float, Meta(gt=0, le=1, description="of visits that may get it, drawn at random")
    ] = 1.0


class LeversView(msgspec.Struct, frozen=True):
    """The levers of an article, and what they cost."""

    pool: str
    article: str
    pin: Pin | None
    boost: float
    max_shows: int | None
    max_share: float
    pinned: Annotated[bool, Meta(description="whether the pin holds now")]
    exhausted: Annotated[bool, Meta(description="whether it had all shows that it may have")]
    cost: Annotated[
        float | None,
        Meta(
            description="payoff lost in 1,000 deployment visits against what the policy would show "
            "without this article's levers: by its own estimates, for the last visitors. Null: no "
            "visitor came yet"
        ),
    ]


class BucketCounts(msgspec.Struct, frozen=True):
    """Impressions and payoff of one bucket."""

    shows: int
    payoff: float
    ctr: float | None
    interval: Annotated[
        tuple[float, float] | None,
        Meta(
            description="of the CTR, 95 % for all looks together: look as often as you like. Only "
            "in a pool's stats, and for payoffs from 0 to 1"
        ),
    ] = None
    lift: Annotated[
        tuple[float, float | None] | None,
        Meta(
            description="over the uniform bucket, 0.1 is 10 % more: 95 % for all looks together. "
            "No upper end: null"
        ),
    ] = None


class SegmentView(msgspec.Struct, frozen=True):
    """An article in one user segment: the users whose largest feature has this index."""

    segment: int
    shows: int
    payoff: float
    ctr: float | None
    estimate: Annotated[float | None, Meta(description="for a user who is entirely in the segment")]
    interval: Annotated[
        tuple[float, float] | None,
        Meta(description="estimate ± alpha × width (alpha 1 if the policy has none)"),
    ]


class ArticleView(msgspec.Struct, frozen=True):
    """An article and its results."""

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
    summary: str = ""
    picture: str = ""
    levers: Annotated[LeversView | None, Meta(description="null: none is set")] = None


class RemovedAnswer(msgspec.Struct, frozen=True):
    """The article was removed."""

    pool: str
    removed: str


class PoolStats(msgspec.Struct, frozen=True):
    """A pool: its policy, articles and buckets."""

    policy: str
    articles: int
    showable: int
    shows: int
    payoff: float
    buckets: dict[Bucket, BucketCounts]
    drift: Annotated[float, Meta(description="largest entry of |A·A⁻¹ − I|, from rounding")]


class Stats(msgspec.Struct, frozen=True):
    """The state of the whole service."""

    version: str
    uptime_seconds: float
    records: Annotated[int, Meta(description="number of the last record")]
    waiting: Annotated[int, Meta(description="records that are not committed yet")]
    commits: int
    last_commit_seconds: float
    snapshot: Annotated[int, Meta(description="last record in the newest snapshot")]
    snapshot_age_seconds: float
    clock_ahead_seconds: float
    failing: str | None
    fingerprint: Annotated[str, Meta(description="hash of everything learned and counted")]
    pools: dict[str, PoolStats]
    outliers: Annotated[
        dict[str, int],
        Meta(
            description="since the start: contexts and payoffs refused as out of range; and what "
            "was not learned from, or with less weight, since the visitor or the key had too many "
            "or the context was too long (`leverage`)"
        ),
    ] = {}


class PolicyRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another policy for a pool."""

    policy: Annotated[bytes, Meta(description="a file of `Policy.save`, in base64")]
    note: Annotated[str, Meta(max_length=200, description="why, for the history")] = ""


class PolicyDescription(msgspec.Struct, frozen=True):
    """A policy."""

    summary: Annotated[str, Meta(description="for people")]
    model: str
    explorer: str
    parameters: dict[str, float]
    seed: int
    feature_model: Annotated[
        str | None, Meta(description="identity of the feature model; null: unknown")
    ]
    articles: Annotated[int, Meta(description="how many it knows, in the pool or not")]


class PolicyChangeView(msgspec.Struct, frozen=True):
    """A change of a pool's policy."""

    record: Annotated[int, Meta(description="number in the journal, from which it held")]
    at: datetime
    kind: Literal["promoted", "reverted"]
    policy: Annotated[str, Meta(description="what it was changed to")]
    file: Annotated[str, Meta(description="hash of its file; empty: the one before")]
    key: Annotated[str, Meta(description="name of the API key")]
    note: str


class PolicyView(msgspec.Struct, frozen=True):
    """The policy of a pool, and those before it."""

    pool: str
    policy: PolicyDescription
    since: Annotated[int | None, Meta(description="record; null: the pool began with it")]
    previous: Annotated[
        PolicyDescription | None, Meta(description="what a revert goes back to; null: nothing")
    ]
    changes: Annotated[tuple[PolicyChangeView, ...], Meta(description="the newest first")]


class OffPolicyValue(msgspec.Struct, frozen=True):
    """What a policy would have earned per decision, estimated from what was shown."""

    value: float
    standard_error: float
    effective_events: float


class PolicyComparison(msgspec.Struct, frozen=True):
    """The present policy and another one, on the last decisions of the journal.

    Both are judged by what the deployment bucket would show. The present policy has learned from
    these very decisions, so its value is a little too high; so may be the other's.
    """

    decisions: Annotated[int, Meta(description="that the values are of")]
    left_out: Annotated[int, Meta(description="could have shown articles that are gone")]
    agreement: Annotated[
        float | None, Meta(description="share of decisions on which both show the same article")
    ]
    agreed_on: Annotated[int, Meta(description="decisions that this share is of: the last ones")]
    current: OffPolicyValue | None
    candidate: OffPolicyValue | None


class PolicyChanged(msgspec.Struct, frozen=True):
    """A pool has another policy."""

    record: int
    now: PolicyView
    comparison: PolicyComparison | None = None


class Health(msgspec.Struct, frozen=True):
    """Whether the service is alive, or ready."""

    status: str
    reason: str | None = None
    model_age_seconds: Annotated[
        float | msgspec.UnsetType,
        Meta(description="of a fleet's front end: since it was published"),
    ] = msgspec.UNSET
