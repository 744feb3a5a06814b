"""The learner's side of the mapped memory: publishes the state many times a second."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import monotonic, monotonic_ns
from typing import Any, Protocol

import msgspec
import numpy as np

from topstory.kernels.compilation import Floats, Slots
from topstory.serving.http.request_counts import Latency
from topstory.serving.journal.clock import Clock
from topstory.serving.state.pool import Pool
from topstory.serving.state.state import State
from topstory.serving.workers.shared_memory.double_buffer import Writer
from topstory.serving.workers.shared_memory.layout import (
    HEAD,
    Layout,
    arrays_in,
    first_array,
    lay_out,
)

log = logging.getLogger("topstory.serving")


class Buffers(Protocol):
    """Where the state is written: mapped memory, or what is sent to other machines."""

    @property
    def next(self) -> int:
        """The place of the buffer that is written next, 0 or 1."""
        ...

    def begin(self, length: int) -> Any:
        """That buffer, at least this long; the same object as long as it is long enough."""
        ...

    def publish(self) -> None:
        """Have readers use what was written, from now on."""
        ...


REST = 4.0  # times what it took to compute all anew: so long it computes nothing
MAX_PAUSE_SECONDS = 1.0  # it publishes even if nothing happens, for the clock goes on


class Publisher:
    """Writes what scoring reads into the mapped memory.

    Edits are published at once. What was learned is published within `pause` seconds, together with
    what is learned until then: a worker decides from a state that is at most this old.
    """

    def __init__(
        self,
        state: State,
        pools: tuple[str, ...],
        clock: Clock,
        pause: float,
        writer: Buffers | None = None,
        anew: bool = False,
    ) -> None:
        """`anew`: whether what is published follows from what was learned alone, to the bit.

        That takes longer, so it is published less often if it takes too long.
        """
        self._anew = anew
        self._state, self._clock, self.pause = state, clock, pause
        self._pools = {name: state.pools[name] for name in pools}
        self.writer: Buffers = Writer() if writer is None else writer
        self.editions = dict.fromkeys(pools, state.number)
        self.staleness = Latency()  # from learning a record to publishing it
        self.number = 0  # the last record in what was published
        self._layout: Layout | None = None
        self._encoded = b""
        self._forms: list[list[tuple[str, int]]] = []
        self._slots: dict[str, Slots] = {}
        self.has_first_article = False  # a pool got its first article
        self.until = 0  # the time at which a new layout is needed
        self._layouts = 0
        self._written: list[tuple[int, Any, dict[str, dict[str, Floats]]] | None] = [None, None]
        self._changed_at: float | None = None  # when the first unpublished record came
        self._last = self._rest = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._call_later: Callable[..., asyncio.TimerHandle] | None = None

    @property
    def behind(self) -> int:
        """How many records workers do not see yet."""
        return self._state.number - self.number

    def start(self) -> None:
        """Publish repeatedly, until `stop`."""
        self._call_later = asyncio.get_running_loop().call_later
        self.publish()

    def stop(self) -> None:
        """Publish no more."""
        self._call_later = None
        if self._timer is not None:
            self._timer.cancel()

    def changed(self, *edited: str) -> None:
        """Records were applied to the state; these pools were edited."""
        now = monotonic()
        if self._changed_at is None:
            self._changed_at = now
            if not edited:
                self._wake(max(0.0, self._last + max(self.pause, self._rest) - now))
        if edited:
            for pool in edited:
                self.editions[pool] = self._state.number
            self._layout = None
            self.publish()

    def list_anew(self) -> None:
        """Articles have come or gone without an edit: one was shown as often as it may be."""
        self._layout = None

    def publish(self) -> None:
        """Publish the state as it is now."""
        now = self._clock.now()
        if self._layout is None or now >= self.until or self._forms != self._scored():
            self._lay_out(now)
        layout = self._layout
        assert layout is not None
        begin = first_array(len(self._encoded))
        place, buffer = self.writer.next, self.writer.begin(begin + layout.length)
        written = self._written[place]
        if written is None or written[0] != layout.number or written[1] is not buffer:
            buffer[HEAD.size : HEAD.size + len(self._encoded)] = self._encoded
            laid = {each.name: arrays_in(each, buffer, begin) for each in layout.pools}
            written = self._written[place] = (layout.number, buffer, laid)
        # Relative to the steady clock, which all processes share: the system clock may be set back
        # at any moment.
        ahead = self._clock.now() - monotonic_ns() // 1000
        HEAD.pack_into(buffer, 0, self._state.number, ahead, layout.number, len(self._encoded))
        began = monotonic()
        for name, arrays in written[2].items():
            if arrays:
                _fill(arrays, self._pools[name], self._slots[name], self._anew)
        self.writer.publish()
        self.number = self._state.number
        self._last = monotonic()
        if self._anew:
            self._rest = REST * (self._last - began)
        if self._changed_at is not None:
            self.staleness.count(self._last - self._changed_at)
            self._changed_at = None
        self._wake(MAX_PAUSE_SECONDS)

    def _lay_out(self, now: int) -> None:
        self._layouts += 1
        self._layout, rows, self.until = lay_out(
            self._layouts, self._state.dimension, self._pools, self.editions, now
        )
        self.has_first_article |= any(
            ids and not len(self._slots.get(name, ids)) for name, ids in rows.items()
        )
        self._encoded = msgspec.msgpack.encode(self._layout)
        self._forms = self._scored()
        self._slots = {
            name: np.array([self._pools[name].policy.model.roster.slot(i) for i in ids], np.int32)
            for name, ids in rows.items()
        }

    def _scored(self) -> list[list[tuple[str, int]]]:
        """The arrays of each pool, and their lengths; others once its model has another form."""
        models = [pool.policy.model for pool in self._pools.values()]
        return [
            [
                (field, len(getattr(model.state, field)) if field in model.shared else 0)
                for field in (model.scored if model.state is not None else ())
            ]
            for model in models
        ]

    def _wake(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._call_later is not None:
            self._timer = self._call_later(seconds, self._publish_by_timer)

    def _publish_by_timer(self) -> None:
        try:
            self.publish()
        except Exception:  # no memory, perhaps: workers use the last one until it works again
            log.exception("the state could not be published to the workers")
            self._wake(MAX_PAUSE_SECONDS)


def _fill(arrays: dict[str, Floats], pool: Pool, slots: Slots, anew: bool) -> None:
    model = pool.policy.model
    if anew:
        for field, rows in model.scored_rows(slots).items():
            arrays[field][...] = rows
        return
    model.ready(slots)
    for field, target in arrays.items():
        if field in model.shared:
            target[...] = getattr(model.state, field)
        else:
            np.take(getattr(model.state, field), slots, axis=0, out=target, mode="clip")
