"""Requests that the learner answers, while it ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from topstory.serving.fleet.calls import Desk
from topstory.serving.workers.wire import Forwarded


class OneCall:
    """In the place of the database: a request waits there."""

    def __init__(self) -> None:
        request = Forwarded(1, "GET", "/v1/stats", b"/v1/stats", b"", [], b"")
        self.calls: list[tuple[int, Forwarded]] = [(1, request)]
        self.written: list[Any] = []

    def do(self, *arguments: Any) -> None:
        self.written.append(arguments)


def test_a_learner_that_ends_leaves_no_call_behind(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer that was made after the end found no thread to write it."""
    asked, made = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked.set()
        await made.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def work() -> None:
        inbox: Any = OneCall()
        desk = Desk(app, inbox, lambda: 1, "NOTIFY nobody")
        monkeypatch.setattr(desk, "_take", lambda: [inbox.calls.pop()] if inbox.calls else [])
        running = asyncio.create_task(desk.run(0.0))
        await asked.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await desk.close()
        made.set()
        await asyncio.sleep(0)
        assert not inbox.written

    asyncio.run(work())
    assert not caplog.text
