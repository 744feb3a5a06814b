"""Requests that only the learner can answer: a worker hands them over as they came."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from topstory.serving.http.asgi import Gone, header, read_body
from topstory.serving.security.api_keys import Keys
from topstory.serving.workers.link import SendMessage
from topstory.serving.workers.wire import Answered, Forwarded


class Forwarding:
    """The worker's side: an ASGI application that asks the learner's."""

    def __init__(self, send: SendMessage, keys: Keys, body_bytes: int) -> None:
        self._send, self._keys, self._limit = send, keys, body_bytes
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Answered]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request by ASGI."""
        body = b""
        if scope["method"] == "PUT":  # nothing else that is forwarded has a body
            self._keys.find(header(scope, b"authorization"))  # before a stranger's body is read
            body = await read_body(scope, receive, self._limit)
        self._number += 1
        answer = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        self._send(
            Forwarded(
                self._number,
                scope["method"],
                scope["path"],
                scope.get("raw_path", b""),
                scope["query_string"],
                [(bytes(name), bytes(value)) for name, value in scope["headers"]],
                body,
            )
        )
        told = await answer
        start: dict[str, Any] = {"status": told.status, "headers": told.headers}
        await send({"type": "http.response.start", **start})
        await send({"type": "http.response.body", "body": told.body})

    def heard(self, message: Answered) -> None:
        """What the learner says."""
        waiting = self._waiting.pop(message.first)
        if not waiting.done():  # the client may have gone
            waiting.set_result(message)


async def answered(app: ASGIApp, asked: Forwarded) -> Answered:
    """The learner's side: the answer of its own application."""
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": asked.method,
        "path": asked.path,
        "raw_path": asked.raw_path,
        "root_path": "",
        "query_string": asked.query,
        "headers": asked.headers,
        "client": None,
        "server": None,
    }
    status, headers, parts = 500, [], []

    async def receive() -> Message:
        return {"type": "http.request", "body": asked.body, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status, headers = message["status"], list(message["headers"])
        else:
            parts.append(message.get("body", b""))

    try:
        await app(scope, receive, send)
    except Gone:  # it never goes: the body is here
        status = 500
    return Answered(asked.first, status, headers, b"".join(parts))
