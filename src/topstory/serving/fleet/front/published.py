"""A front end's view of the state: the model that the learner published last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from zlib import crc32

import msgspec

from topstory.serving.api.errors import ApiError
from topstory.serving.config.schema import Config
from topstory.serving.fleet.database_time import DatabaseTime
from topstory.serving.journal.clock import SECOND
from topstory.serving.service.view import VisibleState
from topstory.serving.state.decider import Decider
from topstory.serving.state.pool import FOREVER
from topstory.serving.state.traffic import Traffic
from topstory.serving.state.warm_up import warm_up_scoring
from topstory.serving.workers.shared_memory.layout import (
    HEAD,
    Layout,
    arrays_in,
    first_array,
    pool_of,
)

_layouts = msgspec.msgpack.Decoder(Layout)


@dataclass(slots=True)
class PublishedState(VisibleState):
    """What one version of the model holds."""

    editions: Mapping[str, int]  # by pool: the last batch that changed its articles
    version: int
    at: int  # when it was published
    layout: tuple[int, int]  # the learner's epoch, and the number of its layout
    buffer: bytearray  # what the deciders score from


class PublishedView:
    """The newest version that has arrived; it is installed between two turns of the event loop."""

    def __init__(self, config: Config, time: DatabaseTime) -> None:
        self._time = time
        self._traffic = {
            name: Traffic(config.traffic_of(name), name, config.bucket_secret)
            for name in config.pools
        }
        self._state: PublishedState | None = None
        self.changed: Callable[[], None] = lambda: None  # called when a newer one is installed

    @property
    def version(self) -> int:
        """Of the state that is installed; 0: none is."""
        return 0 if self._state is None else self._state.version

    @property
    def record(self) -> int:
        """The last record of the journal that it holds."""
        return 0 if self._state is None else self._state.number

    @property
    def checksum(self) -> int:
        """Of what is scored from: the same on all machines that hold the same record."""
        return 0 if self._state is None else checksum(self._state)

    @property
    def age(self) -> float:
        """Seconds since the model was published."""
        return 0.0 if self._state is None else (self.now() - self._state.at) / SECOND

    def latest(self) -> PublishedState:
        """The newest state."""
        assert self._state is not None  # it is waited for before anybody can ask
        return self._state

    def now(self) -> int:
        """The database's time."""
        return self._time.now()

    def opened(self, version: int, epoch: int, at: int, body: bytes) -> PublishedState:
        """The state in a row that was read: for any thread. Kernels are loaded here."""
        number, _, layout, length = HEAD.unpack_from(body)
        held = self._state
        if held is not None and held.layout == (epoch, layout):  # only the numbers have changed
            return PublishedState(
                *(number, held.deciders, held.editions, version, at, held.layout, bytearray(body))
            )
        laid = _layouts.decode(body[HEAD.size : HEAD.size + length])
        buffer, deciders = bytearray(body), {}
        for each in laid.pools:
            if each.name in self._traffic:
                pool = pool_of(each, laid.dimension, arrays_in(each, buffer, first_array(length)))
                deciders[each.name] = Decider(pool, self._traffic[each.name])
                _warm_up(deciders[each.name])
        editions = {each.name: each.edition for each in laid.pools}
        return PublishedState(number, deciders, editions, version, at, (epoch, layout), buffer)

    def install(self, state: PublishedState) -> None:
        """Use a newer state; in the event loop, so that nobody scores from it meanwhile."""
        held = self._state
        if held is not None and held.layout == state.layout and held.buffer is not state.buffer:
            held.buffer[:] = state.buffer  # the deciders' arrays are in there
            state.buffer = held.buffer
        self._state = state
        self.changed()


def checksum(state: PublishedState) -> int:
    """CRC-32 of the names of all pools and articles, and of the arrays that scoring reads."""
    found = 0
    for name, decider in sorted(state.deciders.items()):
        model = decider.pool.policy.model
        found = crc32(" ".join([name, *decider.pool.articles]).encode(), found)
        for field in model.scored if model.state is not None else ():
            found = crc32(getattr(model.state, field).tobytes(), found)
    return found


def _warm_up(decider: Decider) -> None:
    """Load kernels before a visitor comes."""
    for at in (0, FOREVER - 1):
        with suppress(ApiError):  # there may be no article yet, or none at that time
            warm_up_scoring(decider, at)
            break
