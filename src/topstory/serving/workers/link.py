"""One end of the socket pair between a worker and the learner.

The learner makes the pair, so nobody else can connect to it. A frame is its length (4 bytes) and a
list of messages: all that were sent in one turn of the event loop.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from struct import Struct
from typing import Any

import msgspec

from topstory.serving.workers.wire import Decoder

_LENGTH = Struct("<I")
_encoder = msgspec.msgpack.Encoder()

SendMessage = Callable[[msgspec.Struct], None]


class Link(asyncio.Protocol):
    """Sends messages, and hands over those that come."""

    def __init__(
        self, decoder: Decoder, received: Callable[[Any], None], lost: Callable[[], None]
    ) -> None:
        self._decoder, self._received, self._lost = decoder, received, lost
        self._transport: asyncio.Transport | None = None
        self._call_soon = asyncio.get_running_loop().call_soon
        self._outgoing: list[msgspec.Struct] = []
        self._incoming = bytearray()

    async def connect(self, end: socket.socket) -> None:
        """Use this end of a pair."""
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: self, sock=end)

    def send(self, message: msgspec.Struct) -> None:
        """Send it, together with what else is sent in this turn of the loop."""
        if not self._outgoing:
            self._call_soon(self._flush)
        self._outgoing.append(message)

    def close(self) -> None:
        """Send what is left, and close."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def _flush(self) -> None:
        messages, self._outgoing = self._outgoing, []
        if messages and self._transport is not None and not self._transport.is_closing():
            frame = _encoder.encode(messages)
            self._transport.write(_LENGTH.pack(len(frame)) + frame)

    # -- called by asyncio --

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvloop's is no subclass
        """It is open."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Hand over every message that is whole."""
        incoming = self._incoming
        incoming += data
        begin = 0
        while len(incoming) - begin >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(incoming, begin)
            end = begin + _LENGTH.size + length
            if len(incoming) < end:
                break
            for message in self._decoder.decode(incoming[begin + _LENGTH.size : end]):
                self._received(message)
            begin = end
        del incoming[:begin]

    def connection_lost(self, error: Exception | None) -> None:
        """The other end is gone."""
        self._transport = None
        self._lost()
