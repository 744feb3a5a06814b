"""Connections are accepted many at a time."""

import asyncio
import socket
from typing import Any

import uvicorn
import uvloop

from topstory.serving.http.accepting import Server

CLIENTS = 40


async def _hello(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


async def _accepted_in(turns: int) -> tuple[int, list[bool], list[bytes]]:
    """How many of 40 connections that wait are accepted by then; and what they are."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=CLIENTS)
    config = uvicorn.Config(_hello, lifespan="off", log_level="error", timeout_graceful_shutdown=1)
    server = Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup([listening])
    clients = [socket.create_connection(listening.getsockname()) for _ in range(CLIENTS)]
    for _ in range(turns):
        await asyncio.sleep(0)
    accepted = list(server.server_state.connections)
    nodelay = [
        each.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        != 0
        for each in accepted
    ]
    answers = []
    for client in clients:
        client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        client.setblocking(False)
        answer = b""
        while part := await asyncio.get_running_loop().sock_recv(client, 4096):
            answer += part
        answers.append(answer)
        client.close()
    await server.shutdown([listening])
    return len(accepted), nodelay, answers


def test_connections_that_wait_are_accepted_together() -> None:
    """The loop by itself accepts one in a turn: 40 clients would wait for 40 turns."""
    accepted, nodelay, answers = uvloop.run(_accepted_in(turns=8))
    assert accepted == CLIENTS
    assert nodelay == [True] * CLIENTS  # as those that the loop accepts
    assert all(b"hello" in answer for answer in answers)
