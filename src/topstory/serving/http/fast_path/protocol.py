"""uvicorn's HTTP protocol with limits: by itself it waits forever, for any number of headers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from topstory.serving.api.errors import ApiError
from topstory.serving.config.schema import LimitsConfig
from topstory.serving.http.asgi import body_too_long, error_headers
from topstory.serving.http.fast_path.exchange import FastExchange, FastRoutes, response_head
from topstory.serving.http.fast_path.header_cache import HeaderCache
from topstory.serving.http.fast_path.write_stall import WriteStall

# Takes the number of connections of this process; returns that of all processes.
CountConnections = Callable[[int], int]


class GuardedProtocol(HttpToolsProtocol):
    """Limits connections, headers, and the time to send a request or read a response."""

    limits = LimitsConfig()
    fast_routes: FastRoutes | None = None
    count_connections: CountConnections = staticmethod(lambda here: here)
    cycle: Any  # the current request: None before the first, and a FastExchange if it is one

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # One timer for a connection, checked when it fires: a timer for every request is slow.
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._deadline: float | None = None  # None: a request is complete, and being answered
        self._idle = False  # nothing of the next request was received
        self._rejecting = False  # after an error: further input is ignored
        self._chunk_bytes = 0  # of the last chunk
        self._fed_bytes = 0  # since the request began, with all of the chunk in which it began
        self._first_bytes = 0  # of that chunk
        self._in_headers = True
        self._in_message = False
        self._heads = HeaderCache()
        self._stall = WriteStall()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Accept the connection, unless there are too many."""
        super().connection_made(transport)
        if self.count_connections(len(self.connections)) > self.limits.connections:
            self._close(
                ApiError(503, "too_many_connections", "the service has too many connections")
            )
        else:
            self._expect(self.limits.request_seconds, idle=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer, and count one connection less."""
        self._cancel_timer()
        super().connection_lost(exc)
        self.count_connections(len(self.connections))

    def data_received(self, data: bytes) -> None:
        """Feed the parser, or handle a request with a known head at once."""
        if self._rejecting:
            return
        cycle = self.cycle
        free = not self._in_message and (cycle is None or cycle.response_complete)
        if free:
            if self.timeout_keep_alive_task is None and self._handle_known(data):
                return
            if self._idle or self._deadline is None:
                self._expect(self.limits.request_seconds, idle=False)
        limit = self.limits.header_bytes
        if len(data) <= limit:
            self._feed(data)
        else:  # in chunks: the parser does not say where in the data a request begins
            for start in range(0, len(data), limit):
                self._feed(data[start : start + limit])
        if free and not self._in_message and not self._rejecting:
            exchange = self.cycle
            if isinstance(exchange, FastExchange):
                self._heads.remember(data, self.headers, exchange)

    def _feed(self, data: bytes) -> None:
        if self._rejecting:
            return
        self._chunk_bytes = len(data)
        self._fed_bytes += self._chunk_bytes
        super().data_received(data)
        # At least one byte of the first chunk belongs to the headers, and all of the later ones.
        long = self._fed_bytes - self._first_bytes >= self.limits.header_bytes
        if long and self._in_headers and not self._rejecting:
            self._close(self._long_headers())

    def _handle_known(self, data: bytes) -> bool:
        """Handle `data` if it is exactly one request with a head known on this connection."""
        found = self._heads.find(data)
        if found is None:
            return False
        head, body = found
        assert self.fast_routes is not None
        self._deadline = None
        path, route, key, _ = head  # the key was checked when the head was first seen
        now = monotonic()
        self.cycle = exchange = FastExchange(self, self.fast_routes, path, route, True, now)
        route.begin(key, body, now, exchange)
        return True

    def on_message_begin(self) -> None:
        """Start counting: a request begins."""
        super().on_message_begin()
        self._fed_bytes = self._first_bytes = self._chunk_bytes
        self._in_headers = self._in_message = True

    def on_headers_complete(self) -> None:
        """Check the headers, and choose between the fast path and ASGI."""
        limit = self.limits.header_bytes
        if self._fed_bytes > limit:  # counted only then: the chunk may hold some of the body
            long = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if long > limit:
                self._close(self._long_headers())
        self._in_headers = False
        if not self._rejecting and not self._take_fast_path():
            super().on_headers_complete()

    def _take_fast_path(self) -> bool:
        """Begin a fast exchange, if the request is an ordinary one to a hot route."""
        routes, cycle = self.fast_routes, self.cycle
        if (
            routes is None
            or self.url not in routes.routes
            or (cycle is not None and not cycle.response_complete)
            or self.expect_100_continue
            or self.parser.get_method() != b"POST"
            or self.parser.should_upgrade()
            # Pages of other sites need headers that only the ASGI route adds.
            or (routes.cors and any(name == b"origin" for name, _ in self.headers))
        ):
            return False
        keep = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
        self.cycle = exchange = FastExchange(self, routes, *routes.routes[self.url], keep)
        exchange.authorise(next((v for name, v in self.headers if name == b"authorization"), None))
        return True

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        exchange = self.cycle
        if self._rejecting:
            return
        if not isinstance(exchange, FastExchange):
            super().on_body(body)
            return
        if exchange.receive(body) > self.limits.body_bytes:
            self._close(exchange.error or body_too_long(self.limits.body_bytes))

    def on_message_complete(self) -> None:
        """Handle the request: it is complete, and from here on no time limit applies."""
        self._deadline = None
        self._in_message = False
        cycle = self.cycle
        if self._rejecting:
            return
        if isinstance(cycle, FastExchange):
            cycle.begin()
        else:
            super().on_message_complete()
            if cycle.response_complete:  # it failed before its body was complete
                self._expect(self.timeout_keep_alive, idle=True)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        self._close(ApiError(400, "bad_http", msg))

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        flow = self.flow
        if self.pipeline or (flow.read_paused and not flow.write_paused):
            super().on_response_complete()
            if flow.write_paused:
                flow.pause_reading()
        else:  # as uvicorn does, without its timer for every response
            self.server_state.total_requests += 1
            if not self._in_message:
                self._expect(self.timeout_keep_alive, idle=True)
            elif self._deadline is None:  # a part of the next request was received meanwhile
                self._expect(self.limits.request_seconds, idle=False)

    def pause_writing(self) -> None:
        """Read no more requests while the client does not read its responses."""
        super().pause_writing()
        if not self.transport.is_closing():
            self.flow.pause_reading()
        self._wait_for_reader()

    def resume_writing(self) -> None:
        """Read requests again: the client reads its responses."""
        super().resume_writing()
        self._stall.reset()
        if self._deadline is not None:  # nothing could be received meanwhile
            idle = self._idle
            self._expect(self.timeout_keep_alive if idle else self.limits.request_seconds, idle)
        if not self.pipeline and not self.transport.is_closing():
            self.flow.resume_reading()

    def _expect(self, seconds: float, idle: bool) -> None:
        """Expect input within so many seconds."""
        self._deadline, self._idle = self.loop.time() + seconds, idle
        if self._timer is None or self._deadline < self._timer_at:
            self._set_timer(seconds)

    def _set_timer(self, seconds: float) -> None:
        self._cancel_timer()
        self._timer_at = self.loop.time() + seconds
        self._timer = self.loop.call_later(seconds, self._check_deadline)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_deadline(self) -> None:
        if self.transport.is_closing() or self.flow.write_paused:
            self._wait_for_reader()
            return
        left = self.limits.request_seconds
        if self._deadline is not None:
            left = self._deadline - self.loop.time()
        if left > 0:
            self._set_timer(left)
        elif self._idle:
            self._hang_up()
        else:
            self._close(
                ApiError(
                    *(408, "too_slow"),
                    f"a request must be complete within {self.limits.request_seconds:g} seconds",
                )
            )

    def _wait_for_reader(self) -> None:
        """Wait until the client has read everything; abort if it reads nothing for too long."""
        now = self.loop.time()
        since = self._stall.since(self.transport.get_write_buffer_size(), now)
        left = since + self.limits.idle_seconds - now
        if left > 0:
            self._set_timer(left)
        else:
            self.transport.abort()

    def _hang_up(self) -> None:
        self.transport.close()  # once everything written is sent
        self._wait_for_reader()

    def _long_headers(self) -> ApiError:
        return ApiError(
            *(431, "headers_too_long"),
            f"a request line and headers may have at most {self.limits.header_bytes} bytes",
        )

    def _close(self, error: ApiError) -> None:
        """Send an error and close the connection."""
        self._rejecting = True
        if self.transport.is_closing():
            return
        cycle = self.cycle
        if cycle is None or not cycle.response_started or cycle.response_complete:
            body = msgspec.json.encode(error.answer)
            headers = [each for each in error_headers(error.status) if each[0] != b"connection"]
            head = response_head(error.status, [*headers, (b"connection", b"close")])
            self.transport.write(b"%b%d\r\n\r\n%b" % (head, len(body), body))
            if self.fast_routes is not None:
                in_body = self._in_message and not self._in_headers
                route = cycle.path if in_body and isinstance(cycle, FastExchange) else "other"
                self.fast_routes.requests.count_unfinished(route, error.status)
        self._hang_up()


def guarded(
    limits: LimitsConfig,
    fast_routes: FastRoutes | None = None,
    count_connections: CountConnections = lambda here: here,
) -> type[GuardedProtocol]:
    """A protocol class with these limits and routes: uvicorn makes its instances itself."""
    settings = {
        "limits": limits,
        "fast_routes": fast_routes,
        "count_connections": staticmethod(count_connections),
    }
    return type("GuardedProtocol", (GuardedProtocol,), settings)
