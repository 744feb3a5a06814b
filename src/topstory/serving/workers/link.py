"""One end of the socket between a worker and the learner.

It is one of a pair that the learner made, so nobody else can connect to it. A frame is its length
(4 bytes) and a list of messages: all that was said in one turn of the event loop.
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


class Link(asyncio.Protocol):
    """Sends messages, and hands over those that come."""

    def __init__(
        self, decoder: Decoder, heard: Callable[[Any], None], lost: Callable[[], None]
    ) -> None:
        self._decoder, self._heard, self._lost = decoder, heard, lost
        self._transport: asyncio.Transport | None = None
        self._call_soon = asyncio.get_running_loop().call_soon
        self._saying: list[msgspec.Struct] = []
        self._came = bytearray()

    async def connect(self, end: socket.socket) -> None:
        """Begin to talk over this end of a pair."""
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: self, sock=end)

    def say(self, message: msgspec.Struct) -> None:
        """Send it, together with what else is said in this turn of the loop."""
        if not self._saying:
            self._call_soon(self._flush)
        self._saying.append(message)

    def close(self) -> None:
        """Send what was said, and hang up."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def _flush(self) -> None:
        said, self._saying = self._saying, []
        if said and self._transport is not None and not self._transport.is_closing():
            frame = _encoder.encode(said)
            self._transport.write(_LENGTH.pack(len(frame)) + frame)

    # -- what asyncio calls --

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvloop's is none by class
        """It is open."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Hand over every message that is whole."""
        came = self._came
        came += data
        begin = 0
        while len(came) - begin >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(came, begin)
            end = begin + _LENGTH.size + length
            if len(came) < end:
                break
            for message in self._decoder.decode(came[begin + _LENGTH.size : end]):
                self._heard(message)
            begin = end
        del came[:begin]

    def connection_lost(self, error: Exception | None) -> None:
        """The other end is gone."""
        self._transport = None
        self._lost()
