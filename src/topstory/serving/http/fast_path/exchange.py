"""The hot routes without ASGI: from the parser straight to the service, and back.

An ASGI call costs a task, four dictionaries and three awaits more than the request itself needs:
with it a decision or feedback takes 2.1 to 2.3 times the CPU. Requests that are not an ordinary
POST to a hot route take the ASGI route, with the same answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from time import monotonic
from typing import Any, NamedTuple, Protocol

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from topstory.serving.api.errors import ApiError
from topstory.serving.http.asgi import error_headers
from topstory.serving.http.hot_routes import HotRoute
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.security.api_keys import Key

_encoder = msgspec.json.Encoder()

Headers = list[tuple[bytes, bytes]]


class KnownHead(NamedTuple):
    """What a request line and headers mean: a route, a key that may use it, a body's length."""

    path: str
    route: HotRoute
    key: Key
    body_bytes: int


class FastRoutes:
    """The hot routes by path. With `cors`, requests with an Origin take the ASGI route."""

    def __init__(
        self, routes: Mapping[str, HotRoute], requests: RequestCounts, cors: bool = False
    ) -> None:
        self.routes = {path.encode(): (path, route) for path, route in routes.items()}
        self.cors = cors
        self.requests = requests
        self.headers: Headers | None = None  # uvicorn makes a new list when the date changes
        self.success_head = b""  # with these headers


def response_head(status: int, headers: Headers) -> bytes:
    """The head of a response up to the value of its content-length."""
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return STATUS_LINE[status] + lines + b"content-type: application/json\r\ncontent-length: "


class HttpConnection(Protocol):
    """What an exchange needs of its protocol."""

    transport: asyncio.Transport
    server_state: Any

    def on_response_complete(self) -> None:
        """The connection is free for the next request."""
        ...


class _NoEvent:
    """uvicorn sets an event when a connection is lost; unused here."""

    def set(self) -> None:
        """Do nothing."""


class FastExchange:
    """One request and its response; to uvicorn it looks like one of its own cycles."""

    __slots__ = (
        *("_began", "_connection", "_route", "_routes", "body", "disconnected"),
        *("error", "keep_alive", "key", "length", "path"),
        *("response_complete", "response_started"),
    )
    message_event = _NoEvent()

    def __init__(
        self,
        connection: HttpConnection,
        routes: FastRoutes,
        path: str,
        route: HotRoute,
        keep: bool,
        began: float = 0.0,  # when the request was complete
    ) -> None:
        self._connection, self._routes = connection, routes
        self.path, self._route = path, route
        self.keep_alive = keep
        self.body: bytes | bytearray = b""
        self.length = 0  # of the body received so far
        self.key: Key | None = None
        self.error: ApiError | None = None
        self.response_started = self.response_complete = self.disconnected = False
        self._began = began

    def authorise(self, authorization: bytes | None) -> None:
        """Check the key once the headers are complete, before any of the body is buffered."""
        try:
            self.key = self._route.authorise(authorization)
        except ApiError as error:
            self.error = error  # sent at the end: a client that still sends would not read it

    def receive(self, part: bytes) -> int:
        """Take a part of the body; returns the length so far."""
        self.length += len(part)
        if self.key is None:
            return self.length
        if not self.body:
            self.body = part
        elif isinstance(self.body, bytearray):
            self.body += part
        else:
            self.body = bytearray(self.body + part)  # grows in place, whatever the number of parts
        return self.length

    def begin(self) -> None:
        """Handle the request: it is complete."""
        self._began = monotonic()
        if self.key is not None:
            self._route.begin(self.key, bytes(self.body), self._began, self)
        elif self.error is not None:
            self.refuse(self.error)

    def known_head(self) -> KnownHead | None:
        """What another request with the same head means."""
        if self.key is None:
            return None
        return KnownHead(self.path, self._route, self.key, len(self.body))

    def refuse(self, error: ApiError) -> None:
        """Send an error."""
        headers = [
            *self._connection.server_state.default_headers,
            *error_headers(error),
        ]
        if (b"connection", b"close") in headers:
            headers.remove((b"connection", b"close"))
            self.keep_alive = False
        self.grant(error.answer, error.status, response_head(error.status, headers))

    def grant(self, answer: Any, status: int = 200, head: bytes | None = None) -> None:
        """Send the answer, or what takes its place with another status and head."""
        if self.response_complete:
            return
        self.response_started = self.response_complete = True
        routes, connection = self._routes, self._connection
        routes.requests.count(self.path, status, monotonic() - self._began)
        transport = connection.transport
        if self.disconnected or transport.is_closing():
            return
        content = _encoder.encode(answer)
        if head is None:
            headers = connection.server_state.default_headers
            if headers is not routes.headers:
                routes.headers, routes.success_head = headers, response_head(200, headers)
            head = routes.success_head
        # Head and body in one packet.
        if self.keep_alive:
            transport.write(b"%b%d\r\n\r\n%b" % (head, len(content), content))
        else:
            closing = b"%b%d\r\nconnection: close\r\n\r\n%b"
            transport.write(closing % (head, len(content), content))
            transport.close()
        connection.on_response_complete()
