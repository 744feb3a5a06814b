"""The door of the studio, in every process: a cookie for a key, and live updates.

A worker forwards what it cannot answer to the learner. It only has to know who asks, and to keep a
stream open, for which it asks the learner anew every second.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from topstory.serving.api.errors import ApiError
from topstory.serving.http.asgi import ClientDisconnected, answer_of, cookie, header
from topstory.serving.security.api_keys import Keys

COOKIE = "topstory_studio"
# No page of another site can send this header without being asked for permission first.
MARK = b"x-topstory-studio"
STREAM, SNAPSHOT = "/studio/stream", "/studio/data/now"
STREAM_SECONDS = 1.0
MAX_STREAMS = 200  # in one process
MAX_STREAMS_OF_KEY = 50  # so that one cannot take all


class Gate:
    """An application in front of another: it turns cookies into keys, and answers streams."""

    def __init__(self, inner: ASGIApp, keys: Keys) -> None:
        self._inner, self._keys = inner, keys
        self._streams: Counter[str] = Counter()  # by the key's name
        self.ending: Callable[[], bool] = lambda: False  # whether the server stops

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request by ASGI."""
        if scope["type"] == "http":
            scope = with_session(scope)
            if scope["path"] == STREAM and scope["method"] == "GET":
                await self._stream(scope, receive, send)
                raise ClientDisconnected  # so that nobody counts it as a request that took hours
        await self._inner(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Server-sent events: the state of a pool, every second while the browser listens."""
        key = self._keys.recognise(header(scope, b"authorization"), "read").name
        if self._streams.total() >= MAX_STREAMS or self._streams[key] >= MAX_STREAMS_OF_KEY:
            raise ApiError(503, "too_many_streams", "too many pages are open: close some")
        gone = asyncio.create_task(_gone(receive))
        self._streams[key] += 1
        started = False
        try:
            last = b""
            while not gone.done() and not self.ending():
                status, headers, body = await self._snapshot(scope)
                if not started:
                    if status != 200:
                        await send(
                            {"type": "http.response.start", "status": status, "headers": headers}
                        )
                        await send({"type": "http.response.body", "body": body})
                        return
                    await send(_start())
                    started = True
                if status != 200:
                    error = msgspec.json.encode({"status": status})
                    await send(_part(b"event: refused\ndata: " + error + b"\n\n"))
                    break
                await send(_part(b": same\n\n" if body == last else b"data: " + body + b"\n\n"))
                last = body
                await asyncio.wait([gone], timeout=STREAM_SECONDS)
            if started:
                await send({"type": "http.response.body", "body": b""})
        finally:
            self._streams[key] -= 1
            gone.cancel()

    async def _snapshot(self, scope: Scope) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """The state now, from whoever has it: as another request of the same browser."""
        asked = {**scope, "path": SNAPSHOT, "raw_path": SNAPSHOT.encode()}
        try:
            return await answer_of(self._inner, asked)
        except ApiError as error:
            body = msgspec.json.encode(error.answer)
            return error.status, [(b"content-type", b"application/json")], body


def with_session(scope: Scope) -> Scope:
    """The request with the key of its session, if a page of the studio sent it."""
    token = session_token(header(scope, b"cookie"))
    if token is None or header(scope, b"authorization") is not None:
        return scope
    reads = scope["method"] in ("GET", "HEAD") and scope["path"].startswith("/studio")
    if not reads and header(scope, MARK) is None:
        return scope
    return {
        **scope,
        "headers": [*scope["headers"], (b"authorization", b"Session " + token.encode("latin-1"))],
    }


def session_token(cookies: bytes | None) -> str | None:
    """The session's token among the cookies of a request.

    >>> session_token(b"a=b; topstory_studio=xyz")
    'xyz'
    """
    return cookie(cookies, COOKIE)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _start() -> Message:
    return {
        "type": "http.response.start",
        "status": 200,
        "headers": [
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
        ],
    }


def _part(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}
