"""Connections that ask for more than they should get: the protocol alone, on loopback."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from topstory.serving.config import Config as ServiceConfig
from topstory.serving.config import KeyConfig, LimitsConfig
from topstory.serving.express import Express, Ride
from topstory.serving.hot_routes import decide_route
from topstory.serving.keys import Keys, new_key
from topstory.serving.metrics import Requests
from topstory.serving.protocol import GuardedProtocol, guarded
from topstory.serving.refusals import Refused

KEY, DIGEST = new_key()
STRANGER = b"POST /v1/decide HTTP/1.1\r\nhost: a\r\n"
FRIEND = STRANGER + f"authorization: Bearer {KEY}\r\n".encode()


class Nobody:
    """A service that has nothing to show."""

    config = ServiceConfig()

    def ask(self, asked: Any, reply: Any) -> None:
        raise Refused(409, "no_article", "nothing to show")

    pay = ask


@asynccontextmanager
async def connected(
    requests: Requests, limits: LimitsConfig
) -> AsyncIterator[tuple[socket.socket, GuardedProtocol]]:
    """A client's end of one connection, and the protocol at the other."""
    keys = Keys([KeyConfig(name="all", sha256=DIGEST)], rate=1e6, burst=1_000_000)
    express = Express({"/v1/decide": decide_route(Nobody(), keys)}, requests)
    kind = guarded(limits, express)
    config = uvicorn.Config(_no_app, log_config=None)
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
        yield client, made[0]
        made[0].transport.abort()
    server.close()
    await server.wait_closed()


async def _no_app(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("nothing goes the ordinary way here")


def test_a_stranger_is_known_by_the_headers_and_nothing_of_the_body_is_held() -> None:
    async def come() -> None:
        async with connected(Requests(), LimitsConfig()) as (client, protocol):
            protocol.data_received(STRANGER + b"content-length: 100000\r\n\r\n" + b"x" * 90_000)
            ride: Any = protocol.cycle
            assert isinstance(ride, Ride)
            assert ride.body == b""
            protocol.data_received(b"x" * 10_000)
            answer = await asyncio.get_running_loop().sock_recv(client, 65_536)
            assert answer.startswith(b"HTTP/1.1 401")
            # However long it is: the key comes first, as it does on the ordinary way.
            protocol.data_received(STRANGER + b"content-length: 3000000\r\n\r\n" + b"x" * 2_000_000)
            answer = await asyncio.get_running_loop().sock_recv(client, 65_536)
            assert answer.startswith(b"HTTP/1.1 401")
            assert b"www-authenticate: Bearer\r\n" in answer

    asyncio.run(come())


def test_a_body_in_many_pieces_costs_as_much_as_it_is_long() -> None:
    async def come() -> float:
        async with connected(Requests(), LimitsConfig()) as (client, protocol):
            began = time.process_time()
            protocol.data_received(FRIEND + b"transfer-encoding: chunked\r\n\r\n")
            for _ in range(900):
                protocol.data_received(b"1\r\nx\r\n" * 1_000)
            protocol.data_received(b"0\r\n\r\n")
            took = time.process_time() - began
            answer = await asyncio.get_running_loop().sock_recv(client, 65_536)
            assert b"bad_json" in answer
            return took

    assert asyncio.run(come()) < 4  # seconds; copying what there is for every piece takes far more
