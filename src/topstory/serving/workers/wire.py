"""The messages between workers and the learner: lists of these, as MessagePack.

Each worker numbers its requests: `first` and those that follow it. A reply names the number. All
requests of one turn of a worker's event loop go into one message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from topstory.serving.config.schema import Config
from topstory.serving.journal.records import Decided
from topstory.serving.service.inputs import Receipt
from topstory.serving.service.transport import Wanted


class _Message(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """One message."""


# -- from a worker --


class Ready(_Message, frozen=True):
    """The worker can answer requests."""


class Proposed(_Message, frozen=True):
    """Decisions that a worker would make, if the pool is still as it saw it."""

    first: int
    pool: str
    edition: int  # the last change of the pool's articles that it saw
    begins: int  # the times for which its list of articles holds
    ends: int
    decided: list[Decided]


class NothingToShow(_Message, frozen=True):
    """Requests with an id that a worker could not decide: they may have been decided before."""

    first: int
    pool: str
    edition: int  # as in Proposed
    begins: int
    ends: int
    requests: list[tuple[str, Wanted]]
    error: tuple[int, str, str]  # status, reason, message


class Paying(_Message, frozen=True):
    """Payoffs of decisions that this service made, and whose window is open."""

    first: int
    receipts: Sequence[Receipt]
    payoffs: Sequence[float]
    keys: Sequence[str]


class Forwarded(_Message, frozen=True):
    """An HTTP request that only the learner can answer."""

    first: int
    method: str
    path: str
    raw_path: bytes
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Counted(_Message, frozen=True):
    """The requests that were answered since the last such message."""

    statuses: list[tuple[str, int, int]]  # route, status, how many
    latencies: list[tuple[str, list[int], float]]  # route, how many by duration, seconds in all
    torn_reads: int  # how often a buffer was overwritten while it was read
    unknown: dict[str, int]  # unknown categories in raw profiles, by field
    outliers: dict[str, int]  # contexts and payoffs out of range


# -- from the learner --


class Welcome(_Message, frozen=True):
    """What to serve."""

    config: Config


class Taken(_Message, frozen=True):
    """Decisions are made: first is `number`, first + 1 is number + 1, and so on."""

    first: int
    count: int
    number: int


class Earlier(_Message, frozen=True):
    """The same request had been decided before, like this."""

    first: int
    number: int
    decided: Decided


class Outdated(_Message, frozen=True):
    """The pool was edited meanwhile: propose again, from what is published by now."""

    first: int
    count: int


class Settled(_Message, frozen=True):
    """Payoffs are in the journal, and in the model."""

    numbers: list[int]
    repeated: list[bool]


class Denied(_Message, frozen=True):
    """These get an error."""

    first: int
    count: int
    status: int
    reason: str
    message: str


class Answered(_Message, frozen=True):
    """The answer to a forwarded request."""

    first: int
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Count(_Message, frozen=True):
    """Report what you have counted."""


class WarmUp(_Message, frozen=True):
    """A pool has its first article: load the kernels for it, and report when you are ready."""


FromWorker = Ready | Proposed | NothingToShow | Paying | Forwarded | Counted
FromLearner = Welcome | Taken | Earlier | Outdated | Settled | Denied | Answered | Count | WarmUp

from_worker: msgspec.msgpack.Decoder[list[FromWorker]] = msgspec.msgpack.Decoder(list[FromWorker])
from_learner: msgspec.msgpack.Decoder[list[FromLearner]] = msgspec.msgpack.Decoder(
    list[FromLearner]
)
Decoder = msgspec.msgpack.Decoder[Any]
