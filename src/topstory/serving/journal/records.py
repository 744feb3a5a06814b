"""The records of the journal: everything that ever changed the state, in order.

Class names and the order of fields are the file format: they are the tags and arrays on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


class Record(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """One thing that happened. Records are in no cycles, so the garbage collector skips them."""


class Levers(msgspec.Struct, frozen=True, array_like=True):
    """What an editor set on one article; times are microseconds since 1970."""

    pin: int | None = None  # the slot that it has, from 1; None: none
    pin_until: int | None = None  # None: until it is changed
    boost: float = 1.0  # times what is expected of it
    shows: int | None = None  # at most so many in all
    share: float = 1.0  # of visits that may get it, at most


class ArticleFacts(msgspec.Struct, frozen=True, array_like=True):
    """An article as an editor described it; times are microseconds since 1970."""

    id: str
    features: tuple[float, ...] | None = None
    title: str = ""
    link: str = ""
    begins: int | None = None
    ends: int | None = None
    summary: str = ""
    picture: str = ""
    levers: Levers | None = None
    published: int | None = None  # when it came out, if its age counts


class Configured(Record, frozen=True):
    """The service was started with another configuration (without its secrets)."""

    config: dict[str, Any]


class Opened(Record, frozen=True):
    """A pool came into being; its policy began as the file `start/POOL.safetensors`."""

    pool: str
    checksum: str  # of that file


class Placed(Record, frozen=True):
    """An editor added an article to a pool, or changed it."""

    pool: str
    article: ArticleFacts
    edit: str | None = None  # the client's id of this edit


class Removed(Record, frozen=True):
    """An editor removed an article for good."""

    pool: str
    article: str
    edit: str | None = None  # the client's id of this edit


class Decided(Record, frozen=True):
    """An article was shown to a user."""

    pool: str
    user: bytes  # (d,) float64, little-endian
    article: str
    bucket: int
    propensity: float  # over the whole traffic mix
    expires: int
    model_version: int  # the last record that the policy had learned from
    teaches: bool | float  # whether the policy learns from it, or the weight, below 1
    ranking: tuple[str, ...] = ()  # empty: the article alone
    exclude: tuple[str, ...] = ()
    request: str | None = None
    slots: int = 1
    draw: int | None = None  # the number its randomness depends on; None: its own
    key: str = ""  # the name of the API key that asked
    visitor: bytes = b""  # the visitor's pseudonym in this pool; empty: no id was given
    bucket_propensity: float = 0.0  # in this bucket; 0: a record of an earlier version
    visitor_id: str = ""  # the visitor as given, if the configuration says to keep it
    slot: int = 0  # the place on the page that the article was chosen for
    withheld: tuple[str, ...] = ()  # articles that a lever kept from this visit
    pinned: bool = False  # an editor's pin decided, not the policy
    origin: int | None = None  # where a fleet's front end put it: node and number there
    late: bool = False  # made while the database could not be reached, from the last model


class Paid(Record, frozen=True):
    """The payoff of a decision came."""

    decision: int
    payoff: float
    key: str = ""  # the name of the API key that reported it
    teaches: bool = True  # whether the policy learns from it
    origin: int | None = None  # where a fleet's front end put it: node and number there


class TailLost(Record, frozen=True):
    """The operator accepted that records up to this number were lost from the journal's end."""

    committed: int


class ClockSet(Record, frozen=True):
    """The operator set the journal's time to the system clock's; `was` is what it was before."""

    was: int


class Excluded(Record, frozen=True):
    """An operator excluded decisions and payoffs: the state is as if they had never been.

    Those with a number from `first` to `last`, by this key (None: any) and of these visitors (none:
    any), and the payoffs of excluded decisions.
    """

    first: int
    last: int
    key: str | None = None
    visitors: tuple[bytes, ...] = ()


class Promoted(Record, frozen=True):
    """A pool got another policy: a new one, or the one before it again."""

    pool: str
    policy: bytes | None  # a file as `Policy.save` writes it; None: the one before
    edit: str | None = None  # the client's id of this edit
    key: str = ""  # the name of the API key that asked for it
    note: str = ""
    feature_model: str | None = None  # the identity of the one to use from now on; None: as before
    articles: tuple[ArticleFacts, ...] = ()  # with the features that it makes, if it is a new one


class Cut(Record, frozen=True):
    """How far a fleet's learner has taken what front ends wrote; the last record of its batch."""

    nodes: dict[int, int]  # by node, of those with something new: the last number


Edit = Placed | Removed | Promoted
AnyRecord = (
    Configured | Opened | Edit | Decided | Paid | TailLost | ClockSet | Excluded | Cut
)  # Edit: of a pool


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A record in its place: its number, and when it happened."""

    number: int
    at: int  # microseconds since 1970, never less than the entry before
    record: AnyRecord


encode: Callable[[AnyRecord], bytes] = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[AnyRecord] = msgspec.msgpack.Decoder(AnyRecord)


def decode(body: bytes) -> AnyRecord:
    """The record that `encode` wrote.

    >>> decode(encode(Paid(7, 1.0)))
    Paid(decision=7, payoff=1.0, key='', teaches=True, origin=None)
    """
    return _decoder.decode(body)
