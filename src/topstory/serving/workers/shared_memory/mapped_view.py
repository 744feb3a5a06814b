"""A worker's view of the state: deciders that score in the memory that the learner writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from mmap import mmap
from time import monotonic_ns
from typing import TypeVar

import msgspec

from topstory.serving.config.schema import Config
from topstory.serving.service.view import VisibleState
from topstory.serving.state.decider import Decider
from topstory.serving.state.traffic import Traffic
from topstory.serving.workers.shared_memory.double_buffer import Reader
from topstory.serving.workers.shared_memory.layout import (
    HEAD,
    Layout,
    arrays_in,
    first_array,
    pool_of,
)

T = TypeVar("T")
_layouts = msgspec.msgpack.Decoder(Layout)


@dataclass(slots=True)
class MappedState(VisibleState):
    """The contents of one buffer."""

    editions: Mapping[str, int]  # by pool: the last record that changed its articles
    turn: int
    ahead: int  # µs that the journal's clock is ahead of the machine's steady one
    layout: int
    buffer: mmap


class MappedView:
    """The state as it was published last."""

    def __init__(self, config: Config, reader: Reader) -> None:
        self._reader = reader
        self._held: list[MappedState | None] = [None, None]
        self._traffic = {
            name: Traffic(config.traffic_of(name), name, config.bucket_secret)
            for name in config.pools
        }
        self.torn_reads = 0  # how often a buffer was overwritten while it was read

    def read(self, work: Callable[[MappedState], T]) -> T:
        """Do some work with the newest state, and again if it was overwritten meanwhile."""
        while True:
            state = self.latest()
            try:
                result = work(state)
            except Exception:  # perhaps because of what was overwritten
                if self.holds(state.turn):
                    raise
                continue
            if self.holds(state.turn):
                return result

    def now(self) -> int:
        """The journal's time."""
        return monotonic_ns() // 1000 + self.latest().ahead

    def latest(self) -> MappedState:
        """The newest state. What was read from it counts only if it `holds` afterwards."""
        while True:
            turn, buffer = self._reader.latest()
            held = self._held[turn % 2]
            if held is not None and held.turn == turn:
                return held
            number, ahead, layout, length = HEAD.unpack_from(buffer)
            if held is not None and held.layout == layout and held.buffer is buffer:
                held.turn, held.number, held.ahead = turn, number, ahead
                return held
            encoded = buffer[HEAD.size : HEAD.size + length]
            if self.holds(turn):
                deciders, editions = self._opened(
                    _layouts.decode(encoded), buffer, first_array(length)
                )
                held = MappedState(number, deciders, editions, turn, ahead, layout, buffer)
                self._held[turn % 2] = held
                return held

    def holds(self, turn: int) -> bool:
        """Whether all that was read since `latest` is of that turn."""
        if self._reader.holds(turn):
            return True
        self.torn_reads += 1
        return False

    def _opened(
        self, layout: Layout, buffer: mmap, begin: int
    ) -> tuple[dict[str, Decider], dict[str, int]]:
        deciders = {}
        for each in layout.pools:
            pool = pool_of(each, layout.dimension, arrays_in(each, buffer, begin))
            deciders[each.name] = Decider(pool, self._traffic[each.name])
        return deciders, {each.name: each.edition for each in layout.pools}
