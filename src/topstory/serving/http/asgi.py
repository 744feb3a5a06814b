"""From a request's bytes to an answer's: what every route shares."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from topstory.serving.api.errors import Refused

JSON = b"application/json"
_encoder = msgspec.json.Encoder()


class Gone(Exception):
    """The client went away before its request was whole."""


def header(scope: Scope, name: bytes) -> bytes | None:
    """A header's value."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body, unless it is longer than allowed."""
    told = header(scope, b"content-length")
    if told is not None and (not told.isdigit() or int(told) > limit):
        raise too_long(limit)
    message = await receive()
    if message["type"] != "http.request":
        raise Gone
    body: bytes = message.get("body", b"")
    if len(body) > limit:
        raise too_long(limit)
    if not message.get("more_body", False):
        return body
    parts, length = [body], len(body)
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Gone
        parts.append(message.get("body", b""))
        length += len(parts[-1])
        if length > limit:
            raise too_long(limit)
        if not message.get("more_body", False):
            return b"".join(parts)


def too_long(limit: int) -> Refused:
    """The body is longer than allowed."""
    return Refused(413, "body_too_long", f"a body has {limit} bytes at most")


async def answer(send: Send, status: int, body: Any, *headers: tuple[bytes, bytes]) -> None:
    """Send a record as JSON."""
    await answer_bytes(send, status, _encoder.encode(body), JSON, *headers)


async def answer_bytes(
    send: Send, status: int, content: bytes, kind: bytes, *headers: tuple[bytes, bytes]
) -> None:
    """Send bytes."""
    length = (b"content-length", str(len(content)).encode())
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", kind), length, *headers],
        }
    )
    await send({"type": "http.response.body", "body": content})


async def refuse(send: Send, refused: Refused) -> None:
    """Send why not."""
    await answer(send, refused.status, refused.answer, *extra_headers(refused.status))


def extra_headers(status: int) -> list[tuple[bytes, bytes]]:
    """What a refusal of this status comes with."""
    if status in (429, 503):
        return [(b"retry-after", b"1")]
    if status == 401:
        return [(b"www-authenticate", b"Bearer")]
    if status == 413:
        return [(b"connection", b"close")]  # whatever is still coming is not read
    return []
