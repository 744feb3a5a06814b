"""The protocol on its own: connections that break its limits, and how they are counted."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
import uvloop
from uvicorn.server import ServerState

from topstory.serving.api.errors import ApiError
from topstory.serving.config.limits import LimitsConfig
from topstory.serving.config.schema import Config as ServiceConfig
from topstory.serving.config.schema import KeyConfig
from topstory.serving.http import app
from topstory.serving.http.app import App
from topstory.serving.http.asgi import read_body, send_json
from topstory.serving.http.fast_path.connection_room import ConnectionRoom
from topstory.serving.http.fast_path.exchange import FastExchange, FastRoutes
from topstory.serving.http.fast_path.protocol import GuardedProtocol, guarded
from topstory.serving.http.hot_routes import hot_routes
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.security.api_keys import Keys, new_key

KEY, DIGEST = new_key()
KEYS = Keys([KeyConfig(name="all", sha256=DIGEST)], rate=1e6, burst=1_000_000)
ANONYMOUS = b"POST /v1/decide HTTP/1.1\r\nhost: a\r\n"
WITH_KEY = ANONYMOUS + f"authorization: Bearer {KEY}\r\n".encode()


class Nobody:
    """A service without articles."""

    config = ServiceConfig()

    def ask(self, asked: Any, reply: Any, key: str) -> None:
        raise ApiError(409, "no_article", "nothing to show")

    pay = ask

    def check_room(self) -> None:
        """There is room."""

    def check_payments(self) -> None:
        """There is room."""


@asynccontextmanager
async def connected(
    requests: RequestCounts, limits: LimitsConfig
) -> AsyncIterator[tuple[socket.socket, GuardedProtocol]]:
    """A client's end of one connection, and the protocol at the other."""
    kind = guarded(limits, FastRoutes(hot_routes(Nobody(), KEYS), requests))
    config = uvicorn.Config(_no_app, log_config=None, timeout_keep_alive=limits.idle_seconds)
    made: list[GuardedProtocol] = []

    def make() -> GuardedProtocol:
        made.append(kind(config=config, server_state=ServerState(), app_state={}))
        return made[-1]

    listening = socket.create_server(("127.0.0.1", 0))
    for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        listening.setsockopt(socket.SOL_SOCKET, buffer, 8_192)  # little is kept on the way
    loop = asyncio.get_running_loop()
    server = await loop.create_server(make, sock=listening)
    with socket.socket() as client:
        for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            client.setsockopt(socket.SOL_SOCKET, buffer, 8_192)
        client.setblocking(False)
        await loop.sock_connect(client, listening.getsockname())
        while not made or made[0].transport is None:
            await asyncio.sleep(0)
        try:
            yield client, made[0]
        finally:
            made[0].transport.abort()
            server.close()
            await server.wait_closed()


