"""The two hot routes without ASGI: from the parser straight to the service, and back.

An ASGI call costs a task, four dictionaries and three awaits more than the request itself needs.
Whatever is not an ordinary POST to a hot route goes the ordinary way, with the same answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from time import monotonic, perf_counter
from typing import Any, Protocol

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from topstory.serving.answering import extra_headers
from topstory.serving.hot_routes import HotRoute
from topstory.serving.metrics import Requests
from topstory.serving.refusals import Refused

log = logging.getLogger("topstory.serving")


class Express:
    """The hot routes by their paths."""

    def __init__(self, routes: Mapping[str, HotRoute[Any]], requests: Requests) -> None:
        self.routes = {path.encode(): (path, route) for path, route in routes.items()}
        self.requests = requests


class Connection(Protocol):
    """What a ride needs of the protocol that it is on."""

    transport: asyncio.Transport
    server_state: Any
    headers: list[tuple[bytes, bytes]]

    def on_response_complete(self) -> None:
        """The connection is free for the next request."""
        ...


class _NoEvent:
    """uvicorn sets an event when a connection is lost; nobody waits for it here."""

    def set(self) -> None:
        """Nothing."""


class Ride:
    """One request on its way; to uvicorn it looks like one of its own cycles."""

    message_event = _NoEvent()

    def __init__(self, connection: Connection, express: Express, url: bytes, keep: bool) -> None:
        self._connection, self._requests = connection, express.requests
        self._path, self._route = express.routes[url]
        self._headers = connection.headers
        self.body = b""
        self.keep_alive = keep
        self.response_started = self.response_complete = self.disconnected = False
        self._began = 0.0
        self._work: Coroutine[Any, Any, bytes] | None = None

    def begin(self) -> None:
        """The request is whole."""
        self._began = perf_counter()
        authorization = next((v for name, v in self._headers if name == b"authorization"), None)
        self._work = self._route.respond(authorization, self.body, monotonic())
        self._step()

    def _step(self, _: Any = None) -> None:
        """As far as it goes without waiting: what a task does, without being one."""
        assert self._work is not None
        try:
            waited = self._work.send(None)
        except StopIteration as done:
            self._answer(200, done.value)
        except Refused as refused:
            self.refuse(refused)
        except Exception:
            log.exception("a request failed unexpectedly")
            self.refuse(Refused(500, "internal_error", "the service made a mistake"))
        else:
            waited._asyncio_future_blocking = False  # taken note of, as a task would
            waited.add_done_callback(self._step)

    def refuse(self, refused: Refused) -> None:
        """Say why not."""
        headers = extra_headers(refused.status)
        self._answer(refused.status, msgspec.json.encode(refused.answer), *headers)

    def _answer(self, status: int, content: bytes, *headers: tuple[bytes, bytes]) -> None:
        self._requests.count(self._path, status, perf_counter() - self._began)
        self.response_started = self.response_complete = True
        transport = self._connection.transport
        if self.disconnected or transport.is_closing():
            return
        lines = [STATUS_LINE[status]]
        for name, value in (*self._connection.server_state.default_headers, *headers):
            lines += [name, b": ", value, b"\r\n"]
            if name == b"connection":
                self.keep_alive = False
        if not self.keep_alive and not any(name == b"connection" for name, _ in headers):
            lines.append(b"connection: close\r\n")
        length = str(len(content)).encode()
        lines += [b"content-type: application/json\r\ncontent-length: ", length, b"\r\n\r\n"]
        lines.append(content)
        transport.write(b"".join(lines))  # headers and body in one packet
        if not self.keep_alive:
            transport.close()
        self._connection.on_response_complete()
