"""The configuration: one typed TOML file in which every key has a meaning and a default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from topstory.policies.registry import NUMBERS, described
from topstory.serving.api.endpoints import DEFAULT_ROLES, Role
from topstory.serving.config.limits import LimitsConfig
from topstory.serving.config.pages import PagesConfig
from topstory.serving.config.section import Positive, PositiveInt, Section

Share = Annotated[float, Meta(ge=0, le=1)]
PoolName = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
Postgres = Annotated[str, Meta(pattern=r"^postgres(ql)?://")]
MachineRole = Literal["alone", "front", "learner", "all"]
SERVED = tuple(name for name, parameter in NUMBERS.items() if parameter.served)


DEFAULT_POLICY, DEFAULT_PRIOR_POLICY = "linucb-hybrid", "linucb-hybrid-prior"


class _PolicyName(Section, frozen=True):
    name: Annotated[
        str | None,
        Meta(
            description="a policy of `topstory replay`; not set: that of `start`, or "
            f"`{DEFAULT_POLICY}`, with a `prior` `{DEFAULT_PRIOR_POLICY}`"
        ),
    ] = None


if TYPE_CHECKING:
    _PolicyNumbers = _PolicyName
else:  # a key for every number that a registered policy takes: alpha, epsilon, ridge, …
    _PolicyNumbers = msgspec.defstruct(
        "_PolicyNumbers",
        [
            (
                name,
                Annotated[
                    float | Literal[NUMBERS[name].words] | None
                    if NUMBERS[name].words
                    else float | None,
                    Meta(description=described(NUMBERS[name])),
                ],
                None,
            )
            for name in SERVED
        ],
        bases=(_PolicyName,),
        frozen=True,
        forbid_unknown_fields=True,
    )


class PolicyConfig(_PolicyNumbers, frozen=True):
    """The policy that decides."""

    seed: Annotated[int, Meta(ge=0, description="seed of tie-breaks and random choices")] = 0
    start: Annotated[
        str | None,
        Meta(
            description="a file written by `Policy.save` to start from, for example after a "
            "replay; it defines the model and its parameters, which no key beside it may "
            "contradict (how much it explores, such as `alpha`, may differ), and is read when the "
            "pool is first "
            "opened. Later it may be gone, but another file is refused: see `topstory promote`"
        ),
    ] = None
    prior: Annotated[
        str | None,
        Meta(
            description="a file written by `topstory prior`, for a policy whose name ends in "
            "`-prior`; read only when the pool is first opened"
        ),
    ] = None

    @property
    def used_name(self) -> str:
        """The name, where no `start` says otherwise."""
        return self.name or (DEFAULT_POLICY if self.prior is None else DEFAULT_PRIOR_POLICY)


class TrafficConfig(Section, frozen=True):
    """The shares of the three buckets. They must sum to 1."""

    learning: Annotated[Share, Meta(description="explores; the model learns from it")] = 0.5
    deployment: Annotated[
        Share, Meta(description="gets the best estimate; the model never learns from it")
    ] = 0.4
    uniform: Annotated[
        Share, Meta(description="gets a random article; a log for the next replay")
    ] = 0.1
    uniform_teaches: Annotated[
        bool, Meta(description="whether the model learns from uniform traffic too")
    ] = True


class PoolConfig(Section, frozen=True):
    """A pool of articles, such as a site or a section of it. It has a policy of its own."""

    policy: Annotated[
        PolicyConfig | None, Meta(description="replaces `[policy]` for this pool")
    ] = None
    traffic: Annotated[
        TrafficConfig | None, Meta(description="replaces `[traffic]` for this pool")
    ] = None


class JournalConfig(Section, frozen=True):
    """Where and how the journal is stored."""

    url: Annotated[
        Postgres | None,
        Meta(description="PostgreSQL database for the journal; not set: a file in `data`"),
    ] = None
    decisions: Annotated[
        Literal["durable", "relaxed"],
        Meta(
            description="`relaxed` answers a decision before it is on disk. That is faster on a "
            "slow disk, but a crash loses the last decisions, and feedback on them is rejected"
        ),
    ] = "durable"
    degraded: Annotated[
        Literal["refuse", "serve"],
        Meta(
            description="what a fleet's front end does while the database cannot be reached: "
            "`refuse` decisions with 503, or `serve` them from the last model, keep them in "
            "`data`, marked, and hand them in later. Payoffs are refused, to be sent again"
        ),
    ] = "refuse"
    visitors: Annotated[
        Literal["hashed", "given"],
        Meta(
            description="how a decision's visitor is recorded and exported: `hashed`, a pseudonym "
            "that nobody can trace without `bucket_secret`; or also as `given`, to join an export "
            "with other tables by the visitor's id"
        ),
    ] = "hashed"
    snapshot_seconds: Annotated[
        Positive, Meta(description="interval between snapshots of the state")
    ] = 60.0
    archive_days: Annotated[
        Positive | None,
        Meta(description="decisions older than this are moved to log folders; not set: never"),
    ] = None
    downtime_hours: Annotated[
        Positive,
        Meta(
            description="after a reboot or on another machine, a start follows the system clock "
            "up to so long after the last sign of life; beyond, it may be wrong, and "
            "`topstory serve --set-clock` is needed. Without a reboot it follows only what the "
            "machine's steady clock confirms"
        ),
    ] = 72.0
    lock_seconds: Annotated[
        float,
        Meta(
            gt=0,
            le=3_600,
            description="how long a commit waits while another program locks the file",
        ),
    ] = 1.0


class KeyConfig(Section, frozen=True):
    """An API key, stored as a hash. Create one with `topstory new-key`."""

    name: Annotated[str, Meta(min_length=1, max_length=64, description="a name for people")]
    sha256: Annotated[
        str, Meta(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the key, in hex")
    ]
    roles: Annotated[
        tuple[Role, ...],
        Meta(min_length=1, description="what the key may do; `promote` only if it is named"),
    ] = DEFAULT_ROLES
    taught_per_hour: Annotated[
        PositiveInt | None,
        Meta(
            description="decisions and payoffs of this key that teach a pool's model in an hour, "
            "so many of each; more are answered, but not learned from. Not set: no cap"
        ),
    ] = None


class Config(Section, frozen=True):
    """The top level of the file."""

    host: Annotated[str, Meta(description="address to listen on")] = "127.0.0.1"
    port: Annotated[
        int, Meta(ge=0, le=65535, description="port to listen on; 0: any free port")
    ] = 8000
    workers: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            description="processes that answer requests, beside one that learns; 1: one process "
            "does both",
        ),
    ] = 1
    role: Annotated[
        MachineRole | None,
        Meta(
            description="in a fleet, whose machines share the PostgreSQL of `journal.url`: `front` "
            "answers requests, `learner` learns if no other machine does, `all` does both. "
            "`alone`: this machine serves with no other. Not set: `all` with a `journal.url`, "
            "`alone` without one, or with `workers`"
        ),
    ] = None
    publish_seconds: Annotated[
        float,
        Meta(
            gt=0,
            le=60,
            description="with several workers or machines: how long one may decide from an older "
            "state; between machines 0.05 at least. Edits take effect at once",
        ),
    ] = 0.02
    data: Annotated[str, Meta(description="folder of the journal, the snapshots and the keys")] = (
        "topstory-data"
    )
    context: Annotated[PositiveInt, Meta(description="length of a user's context")] = 6
    features: Annotated[
        str | None,
        Meta(description="file of a fitted feature model; requests may then send raw profiles"),
    ] = None
    window_seconds: Annotated[
        Positive, Meta(description="feedback is accepted for so long after a decision")
    ] = 3_600.0
    demo: Annotated[bool, Meta(description="fill an empty pool with the twenty demo articles")] = (
        False
    )
    cors_origins: Annotated[
        tuple[str, ...],
        Meta(
            description="sites whose pages may call the service. Requests from pages cost more "
            "than twice the CPU"
        ),
    ] = ()
    log_level: Annotated[
        Literal["warning", "info", "debug"], Meta(description="what the service logs to stderr")
    ] = "info"
    policy: PolicyConfig = PolicyConfig()
    traffic: TrafficConfig = TrafficConfig()
    pools: Annotated[
        dict[PoolName, PoolConfig],
        Meta(min_length=1, description="`[pools.NAME]`; the first is the default pool"),
    ] = msgspec.field(default_factory=lambda: {"front": PoolConfig()})
    journal: JournalConfig = JournalConfig()
    limits: LimitsConfig = LimitsConfig()
    pages: PagesConfig = PagesConfig()
    keys: Annotated[
        tuple[KeyConfig, ...],
        Meta(description="`[[keys]]`; none: one with all roles is created, and kept in `data`"),
    ] = ()
    bucket_secret: Annotated[
        str | None,
        Meta(
            description="secret that visitors' buckets depend on, so that nobody can choose one. "
            "Not set: a new data folder creates one and keeps it in its journal; one of version "
            "0.1 uses none. A change moves visitors to other buckets"
        ),
    ] = None
    signing: Annotated[
        dict[str, str],
        Meta(
            description="id = secret (32 bytes or more, in hex) for signing decision ids. The last "
            "one signs, all are accepted; none: one is created and stored in `data`"
        ),
    ] = msgspec.field(default_factory=dict)

    @property
    def used_role(self) -> MachineRole:
        """The role, also where none is set."""
        fleet = self.journal.url is not None and self.workers == 1
        return self.role or ("all" if fleet else "alone")

    def policy_of(self, pool: str) -> PolicyConfig:
        """The policy of a pool: its own, or the common one."""
        return self.pools[pool].policy or self.policy

    def traffic_of(self, pool: str) -> TrafficConfig:
        """The traffic shares of a pool: its own, or the common ones."""
        return self.pools[pool].traffic or self.traffic


def plain(config: Config) -> dict[str, Any]:
    """The configuration without its secrets, as the journal records it."""
    public: dict[str, Any] = msgspec.to_builtins(config)
    for section in (public, *public["pools"].values()):
        if section["policy"] is not None and section["policy"]["name"] is None:
            prior = section["policy"]["prior"]  # without one as before it could be left out
            section["policy"]["name"] = DEFAULT_PRIOR_POLICY if prior else DEFAULT_POLICY
    public.pop("signing")
    public.pop("bucket_secret")
    public["journal"].pop("url")  # it may hold a password
    public.pop("role")  # of one machine
    public["keys"] = [{"name": key.name, "roles": list(key.roles)} for key in config.keys]
    return public
