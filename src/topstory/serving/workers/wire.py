"""What workers and the learner say to each other: lists of these, as MessagePack.

Every question has a number of the worker's own, `first` and those that follow it, and is answered
by that number. What is asked in one turn of a worker's event loop goes into one message.
"""

from __future__ import annotations

from typing import Any

import msgspec

from topstory.serving.config.schema import Config
from topstory.serving.journal.records import Decided
from topstory.serving.service.receipts import Ticket


class _Message(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """One thing that is said."""


# -- a worker says --


class Ready(_Message, frozen=True):
    """It can answer requests."""


class Proposed(_Message, frozen=True):
    """Decisions that a worker would make, if the pool is still as it saw it."""

    first: int
    pool: str
    edition: int  # the last change of the pool's articles that it saw
    begins: int  # the times for which its list of articles holds
    ends: int
    decided: list[Decided]
    # Why there is nothing to show: then these are only those with a client's id, who may have been
    # decided for before.
    refused: tuple[int, str, str] | None = None  # status, reason, message


class Payments(_Message, frozen=True):
    """Payoffs of decisions that this service made, and whose window is open."""

    first: int
    tickets: list[Ticket]
    payoffs: list[float]


class Forwarded(_Message, frozen=True):
    """A request that is not for a worker."""

    first: int
    method: str
    path: str
    raw_path: bytes
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Counted(_Message, frozen=True):
    """Requests that were answered since the last time it said so."""

    statuses: list[tuple[str, int, int]]  # route, status, how many
    latencies: list[tuple[str, list[int], float]]  # route, how many by duration, seconds in all
    again: int  # how often a buffer was taken from under it
    unknown: dict[str, int]  # categories in raw profiles, by field


# -- the learner says --


class Welcome(_Message, frozen=True):
    """What to serve."""

    config: Config


class Taken(_Message, frozen=True):
    """Decisions are made: first is `number`, first + 1 is number + 1, and so on."""

    first: int
    count: int
    number: int


class Earlier(_Message, frozen=True):
    """The same request had been made before, and this was decided."""

    first: int
    number: int
    decided: Decided


class Outdated(_Message, frozen=True):
    """The pool was edited meanwhile: decide again, from what is shown by now."""

    first: int
    count: int


class Settled(_Message, frozen=True):
    """Payoffs are in the journal, and in the model."""

    numbers: list[int]
    repeated: list[bool]


class Denied(_Message, frozen=True):
    """What was asked is refused."""

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
    """Say what you have counted."""


class Look(_Message, frozen=True):
    """A pool has its first article: load the kernels for it, and say when you are ready."""


FromWorker = Ready | Proposed | Payments | Forwarded | Counted
FromLearner = Welcome | Taken | Earlier | Outdated | Settled | Denied | Answered | Count | Look

from_worker: msgspec.msgpack.Decoder[list[FromWorker]] = msgspec.msgpack.Decoder(list[FromWorker])
from_learner: msgspec.msgpack.Decoder[list[FromLearner]] = msgspec.msgpack.Decoder(
    list[FromLearner]
)
Decoder = msgspec.msgpack.Decoder[Any]
