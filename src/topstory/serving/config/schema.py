"""What a service is told: one TOML file, typed, every key with its meaning and a good default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from topstory.policies.registry import NUMBERS, described

Share = Annotated[float, Meta(ge=0, le=1)]
Positive = Annotated[float, Meta(gt=0, le=1e9)]  # seconds: thirty years
Count = Annotated[int, Meta(ge=1)]
PoolName = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
Postgres = Annotated[str, Meta(pattern=r"^postgres(ql)?://")]
Role = Literal["decide", "feedback", "edit", "read"]

SERVED = tuple(name for name, parameter in NUMBERS.items() if parameter.served)
ROLES: tuple[Role, ...] = ("decide", "feedback", "edit", "read")


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file: a key that it does not know is a mistake."""


class _PolicyName(Section, frozen=True):
    name: Annotated[str, Meta(description="one of `topstory replay`'s policies")] = "linucb-hybrid"


if TYPE_CHECKING:
    _PolicyNumbers = _PolicyName
else:  # a key for every number that a registered policy takes: alpha, epsilon, ridge, …
    _PolicyNumbers = msgspec.defstruct(
        "_PolicyNumbers",
        [
            (name, Annotated[float | None, Meta(description=described(NUMBERS[name]))], None)
            for name in SERVED
        ],
        bases=(_PolicyName,),
        frozen=True,
        forbid_unknown_fields=True,
    )


class PolicyConfig(_PolicyNumbers, frozen=True):
    """Which policy decides."""

    seed: Annotated[int, Meta(ge=0, description="of ties and draws")] = 0
    start: Annotated[
        str | None,
        Meta(
            description="a file of `Policy.save` to begin with, such as a replay's; it says the "
            "model and its parameters, and is read when the pool is first opened"
        ),
    ] = None


class TrafficConfig(Section, frozen=True):
    """The shares of the three buckets; they sum to 1."""

    learning: Annotated[Share, Meta(description="explores, and teaches")] = 0.5
    deployment: Annotated[Share, Meta(description="is served the best estimate; not learned")] = 0.4
    uniform: Annotated[Share, Meta(description="is shown any article: the next replay's log")] = 0.1
    uniform_teaches: Annotated[bool, Meta(description="whether uniform traffic teaches too")] = True


class PoolConfig(Section, frozen=True):
    """A pool of articles: a site or a section of one, with a policy of its own."""

    policy: Annotated[PolicyConfig | None, Meta(description="instead of `[policy]`")] = None
    traffic: Annotated[TrafficConfig | None, Meta(description="instead of `[traffic]`")] = None


class JournalConfig(Section, frozen=True):
    """How the journal is kept."""

    url: Annotated[
        Postgres | None,
        Meta(description="a PostgreSQL database to keep it in; not set: a file in `data`"),
    ] = None
    decisions: Annotated[
        Literal["durable", "relaxed"],
        Meta(
            description="`relaxed` answers a decision before it is on disk: faster where the disk "
            "is slow, but those of the last moment before a crash are forgotten, and feedback on "
            "them is refused"
        ),
    ] = "durable"
    snapshot_seconds: Annotated[Positive, Meta(description="how often the state is saved")] = 60.0
    archive_days: Annotated[
        Positive | None,
        Meta(description="decisions older than this move to log folders; not set: never"),
    ] = None
    lock_seconds: Annotated[
        float,
        Meta(gt=0, le=3_600, description="how long a commit waits for whoever locked the file"),
    ] = 1.0


