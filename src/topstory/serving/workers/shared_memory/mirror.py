"""A worker's side of the mapped memory: deciders that score where the learner wrote."""

from __future__ import annotations

from dataclasses import dataclass
from mmap import mmap

import msgspec

from topstory.serving.config.schema import Config
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

_layouts = msgspec.msgpack.Decoder(Layout)


@dataclass(slots=True)
class Seen:
    """What a buffer holds: which record came last, and who decides from it."""

    turn: int
    number: int
    ahead: int  # µs that the journal's clock is ahead of the machine's steady one
    layout: int
    buffer: mmap
    deciders: dict[str, Decider]
    editions: dict[str, int]


class Mirror:
    """The state as it was shown last.

    Read what `look` gives; what came of it counts if `holds` says so afterwards, else look again.
    """

    def __init__(self, config: Config, reader: Reader) -> None:
        self._reader = reader
        self._seen: list[Seen | None] = [None, None]
        self._traffic = {name: Traffic(config.traffic_of(name), name) for name in config.pools}
        self.again = 0  # how often what was read had been overwritten meanwhile

    def look(self) -> Seen:
        """The newest state."""
        while True:
            turn, buffer = self._reader.look()
            seen = self._seen[turn % 2]
            if seen is not None and seen.turn == turn:
                return seen
            number, ahead, layout, length = HEAD.unpack_from(buffer)
            if seen is not None and seen.layout == layout and seen.buffer is buffer:
                seen.turn, seen.number, seen.ahead = turn, number, ahead
                return seen
            told = buffer[HEAD.size : HEAD.size + length]
            if self.holds(turn):
                deciders, editions = self._read(_layouts.decode(told), buffer, first_array(length))
                seen = Seen(turn, number, ahead, layout, buffer, deciders, editions)
                self._seen[turn % 2] = seen
                return seen

    def holds(self, turn: int) -> bool:
        """Whether all that was read since `look` is of that turn."""
        if self._reader.holds(turn):
            return True
        self.again += 1
        return False

    def _read(
        self, layout: Layout, buffer: mmap, begin: int
    ) -> tuple[dict[str, Decider], dict[str, int]]:
        deciders = {}
        for told in layout.pools:
            pool = pool_of(told, layout.dimension, arrays_in(told, buffer, begin))
            deciders[told.name] = Decider(pool, self._traffic[told.name])
        return deciders, {told.name: told.edition for told in layout.pools}
