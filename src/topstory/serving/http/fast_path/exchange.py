"""The two hot routes without ASGI: from the parser straight to the service, and back.

An ASGI call costs a task, four dictionaries and three awaits more than the request itself needs.
Whatever is not an ordinary POST to a hot route goes the ordinary way, with the same answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from time import monotonic
from typing import Any, NamedTuple, Protocol

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from topstory.serving.api.errors import Refused
from topstory.serving.http.asgi import extra_headers
from topstory.serving.http.hot_routes import HotRoute
from topstory.serving.http.metrics import Requests
from topstory.serving.security.api_keys import Key
from topstory.serving.service.replies import attempt

_encoder = msgspec.json.Encoder()

Headers = list[tuple[bytes, bytes]]


class Ticket(NamedTuple):
    """What a request's line and headers come to: a route, a key that may take it, a length."""

    path: str
    route: HotRoute[Any]
    key: Key
    length: int  # of the body


class Express:
    """The hot routes by their paths; for pages too, unless some of other sites are let in."""

    def __init__(
        self, routes: Mapping[str, HotRoute[Any]], requests: Requests, pages: bool = True
    ) -> None:
        self.routes = {path.encode(): (path, route) for path, route in routes.items()}
        self.pages = pages
        self.requests = requests
        self._headers: Headers = []
        self._granted = b""

    def granted(self, headers: Headers) -> bytes:
        """The head of an answer; uvicorn makes a new list of headers when the date changes."""
        if headers is not self._headers or not self._granted:
            self._headers, self._granted = headers, answer_head(200, headers)
        return self._granted


def answer_head(status: int, headers: Headers) -> bytes:
    """The first lines of an answer up to its length."""
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return STATUS_LINE[status] + lines + b"content-type: application/json\r\ncontent-length: "


class Connection(Protocol):
    """What a ride needs of the protocol that it is on."""

    transport: asyncio.Transport
    server_state: Any

    def on_response_complete(self) -> None:
        """The connection is free for the next request."""
        ...


class _NoEvent:
    """uvicorn sets an event when a connection is lost; nobody waits for it here."""

    def set(self) -> None:
        """Nothing."""


class Ride:
    """One request on its way; to uvicorn it looks like one of its own cycles."""

    __slots__ = (
        *("_began", "_connection", "_express", "_route", "body", "disconnected"),
        *("keep_alive", "key", "length", "path", "refused"),
        *("response_complete", "response_started"),
    )
    message_event = _NoEvent()

    def __init__(
        self, connection: Connection, express: Express, path: str, route: HotRoute[Any], keep: bool
    ) -> None:
        self._connection, self._express = connection, express
        self.path, self._route = path, route
        self.keep_alive = keep
        self.body: bytes | bytearray = b""
        self.length = 0  # of the body, as far as it came
        self.key: Key | None = None
        self.refused: Refused | None = None
        self.response_started = self.response_complete = self.disconnected = False
        self._began = 0.0

    def board(self, authorization: bytes | None) -> None:
        """Its headers are whole: whose it is, before anything of its body is held."""
        try:
            self.key = self._route.entitled(authorization)
        except Refused as refused:
            self.refused = refused  # said once it is whole: whoever still sends would not hear it

    def take(self, part: bytes) -> int:
        """More of its body; how long it is by now."""
        self.length += len(part)
        if self.key is None:
            return self.length
        if not self.body:
            self.body = part
        elif isinstance(self.body, bytearray):
            self.body += part
        else:
            self.body = bytearray(self.body + part)  # grows in place, however many parts there are
        return self.length

    def begin(self) -> None:
        """The request is whole."""
        self._began = monotonic()
        if self.key is not None:
            attempt(self, self._route.begin, self.key, bytes(self.body), self._began, self)
        elif self.refused is not None:
            self.refuse(self.refused)

    def begin_with(self, key: Key, body: bytes) -> None:
        """The request is whole, and its key was checked when its head was first seen."""
        self._began = now = monotonic()
        attempt(self, self._route.begin, key, body, now, self)

    def ticket(self) -> Ticket | None:
        """What a request with the same head comes to."""
        if self.key is None:
            return None
        return Ticket(self.path, self._route, self.key, len(self.body))

    def grant(self, answer: Any) -> None:
        """Here it is."""
        head = self._express.granted(self._connection.server_state.default_headers)
        self._answer(200, head, _encoder.encode(answer))

    def refuse(self, refused: Refused) -> None:
        """Say why not."""
        told = [
            *self._connection.server_state.default_headers,
            *extra_headers(refused.status),
        ]
        if (b"connection", b"close") in told:
            told.remove((b"connection", b"close"))
            self.keep_alive = False
        self._answer(
            refused.status, answer_head(refused.status, told), _encoder.encode(refused.answer)
        )

    def _answer(self, status: int, head: bytes, content: bytes) -> None:
        if self.response_complete:
            return
        self._express.requests.count(self.path, status, monotonic() - self._began)
        self.response_started = self.response_complete = True
        connection = self._connection
        transport = connection.transport
        if self.disconnected or transport.is_closing():
            return
        # Head and body in one packet.
        if self.keep_alive:
            transport.write(b"%b%d\r\n\r\n%b" % (head, len(content), content))
        else:
            closing = b"%b%d\r\nconnection: close\r\n\r\n%b"
            transport.write(closing % (head, len(content), content))
            transport.close()
        connection.on_response_complete()