class LimitsConfig(Section, frozen=True):
    """How much is too much."""

    body_bytes: Annotated[Count, Meta(description="of a request's body; more: 413")] = 1_000_000
    header_bytes: Annotated[Count, Meta(description="of its line and headers; more: 431")] = 16_384
    request_seconds: Annotated[Positive, Meta(description="to send it whole; more: 408")] = 10.0
    idle_seconds: Annotated[
        Count,
        Meta(description="a silent connection is kept, or one that reads nothing of its answers"),
    ] = 75
    connections: Annotated[Count, Meta(description="at a time; more: 503")] = 1_000
    batch: Annotated[Count, Meta(description="requests in one array; more: 413")] = 1_000
    waiting: Annotated[Count, Meta(description="records waiting for a commit; more: 503")] = 20_000
    rate: Annotated[Positive, Meta(description="requests a second for each key; more: 429")] = 1e6
    burst: Annotated[Count, Meta(description="requests at once above that rate")] = 10_000
    articles: Annotated[Count, Meta(description="in a pool; more: 409")] = 10_000
    magnitude: Annotated[
        Positive,
        Meta(description="the largest absolute number in contexts, features and payoffs"),
    ] = 1_000.0
    remembered: Annotated[
        Count, Meta(description="recent decisions in memory; older ones are read from the journal")
    ] = 100_000
    shutdown_seconds: Annotated[Count, Meta(description="to finish what is in flight")] = 10


class KeyConfig(Section, frozen=True):
    """An API key, of which only the hash is known. `topstory new-key` makes one."""

    name: Annotated[str, Meta(min_length=1, max_length=64, description="for metrics and people")]
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$", description="of the key, in hex")]
    roles: Annotated[tuple[Role, ...], Meta(min_length=1, description="what it may do")] = ROLES


class Config(Section, frozen=True):
    """The whole file."""

    host: Annotated[str, Meta(description="the address to listen on")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="0: any that is free")] = 8000
    workers: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            description="processes that answer requests, beside one that learns; 1: one process "
            "does all",
        ),
    ] = 1
    publish_seconds: Annotated[
        float,
        Meta(
            gt=0,
            le=60,
            description="with several workers: how long one may decide from an older state; edits "
            "are seen at once",
        ),
    ] = 0.02
    data: Annotated[
        str, Meta(description="the folder of the journal, the snapshots and the keys")
    ] = "topstory-data"
    context: Annotated[Count, Meta(description="numbers in a user's context")] = 6
    features: Annotated[
        str | None, Meta(description="a fitted feature model: then raw profiles are taken too")
    ] = None
    window_seconds: Annotated[
        Positive, Meta(description="feedback is taken so long after a decision")
    ] = 3_600.0
    demo: Annotated[
        bool, Meta(description="begin an empty pool with the demo's twenty articles")
    ] = False
    cors_origins: Annotated[
        tuple[str, ...],
        Meta(
            description="sites whose pages may call; none by default. A page's own request costs "
            "more than twice the CPU"
        ),
    ] = ()
    log_level: Annotated[
        Literal["warning", "info", "debug"], Meta(description="what the server writes to stderr")
    ] = "info"
    policy: PolicyConfig = PolicyConfig()
    traffic: TrafficConfig = TrafficConfig()
    pools: Annotated[
        dict[PoolName, PoolConfig],
        Meta(min_length=1, description="`[pools.NAME]`; the first is the default one"),
    ] = msgspec.field(default_factory=lambda: {"front": PoolConfig()})
    journal: JournalConfig = JournalConfig()
    limits: LimitsConfig = LimitsConfig()
    keys: Annotated[
        tuple[KeyConfig, ...],
        Meta(description="`[[keys]]`; none: one with all roles is made and kept in `data`"),
    ] = ()
    signing: Annotated[
        dict[str, str],
        Meta(
            description="id = secret (32 bytes or more, in hex) that decision ids are signed with: "
            "the last signs, all are accepted; none: one is made and kept in `data`"
        ),
    ] = msgspec.field(default_factory=dict)

    def policy_of(self, pool: str) -> PolicyConfig:
        """The pool's policy: its own, or the common one."""
        return self.pools[pool].policy or self.policy

    def traffic_of(self, pool: str) -> TrafficConfig:
        """The pool's shares: its own, or the common ones."""
        return self.pools[pool].traffic or self.traffic


def plain(config: Config) -> dict[str, Any]:
    """The configuration without its secrets, as it is journalled."""
    told: dict[str, Any] = msgspec.to_builtins(config)
    told.pop("signing")
    told["journal"].pop("url")  # it may hold a password
    told["keys"] = [{"name": key.name, "roles": list(key.roles)} for key in config.keys]
    return told
