"""ASGI helpers that all routes share: read a body, send a response or an error."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from topstory.serving.api.errors import ApiError

JSON = b"application/json"
MAX_LARGE_BODIES = 2  # at a time, in one process
PART_BYTES = 1_000_000  # of an answer; one that is longer waits in memory for its client
_encoder = msgspec.json.Encoder()


class ClientDisconnected(Exception):
    """The client disconnected before its request was complete."""


_TOKEN = re.compile(rb"[\w-]{1,200}")


def header(scope: Scope, name: bytes) -> bytes | None:
    """The value of a header."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


def cookie(cookies: bytes | None, name: str) -> str | None:
    """A cookie of ours: a plain token. Python's own parser takes seconds for 16 KB of backslashes.

    >>> cookie(b"a=b; us=xyz", "us"), cookie(b'us="x', "us")
    ('xyz', None)
    """
    for part in (cookies or b"").split(b";"):
        key, _, value = part.strip().partition(b"=")
        if key == name.encode():
            return value.decode() if _TOKEN.fullmatch(value) else None
    return None


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body. Raises if it is longer than `limit` bytes."""
    length = header(scope, b"content-length")
    if length is not None and (not length.isdigit() or int(length) > limit):
        raise body_too_long(limit)
    parts: list[bytes] = []
    received = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnected
        parts.append(message.get("body", b""))
        received += len(parts[-1])
        if received > limit:
            raise body_too_long(limit)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def body_too_long(limit: int) -> ApiError:
    """The error for a body above the limit."""
    return ApiError(413, "body_too_long", f"a request body may have at most {limit} bytes")


async def answer_of(
    app: ASGIApp, scope: Scope, body: bytes = b"", room: LargeBodies | None = None
) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """The whole answer of an application: status, headers, body.

    `room`: for answers that are long, each of which is in memory as a whole.
    """
    status, headers, parts, size = 500, [], list[bytes](), 0
    received = False

    async def receive() -> Message:
        nonlocal received
        if received:  # who asks again waits for the client to leave, which nobody sees from here
            await asyncio.Event().wait()
        received = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status, headers, size
        if message["type"] == "http.response.start":  # again, if something failed since
            status, headers, size = message["status"], list(message["headers"]), 0
            parts.clear()
            return
        part = message.get("body", b"")
        if room is not None and size <= PART_BYTES < size + len(part):
            held.enter_context(room.one(True))
        size += len(part)
        parts.append(part)

    with ExitStack() as held:
        await app(scope, receive, send)
    return status, headers, b"".join(parts)


async def send_json(send: Send, status: int, record: Any, *headers: tuple[bytes, bytes]) -> None:
    """Send a record as JSON."""
    await send_bytes(send, status, _encoder.encode(record), *headers)


async def send_bytes(
    send: Send, status: int, content: bytes, *headers: tuple[bytes, bytes]
) -> None:
    """Send a body that is JSON already."""
    length = (b"content-length", str(len(content)).encode())
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", JSON), length, *headers],
        }
    )
    await send({"type": "http.response.body", "body": content})


async def json_array(parts: AsyncIterator[Sequence[Any]]) -> AsyncIterator[bytes]:
    """An array as JSON, some elements at a time: nowhere is all of it in memory."""
    before = b"["
    async for some in parts:
        yield before + _encoder.encode(some)[1:-1]
        before = b","
    yield b"[]" if before == b"[" else b"]"


async def send_error(send: Send, error: ApiError) -> None:
    """Send an error response."""
    await send_json(send, error.status, error.answer, *error_headers(error))


def error_headers(error: ApiError) -> list[tuple[bytes, bytes]]:
    """The extra headers of an error."""
    status = error.status
    if error.allow:
        return [(b"allow", ", ".join(error.allow).encode())]
    if status in (429, 503):
        return [(b"retry-after", b"1")]
    if status == 401:
        return [(b"www-authenticate", b"Bearer")]
    if status == 413:
        return [(b"connection", b"close")]  # the rest of the body is not read
    return []


class LargeBodies:
    """Room for a few large bodies at a time: each takes tens of megabytes.

    >>> room = LargeBodies()
    >>> with room.one(True), room.one(True), room.one(False), room.one(True):
    ...     pass
    Traceback (most recent call last):
    ...
    topstory.serving.api.errors.ApiError: other policies are being read: try again later
    """

    def __init__(
        self, most: int = MAX_LARGE_BODIES, others: str = "other policies are being read"
    ) -> None:
        self._most, self._others, self._count = most, others, 0

    @contextmanager
    def one(self, large: bool) -> Iterator[None]:
        """Hold a place, if the body is large; ApiError if there is none."""
        if large and self._count == self._most:
            raise ApiError(503, "busy", f"{self._others}: try again later")
        self._count += large
        try:
            yield
        finally:
            self._count -= large
