"""The protocol of a connection: one request at a time, within limits."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any

import httptools
import msgspec

from topstory.serving.api.errors import ApiError
from topstory.serving.config.limits import LimitsConfig
from topstory.serving.http.asgi import body_too_long, error_headers
from topstory.serving.http.fast_path.connection_room import RESERVED, ConnectionRoom
from topstory.serving.http.fast_path.exchange import FastExchange, FastRoutes, response_head
from topstory.serving.http.fast_path.framing import Framing
from topstory.serving.http.fast_path.header_cache import HEAD_END, HeaderCache
from topstory.serving.http.fast_path.timed_protocol import TimedProtocol


class GuardedProtocol(TimedProtocol):
    """Limits connections, headers, and the time to send a request or read a response.

    One request is read at a time: what follows it waits, and reading is paused, until it is
    answered.
    """

    fast_routes: FastRoutes | None = None
    room = ConnectionRoom(LimitsConfig().connections)
    cycle: Any  # the current request: None before the first, and a FastExchange if it is one

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.known = False  # a valid API key was sent
        self._reserve = False  # accepted above the limit, for a health check
        self._evicted = False
        self._rejecting = False  # after an error: further input is ignored
        self._parting: ApiError | None = None  # to send once the current request is answered
        self._held, self._held_from = b"", 0  # input that waits for the current request's answer
        self._upgrading = False  # to another protocol, which is not done: the body comes again
        self._framing = Framing(self.limits.header_bytes)
        self._heads = HeaderCache()

    @property
    def _unanswered(self) -> bool:
        """Whether a complete request has no answer yet."""
        cycle = self.cycle
        return cycle is not None and not cycle.response_complete and self._framing.in_head

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Accept the connection. If there are too many, close others that can be spared."""
        super().connection_made(transport)
        self._expect(self.limits.request_seconds, idle=False)
        others: set[Any] = self.connections - {self}
        excess = self.room.made(others)
        if excess > 0:
            self._reserve = True
            if excess > RESERVED // 2:
                self._close(_too_many_connections())
            if excess > RESERVED:
                transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer, and count one connection less."""
        self._cancel_timer()
        super().connection_lost(exc)
        self.room.evicted -= self._evicted
        self.room.count(len(self.connections))

    def spare(self) -> bool:
        """Whether no complete request waits for its answer here."""
        return not self._unanswered and not self._evicted and not self.transport.is_closing()

    def evict(self) -> None:
        """Close the connection: others need its place."""
        self._evicted = True
        if self._framing.in_message and not self._lingering:
            self._close(_too_many_connections())
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Handle a request with a known head at once; parse others."""
        if self._rejecting:
            return
        if self._held:  # it came before reading was paused
            self._hold(self._held[self._held_from :] + data, 0)
            return
        framing, cycle = self._framing, self.cycle
        free = not framing.in_message and (cycle is None or cycle.response_complete)
        if free and not self._reserve:
            end = data.find(HEAD_END) + len(HEAD_END)
            head = self._heads.get(data[:end])
            if head is not None and len(data) - end == head.body_bytes:  # exactly one request
                assert self.fast_routes is not None
                path, route, key, _ = head  # the key was checked when the head was first seen
                self._deadline, now = None, monotonic()
                self.cycle = exchange = FastExchange(self, self.fast_routes, path, route, True, now)
                route.begin(key, data[end:], now, exchange)
                return
        if self._consume(data, 0) and free and not framing.in_message:
            cycle = self.cycle
            if isinstance(cycle, FastExchange):
                self._heads.remember(data, self.headers, cycle)

    def _consume(self, data: bytes, start: int) -> bool:
        """Parse up to the end of a request, and hold the rest; whether all was parsed well."""
        framing = self._framing
        while start < len(data) and not self._rejecting:
            if self._unanswered or self.flow.write_paused:
                self._hold(data, start)
                return False
            if not framing.in_message and (self._idle or self._deadline is None):
                self._expect(self.limits.request_seconds, idle=False)
            end = framing.piece_end(data, start)
            piece = data[start:end]
            error = framing.count(piece)
            if error is None:
                self._parse(piece)
            else:
                self._close(error)
            start = end
        return not self._rejecting

    def _parse(self, piece: bytes) -> None:
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            if not self._rejecting:
                self._parse_without_upgrade()
        except httptools.HttpParserError:
            self._close(ApiError(400, "bad_http", "Invalid HTTP request received."))

    def _parse_without_upgrade(self) -> None:
        """Parse the head again as if it asked for no other protocol: its body comes next."""
        lines = [b"%b: %b\r\n" % each for each in self.headers if each[0] != b"upgrade"]
        old = self.parser
        line = b"%b %b HTTP/%b\r\n" % (old.get_method(), self.url, old.get_http_version().encode())
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._parse(b"%b%b\r\n" % (line, b"".join(lines)))

    def _hold(self, data: bytes, start: int) -> None:
        self._held, self._held_from = data, start
        self.flow.pause_reading()

    def _go_on(self) -> None:
        """Read what was held, and then what comes."""
        if self._unanswered or self.flow.write_paused or self._rejecting:
            return
        data, start = self._held, self._held_from
        self._held, self._held_from = b"", 0
        self._consume(data, start)
        if not self._held and not self.transport.is_closing():
            self.flow.resume_reading()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._framing.begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers are counted by their bytes, and otherwise ignored."""
        if self._framing.in_head:
            name = name.lower()
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Check the headers, and choose between the fast path and ASGI."""
        self._upgrading = self.parser.should_upgrade()
        hosts, length = 0, None
        for name, value in self.headers:
            if name == b"host":
                hosts += 1
            elif name == b"content-length":
                length = int(value)
        if self._upgrading and self.parser.get_method() != b"CONNECT":
            return
        error = None
        if self._unanswered:  # the parser found an end where there should be none
            error = ApiError(400, "bad_http", "Invalid HTTP request received.")
        elif self._upgrading:
            error = ApiError(405, "wrong_method", "this service is no proxy")
        elif hosts != 1 and (hosts or self.parser.get_http_version() != "1.0"):
            error = ApiError(400, "bad_host", f"a request has one Host header, got {hosts}")
        elif self._reserve and not self.url.startswith(b"/health/"):
            self._reserve = self.room.excess(len(self.connections)) > 0
            error = _too_many_connections() if self._reserve else None
        if error is not None:
            self._close(error)
        self._framing.begin_body(length)
        if error is None and not self._take_fast_path():
            super().on_headers_complete()

    def _take_fast_path(self) -> bool:
        """Begin a fast exchange, if the request is an ordinary one to a hot route."""
        routes = self.fast_routes
        if (
            routes is None
            or self.url not in routes.routes
            or self.expect_100_continue
            or self.parser.get_method() != b"POST"
            # Pages of other sites need headers that only the ASGI route adds.
            or (routes.cors and any(name == b"origin" for name, _ in self.headers))
        ):
            return False
        keep = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
        self.cycle = exchange = FastExchange(self, routes, *routes.routes[self.url], keep)
        exchange.authorise(next((v for name, v in self.headers if name == b"authorization"), None))
        self.known = self.known or exchange.key is not None
        return True

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        exchange = self.cycle
        self._framing.body(len(body))
        if self._rejecting:
            return
        if not isinstance(exchange, FastExchange):
            super().on_body(body)
            return
        if exchange.receive(body) > self.limits.body_bytes:
            self._close(exchange.error or body_too_long(self.limits.body_bytes))

    def on_message_complete(self) -> None:
        """Handle the request: it is complete, and from here on no time limit applies."""
        if self._upgrading:
            return
        self._deadline = None
        self._framing.finish()
        cycle = self.cycle
        if self._rejecting:
            return
        if isinstance(cycle, FastExchange):
            cycle.begin()
        else:
            super().on_message_complete()
            if cycle.response_complete:  # it failed before its body was complete
                self._expect(self.timeout_keep_alive, idle=True)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self._parting is not None:
            self._close(self._parting)
        elif not self._framing.in_message:  # as `_expect`, without a call: for every request
            self.since, self._idle = self.loop.time(), True
            self._deadline = self.since + self.timeout_keep_alive
            if self._deadline < self._timer_at:
                self._set_timer(self.timeout_keep_alive)
        if self._held:
            self.loop.call_soon(self._go_on)  # not at once: requests may be many
        elif self.flow.read_paused and not self.flow.write_paused:
            self.flow.resume_reading()

    def _close(self, error: ApiError) -> None:
        """Send an error, after the answer that is still owed, and close the connection."""
        self._rejecting = True
        if self.transport.is_closing():
            return
        cycle = self.cycle
        if self._unanswered:
            self._parting = error
            return
        self._parting = None
        if cycle is None or not cycle.response_started or cycle.response_complete:
            body = msgspec.json.encode(error.answer)
            headers = [each for each in error_headers(error) if each[0] != b"connection"]
            head = response_head(error.status, [*headers, (b"connection", b"close")])
            self.transport.write(b"%b%d\r\n\r\n%b" % (head, len(body), body))
            if self.fast_routes is not None:
                in_body = self._framing.in_message and not self._framing.in_head
                route = cycle.path if in_body and isinstance(cycle, FastExchange) else "other"
                self.fast_routes.requests.count_unfinished(route, error.status)
        self._held = b""
        self._linger()


def _too_many_connections() -> ApiError:
    return ApiError(503, "too_many_connections", "the service has too many connections")


def guarded(
    limits: LimitsConfig,
    fast_routes: FastRoutes | None = None,
    room: ConnectionRoom | None = None,
) -> type[GuardedProtocol]:
    """A protocol class with these limits and routes: uvicorn makes its instances itself."""
    settings = {
        "limits": limits,
        "fast_routes": fast_routes,
        "room": room or ConnectionRoom(limits.connections),
    }
    return type("GuardedProtocol", (GuardedProtocol,), settings)