async def _no_app(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("no request goes by ASGI here")


def test_unauthenticated_requests_are_rejected_before_the_body_is_buffered() -> None:
    async def work() -> None:
        async with connected(RequestCounts(), LimitsConfig()) as (client, protocol):
            protocol.data_received(ANONYMOUS + b"content-length: 100000\r\n\r\n" + b"x" * 90_000)
            exchange: Any = protocol.cycle
            assert isinstance(exchange, FastExchange)
            assert exchange.body == b""
            protocol.data_received(b"x" * 10_000)
            answer = await asyncio.get_running_loop().sock_recv(client, 65_536)
            assert answer.startswith(b"HTTP/1.1 401")
            # However long the body is: the key is checked first, as it is by ASGI.
            protocol.data_received(
                ANONYMOUS + b"content-length: 3000000\r\n\r\n" + b"x" * 2_000_000
            )
            answer = await asyncio.get_running_loop().sock_recv(client, 65_536)
            assert answer.startswith(b"HTTP/1.1 401")
            assert b"www-authenticate: Bearer\r\n" in answer

    uvloop.run(work())


def test_a_body_in_many_pieces_grows_in_place() -> None:
    """Copying all that came for every piece would cost the square of a body's length."""

    async def work() -> None:
        async with connected(RequestCounts(), LimitsConfig()) as (client, protocol):
            protocol.data_received(WITH_KEY + b"transfer-encoding: chunked\r\n\r\n")
            protocol.data_received(b"1\r\nx\r\n" * 2)
            exchange: Any = protocol.cycle
            assert isinstance(exchange, FastExchange)
            held = exchange.body
            assert isinstance(held, bytearray)
            for _ in range(90):
                protocol.data_received(b"1\r\nx\r\n" * 1_000)
                assert exchange.body is held
            assert held == b"x" * 90_002
            protocol.data_received(b"0\r\n\r\n")
            answer = await asyncio.get_running_loop().sock_recv(client, 65_536)
            assert b"bad_json" in answer

    uvloop.run(work())


def test_requests_are_not_read_while_the_client_reads_no_answers() -> None:
    one = ANONYMOUS + b"content-length: 0\r\n\r\n"

    async def work() -> None:
        loop = asyncio.get_running_loop()
        requests = RequestCounts()
        async with connected(requests, LimitsConfig()) as (client, protocol):
            await answers_pile_up(client, protocol, one)
            answered = requests.statuses["/v1/decide", 401]
            assert protocol.transport.get_write_buffer_size() < 2_000_000
            # Nothing is lost: once answers are read, requests are too.
            got, read = 0, b""
            async with asyncio.timeout(60):
                while got < answered + 100:
                    read = read[-11:] + await loop.sock_recv(client, 1 << 20)
                    got += read.count(b"HTTP/1.1 401")

    uvloop.run(work())


async def until_lost(protocol: GuardedProtocol) -> None:
    """Wait until the service closes the connection."""
    async with asyncio.timeout(60):
        while protocol in protocol.connections:
            await asyncio.sleep(0.01)


async def answers_pile_up(client: socket.socket, protocol: GuardedProtocol, one: bytes) -> None:
    """Send requests and read nothing, until the service reads no more."""
    whole, sent, full = one * 40_000, 0, False
    async with asyncio.timeout(60):
        while not (full and protocol.flow.write_paused):
            assert sent < len(whole), "the service reads everything"
            try:
                sent += client.send(whole[sent : sent + 4_096])
            except BlockingIOError:
                full = True
            else:
                full = False
            await asyncio.sleep(0)


def test_a_client_that_reads_no_answers_is_disconnected() -> None:
    async def work() -> None:
        async with connected(RequestCounts(), LimitsConfig(idle_seconds=1)) as (client, protocol):
            await answers_pile_up(client, protocol, ANONYMOUS + b"content-length: 0\r\n\r\n")
            await until_lost(protocol)

    uvloop.run(work())


@pytest.mark.parametrize("limits", [LimitsConfig(idle_seconds=1, request_seconds=0.1)])
@pytest.mark.parametrize("end", [b"connection: close\r\n", b"", b"content-length: 9\r\n"])
def test_a_last_answer_that_is_not_read_keeps_no_connection(
    limits: LimitsConfig, end: bytes
) -> None:
    """Whether the client, the idle timeout or the request timeout ended it."""

    async def work() -> None:
        async with connected(RequestCounts(), limits) as (client, protocol):
            # More than is kept on the way, less than what a protocol is notified of.
            protocol.transport.write(b"x" * 60_000)
            assert protocol.transport.get_write_buffer_size() > 0
            client.send(ANONYMOUS + end + b"\r\n")
            await until_lost(protocol)

    uvloop.run(work())


def test_a_client_that_reads_slowly_is_waited_for() -> None:
    length = 220_000

    async def work() -> int:
        loop = asyncio.get_running_loop()
        async with connected(RequestCounts(), LimitsConfig(idle_seconds=2)) as (client, protocol):
            protocol.transport.write(b"x" * length)
            got, began = 0, time.monotonic()
            while got < length:
                got += len(await asyncio.wait_for(loop.sock_recv(client, 10_000), 60))
                await asyncio.sleep(0.1)
            assert time.monotonic() - began > 2  # the limit is of what was read last
            client.send(ANONYMOUS + b"content-length: 0\r\n\r\n")
            assert (await loop.sock_recv(client, 65_536)).startswith(b"HTTP/1.1 401")
            return got

    assert uvloop.run(work()) == length


@pytest.mark.parametrize("length", [0, 3_000])
def test_headers_are_counted_from_where_their_request_begins(length: int) -> None:
    one = ANONYMOUS + b"content-length: %d\r\n\r\n" % length + b"x" * length

    async def work(data: bytes) -> Counter[tuple[str, int]]:
        requests = RequestCounts()
        async with connected(requests, LimitsConfig(header_bytes=2_000)) as (_, protocol):
            for half in (data, one[20:]):
                protocol.data_received(half)
        return requests.statuses

    for count in (1, 50, 300):
        assert uvloop.run(work(one * count + one[:20])) == {("/v1/decide", 401): count + 1}
    # One that is too long is so wherever it begins, and whether it ends or not.
    for count in (0, 1, 50):
        for end in (b"", b"\r\n\r\n"):
            statuses = uvloop.run(work(one * count + ANONYMOUS + b"x: " + b"y" * 5_000 + end))
            assert statuses["other", 431] == 1


def test_requests_that_fail_before_they_are_complete_are_counted() -> None:
    async def work(limits: LimitsConfig, *parts: bytes) -> RequestCounts:
        requests = RequestCounts()
        async with connected(requests, limits) as (client, protocol):
            for part in parts:
                protocol.data_received(part)
            while await asyncio.get_running_loop().sock_recv(client, 65_536):
                pass  # until it closes the connection
        return requests

    # What is sent to the quick one is there at once, unless this process stands still for so long.
    few, quick = LimitsConfig(body_bytes=10), LimitsConfig(request_seconds=0.8)
    begun = WITH_KEY + b"content-length: 20\r\n\r\n"
    cases: tuple[tuple[LimitsConfig, tuple[bytes, ...], str, int], ...] = (
        (few, (begun, b"x" * 11), "/v1/decide", 413),
        (quick, (begun, b"x" * 11), "/v1/decide", 408),
        (quick, (begun[:20],), "other", 408),
        (quick, (begun + b"x" * 20, begun[:20]), "other", 408),  # the second, not the first
        (LimitsConfig(header_bytes=30), (begun,), "other", 431),
        (LimitsConfig(), (b"\x16\x03\x01\r\n\r\n",), "other", 400),
    )

    async def all_work() -> list[RequestCounts]:
        return await asyncio.gather(*(work(limits, *parts) for limits, parts, _, _ in cases))

    for requests, (_, _, route, status) in zip(uvloop.run(all_work()), cases, strict=True):
        assert requests.statuses[route, status] == 1
        # They have no latency: they were never complete.
        assert not sum(requests.latencies[route].counts)


def test_latency_is_measured_from_the_last_byte_of_the_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr(app, "perf_counter", lambda: clock[0])

    async def rest(scope: Any, receive: Any, send: Any) -> None:
        await read_body(scope, receive, 100)
        await send_json(send, 200, {})

    async def work(path: str) -> float:
        requests = RequestCounts()
        messages = [
            {"type": "http.request", "body": b"{", "more_body": True},
            {"type": "http.request", "body": b"}"},
        ]

        async def receive() -> Any:
            clock[0] += 100  # a slow client
            return messages.pop(0)

        async def send(message: Any) -> None:
            clock[0] += 1

        headers = [(b"authorization", f"Bearer {KEY}".encode())]
        scope = {"type": "http", "path": path, "method": "POST", "headers": headers}
        await App(Nobody(), KEYS, rest, requests)(scope, receive, send)
        (latency,) = requests.latencies.values()
        return latency.total

    for path in ("/v1/decide", "/v1/other"):
        assert uvloop.run(work(path)) == 2  # the answer's head and body


def test_with_cors_only_requests_with_an_origin_go_by_asgi() -> None:
    async def ordinary(scope: Any, receive: Any, send: Any) -> None:
        await send_json(send, 418, {})

    async def work() -> list[bytes]:
        async with connected(RequestCounts(), LimitsConfig()) as (client, protocol):
            assert protocol.fast_routes is not None
            protocol.fast_routes.cors = True
            protocol.app = ordinary
            found = []
            for origin in (b"", b"Origin: https://news.example\r\n", b""):
                protocol.data_received(
                    WITH_KEY + origin + b'content-length: 12\r\n\r\n{"user":[1]}'
                )
                found.append((await asyncio.get_running_loop().sock_recv(client, 65_536))[:12])
            return found

    assert uvloop.run(work()) == [b"HTTP/1.1 409", b"HTTP/1.1 418", b"HTTP/1.1 409"]


class Slow(Nobody):
    """A service that never answers."""

    def ask(self, asked: Any, reply: Any, key: str) -> None:
        pass


def test_health_and_errors_have_room_while_all_connections_are_busy() -> None:
    """Beside two connections whose requests are being answered, which must not be closed."""
    whole = WITH_KEY + b'content-length: 12\r\n\r\n{"user":[1]}'
    upload = WITH_KEY + b"content-length: 900000\r\n\r\n" + b"x" * 900_000
    live = b"GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n"

    async def healthy(scope: Any, receive: Any, send: Any) -> None:
        await send_json(send, 200, {})

    async def asked(address: Any, *parts: bytes) -> tuple[asyncio.StreamWriter, bytes]:
        reader, writer = await asyncio.open_connection(*address)
        for part in parts:
            writer.write(part)
        answer = b"" if parts == (whole,) else await reader.readuntil(b"\r\n\r\n")
        return writer, answer

    async def work() -> list[bytes]:
        limits, requests, state = LimitsConfig(connections=2), RequestCounts(), ServerState()
        kind = guarded(limits, FastRoutes(hot_routes(Slow(), KEYS), requests))
        config = uvicorn.Config(healthy, log_config=None)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: kind(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        address = server.sockets[0].getsockname()
        busy = [(await asked(address, whole))[0] for _ in range(2)]
        held: set[Any] = state.connections
        while not all(each.cycle for each in held):
            await asyncio.sleep(0)
        tried = [await asked(address, data) for data in (live, upload, WITH_KEY + b"\r\n", live)]
        for writer, _ in tried:
            writer.close()
        while len(state.connections) > 2:
            await asyncio.sleep(0)
        for each in busy:
            each.close()
        server.close()
        return [answer for _, answer in tried]

    first, long, short, last = uvloop.run(work())
    assert first.startswith(b"HTTP/1.1 200")
    assert last.startswith(b"HTTP/1.1 200")
    for refused in (long, short):
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 1" in refused


def test_strangers_are_closed_before_those_with_a_key() -> None:
    closed = []

    class Held:
        def __init__(self, name: str, known: bool, since: float, spare: bool = True) -> None:
            self.name, self.known, self.since, self._spare = name, known, since, spare

        def spare(self) -> bool:
            return self._spare

        def evict(self) -> None:
            closed.append(self.name)

    held = [
        *(Held("key", True, 1.0), Held("busy", False, 0.0, spare=False)),
        *(Held("new", False, 9.0), Held("old", False, 5.0)),
    ]
    room = ConnectionRoom(limit=128)
    assert room.excess(128) == 0
    assert room.excess(129) == 1
    others = held + [Held("busy", False, 0.0, spare=False)] * 124
    assert room.made(others) == -1  # two will be gone
    assert closed == ["old", "new"]
    assert room.excess(131) == 1
    assert room.made([held[1]] * 130) == 1  # none can be spared
