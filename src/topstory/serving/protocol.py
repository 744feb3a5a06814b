"""HTTP with an end: uvicorn's own protocol waits for ever, and for any number of headers."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from topstory.serving.config import LimitsConfig
from topstory.serving.refusals import Refused


class Joined:
    """A transport that sends a response's headers together with its body: one packet, not two."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = b""  # None: it was sent
        self.is_closing, self.close = transport.is_closing, transport.close

    def write(self, data: bytes) -> None:
        """The headers first, then whatever follows."""
        if self._head is None:
            self._transport.write(data)
        elif not self._head:
            self._head = data
        else:
            self._transport.write(self._head + data)
            self._head = None


class GuardedProtocol(HttpToolsProtocol):
    """Limits the headers, the time in which a request must be whole, and the connections."""

    limits = LimitsConfig()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # One timer for a connection, looked at when it rings: setting one for every request costs.
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: float | None = None  # None: a request is whole, and the time is ours
        self._shut = False  # refused: whatever still comes is not looked at
        self._chunk = 0  # bytes of what was received last
        self._fed = 0  # bytes since the request began, or a few more
        self._in_headers = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Take the connection, if there is room for one more."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._close(
                Refused(503, "too_many_connections", "the service has all connections it takes")
            )
        else:
            self._expect()
            self._watch(self.limits.request_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """No more."""
        self._unwatch()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, while there is anything to be hoped for."""
        if self._shut:
            return
        cycle: Any = self.cycle  # None before the first request, whatever its type says
        if self._deadline is None and (cycle is None or cycle.response_complete):
            self._expect()
        self._chunk = len(data)
        self._fed += self._chunk
        super().data_received(data)
        if self._in_headers and self._fed > self.limits.header_bytes and not self._shut:
            self._close(self._long_headers())

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._fed, self._in_headers = self._chunk, True

    def on_headers_complete(self) -> None:
        """Its headers are whole."""
        self._in_headers = False
        limit = self.limits.header_bytes
        if self._fed > limit:  # counted only then: the body may have come with them
            long = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if long > limit:
                self._close(self._long_headers())
        if not self._shut:
            super().on_headers_complete()
            if self.scope["method"] == "POST" and not self.expect_100_continue:
                # The answer to a POST always has a body. uvicorn asks no more of a transport.
                cycle: Any = self.cycle
                cycle.transport = Joined(self.transport)

    def on_body(self, body: bytes) -> None:
        """More of its body came."""
        if not self._shut:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """It is whole: from here on the time is ours."""
        self._deadline = None
        if not self._shut:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """It is no HTTP."""
        self._close(Refused(400, "bad_http", msg))

    def _expect(self) -> None:
        self._deadline = self.loop.time() + self.limits.request_seconds

    def _watch(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self._look)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        left = self.limits.request_seconds
        if self._deadline is not None:
            left = self._deadline - self.loop.time()
        if left > 0:
            self._watch(left)
            return
        self._close(
            Refused(
                *(408, "too_slow"),
                f"a request must be whole within {self.limits.request_seconds:g} seconds",
            )
        )

    def _long_headers(self) -> Refused:
        return Refused(
            *(431, "headers_too_long"),
            f"a request's line and headers have {self.limits.header_bytes} bytes at most",
        )

    def _close(self, refused: Refused) -> None:
        """Say why, and hang up."""
        self._shut = True
        self._unwatch()
        if self.transport.is_closing():
            return
        cycle: Any = self.cycle
        if cycle is None or not cycle.response_started or cycle.response_complete:
            body = msgspec.json.encode(refused.answer)
            head = (
                b"content-type: application/json\r\nconnection: close\r\n"
                b"content-length: " + str(len(body)).encode() + b"\r\n\r\n"
            )
            self.transport.write(STATUS_LINE[refused.status] + head + body)
        self.transport.close()


def guarded(limits: LimitsConfig) -> type[GuardedProtocol]:
    """The protocol with these limits: uvicorn makes its instances itself."""
    return type("GuardedProtocol", (GuardedProtocol,), {"limits": limits})
