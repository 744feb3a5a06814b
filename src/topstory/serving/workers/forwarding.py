"""Requests that only the learner can answer: a worker forwards them unchanged."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from topstory.serving.api.endpoints import Role, endpoint_of
from topstory.serving.api.errors import ApiError
from topstory.serving.config.limits import LimitsConfig
from topstory.serving.http.asgi import (
    PART_BYTES,
    ClientDisconnected,
    LargeBodies,
    answer_of,
    header,
    read_body,
)
from topstory.serving.security.api_keys import Keys
from topstory.serving.workers.link import SendMessage
from topstory.serving.workers.wire import Answered, Forwarded

MAX_LONG_ANSWERS = 8  # at a time


class Forwarding:
    """The worker's side: an ASGI application that forwards to the learner's."""

    def __init__(self, send: SendMessage, keys: Keys, limits: LimitsConfig) -> None:
        self._send, self._keys, self._limits = send, keys, limits
        self._large = LargeBodies()
        self._long_answers = long_answers()
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Answered]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request by ASGI."""
        endpoint = endpoint_of(scope["method"], scope["path"]) if _has_body(scope) else None
        large = endpoint is not None and endpoint.large
        role = endpoint.role if endpoint is not None and large else None
        if not _has_body(scope) or not self._may_send(scope, role):
            await self._forward(scope, b"", send)
            return
        with self._large.one(large):
            limit = self._limits.policy_bytes if large else self._limits.body_bytes
            await self._forward(scope, await read_body(scope, receive, limit), send)

    async def _forward(self, scope: Scope, body: bytes, send: Send) -> None:
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
        answered = await answer
        start: dict[str, Any] = {"status": answered.status, "headers": answered.headers}
        body = answered.body
        with self._long_answers.one(len(body) > PART_BYTES):
            await send({"type": "http.response.start", **start})
            for begin in range(0, len(body) or 1, PART_BYTES):  # waits until those before are read
                part, more = body[begin : begin + PART_BYTES], begin + PART_BYTES < len(body)
                await send({"type": "http.response.body", "body": part, "more_body": more})

    def received(self, message: Answered) -> None:
        """Take the learner's answer."""
        waiting = self._waiting.pop(message.first)
        if not waiting.done():  # the client may have disconnected
            waiting.set_result(message)

    def _may_send(self, scope: Scope, role: Role | None) -> bool:
        """Bodies of unknown clients are not buffered: the learner needs only their headers.

        Nor are large bodies of those without the role.
        """
        try:
            self._keys.recognise(header(scope, b"authorization"), role)
        except ApiError:
            return False
        return True


def _has_body(scope: Scope) -> bool:
    length = header(scope, b"content-length")
    return length not in (None, b"0") or header(scope, b"transfer-encoding") is not None


def long_answers() -> LargeBodies:
    """Room for a few long answers at a time."""
    return LargeBodies(MAX_LONG_ANSWERS, "other long answers are being sent")


async def answered(app: ASGIApp, request: Forwarded, room: LargeBodies | None = None) -> Answered:
    """The learner's side: the answer of its own application. `room`: for long ones."""
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": request.method,
        "path": request.path,
        "raw_path": request.raw_path,
        "root_path": "",
        "query_string": request.query,
        "headers": request.headers,
        "client": None,
        "server": None,
    }
    try:
        status, headers, body = await answer_of(app, scope, request.body, room)
    except ClientDisconnected:  # cannot happen: the body is here
        status, headers, body = 500, [], b""
    return Answered(request.first, status, headers, body)
