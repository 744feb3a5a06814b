"""HTTP with an end: uvicorn's own protocol waits for ever, and for any number of headers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from topstory.serving.api.errors import Refused
from topstory.serving.config.schema import LimitsConfig
from topstory.serving.http.asgi import extra_headers, too_long
from topstory.serving.http.fast_path.exchange import Express, Ride, answer_head
from topstory.serving.http.fast_path.header_cache import KnownHeads
from topstory.serving.http.fast_path.write_stall import Unread

Connected = Callable[[int], int]  # from the connections of this process to those of all


class GuardedProtocol(HttpToolsProtocol):
    """Limits headers, the time to send a request and to read its answer, and connections."""

    limits = LimitsConfig()
    express: Express | None = None
    connected: Connected = staticmethod(lambda here: here)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # One timer for a connection, looked at when it rings: setting one for every request costs.
        self._timer: asyncio.TimerHandle | None = None
        self._rings = 0.0
        self._deadline: float | None = None  # None: a request is whole, and the time is ours
        self._idle = False  # nothing of the next request has come
        self._shut = False  # refused: whatever still comes is not looked at
        self._chunk = 0  # bytes of what was received last
        self._fed = 0  # bytes since the request began, with all of the chunk in which it began
        self._first = 0  # bytes of that chunk
        self._in_headers = True
        self._in_message = False
        self._heads = KnownHeads()
        self._unread = Unread()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Take the connection, if there is room for one more."""
        super().connection_made(transport)
        if self.connected(len(self.connections)) > self.limits.connections:
            self._close(
                Refused(503, "too_many_connections", "the service has all connections it takes")
            )
        else:
            self._expect(self.limits.request_seconds, idle=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """No more."""
        self._unwatch()
        super().connection_lost(exc)
        self.connected(len(self.connections))

    def data_received(self, data: bytes) -> None:
        """Feed the parser, while there is anything to be hoped for."""
        if self._shut:
            return
        cycle = self._cycle
        free = not self._in_message and (cycle is None or cycle.response_complete)
        if free:
            if self._heads and self.timeout_keep_alive_task is None and self._seen(data):
                return
            if self._idle or self._deadline is None:
                self._expect(self.limits.request_seconds, idle=False)
        limit = self.limits.header_bytes
        if len(data) <= limit:
            self._feed(data)
        else:  # in pieces: it may be many requests, and the parser does not tell where one begins
            for start in range(0, len(data), limit):
                self._feed(data[start : start + limit])
        if free and not self._in_message and not self._shut:
            ride = self._cycle
            if isinstance(ride, Ride):
                self._heads.remember(data, self.headers, ride)

    def _feed(self, data: bytes) -> None:
        if self._shut:
            return
        self._chunk = len(data)
        self._fed += self._chunk
        super().data_received(data)
        # Of the piece in which the headers began at least a byte is theirs, and of later ones all.
        long = self._fed - self._first >= self.limits.header_bytes
        if long and self._in_headers and not self._shut:
            self._close(self._long_headers())

    def _seen(self, data: bytes) -> bool:
        """Whether it is one whole request whose head came before on this very connection."""
        found = self._heads.find(data)
        if found is None:
            return False
        ticket, body = found
        assert self.express is not None
        self._deadline = None
        self._cycle = ride = Ride(self, self.express, ticket.path, ticket.route, keep=True)
        ride.begin_with(ticket.key, body)
        return True

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._fed = self._first = self._chunk
        self._in_headers = self._in_message = True

    def on_headers_complete(self) -> None:
        """Its headers are whole."""
        limit = self.limits.header_bytes
        if self._fed > limit:  # counted only then: the body may have come with them
            long = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if long > limit:
                self._close(self._long_headers())
        self._in_headers = False
        if not self._shut and not self._board():
            super().on_headers_complete()

    def _board(self) -> bool:
        """Whether the request goes by express."""
        express, cycle = self.express, self._cycle
        if (
            express is None
            or self.url not in express.routes
            or (cycle is not None and not cycle.response_complete)
            or self.expect_100_continue
            or self.parser.get_method() != b"POST"
            or self.parser.should_upgrade()
            # Pages of other sites need headers that only the ordinary way adds.
            or (not express.pages and any(name == b"origin" for name, _ in self.headers))
        ):
            return False
        keep = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
        self._cycle = ride = Ride(self, express, *express.routes[self.url], keep)
        ride.board(next((v for name, v in self.headers if name == b"authorization"), None))
        return True

    @property
    def _cycle(self) -> Any:
        """The request at hand: None before the first, whatever uvicorn's type says, or a ride."""
        return self.cycle

    @_cycle.setter
    def _cycle(self, ride: Any) -> None:
        self.cycle = ride

    def on_body(self, body: bytes) -> None:
        """More of its body came."""
        ride = self._cycle
        if self._shut:
            return
        if not isinstance(ride, Ride):
            super().on_body(body)
            return
        if ride.take(body) > self.limits.body_bytes:
            self._close(ride.refused or too_long(self.limits.body_bytes))

    def on_message_complete(self) -> None:
        """It is whole: from here on the time is ours."""
        self._deadline = None
        self._in_message = False
        ride = self._cycle
        if self._shut:
            return
        if isinstance(ride, Ride):
            ride.begin()
        else:
            super().on_message_complete()
            if ride.response_complete:  # it was refused before its body was whole
                self._expect(self.timeout_keep_alive, idle=True)

    def send_400_response(self, msg: str) -> None:
        """It is no HTTP."""
        self._close(Refused(400, "bad_http", msg))

    def on_response_complete(self) -> None:
        """The connection is free for the next request."""
        flow = self.flow
        if self.pipeline or (flow.read_paused and not flow.write_paused):
            super().on_response_complete()
            if flow.write_paused:
                flow.pause_reading()
        else:  # as uvicorn, which sets a timer for every answer
            self.server_state.total_requests += 1
            if not self._in_message:
                self._expect(self.timeout_keep_alive, idle=True)
            elif self._deadline is None:  # a part of the next one came while this one was answered
                self._expect(self.limits.request_seconds, idle=False)

    def pause_writing(self) -> None:
        """Answers are not read: neither are requests, or they would pile up here."""
        super().pause_writing()
        if not self.transport.is_closing():
            self.flow.pause_reading()
        self._wait_for_reader()

    def resume_writing(self) -> None:
        """They are read again."""
        super().resume_writing()
        self._unread.forget()
        if self._deadline is not None:  # what was to come could not be heard
            idle = self._idle
            self._expect(self.timeout_keep_alive if idle else self.limits.request_seconds, idle)
        if not self.pipeline and not self.transport.is_closing():
            self.flow.resume_reading()

    def _expect(self, seconds: float, idle: bool) -> None:
        """Something must come within so many seconds."""
        self._deadline, self._idle = self.loop.time() + seconds, idle
        if self._timer is None or self._deadline < self._rings:
            self._watch(seconds)

    def _watch(self, seconds: float) -> None:
        self._unwatch()
        self._rings = self.loop.time() + seconds
        self._timer = self.loop.call_later(seconds, self._look)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        if self.transport.is_closing() or self.flow.write_paused:
            self._wait_for_reader()
            return
        left = self.limits.request_seconds
        if self._deadline is not None:
            left = self._deadline - self.loop.time()
        if left > 0:
            self._watch(left)
        elif self._idle:
            self._hang_up()
        else:
            self._close(
                Refused(
                    *(408, "too_slow"),
                    f"a request must be whole within {self.limits.request_seconds:g} seconds",
                )
            )

    def _wait_for_reader(self) -> None:
        """Until all is read that was written; one who reads nothing for long is let go."""
        now = self.loop.time()
        since = self._unread.since(self.transport.get_write_buffer_size(), now)
        left = since + self.limits.idle_seconds - now
        if left > 0:
            self._watch(left)
        else:
            self.transport.abort()

    def _hang_up(self) -> None:
        self.transport.close()  # once all that was written is read
        self._wait_for_reader()

    def _long_headers(self) -> Refused:
        return Refused(
            *(431, "headers_too_long"),
            f"a request's line and headers have {self.limits.header_bytes} bytes at most",
        )

    def _close(self, refused: Refused) -> None:
        """Say why, and hang up."""
        self._shut = True
        if self.transport.is_closing():
            return
        cycle = self._cycle
        if cycle is None or not cycle.response_started or cycle.response_complete:
            body = msgspec.json.encode(refused.answer)
            told = [each for each in extra_headers(refused.status) if each[0] != b"connection"]
            head = answer_head(refused.status, [*told, (b"connection", b"close")])
            self.transport.write(b"%b%d\r\n\r\n%b" % (head, len(body), body))
            if self.express is not None:
                known = isinstance(cycle, Ride) and self._in_message and not self._in_headers
                route = cycle.path if known else "other"
                self.express.requests.count_unfinished(route, refused.status)
        self._hang_up()


def guarded(
    limits: LimitsConfig,
    express: Express | None = None,
    connected: Connected = lambda here: here,
) -> type[GuardedProtocol]:
    """The protocol with these limits and routes: uvicorn makes its instances itself."""
    told = {"limits": limits, "express": express, "connected": staticmethod(connected)}
    return type("GuardedProtocol", (GuardedProtocol,), told)
