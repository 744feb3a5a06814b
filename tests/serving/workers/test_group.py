"""A worker that dies is followed by another one, whatever goes wrong in between."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from topstory.serving.config import Config
from topstory.serving.workers import group
from topstory.serving.workers.group import Group


class Process:
    """One that ends when it is told to."""

    pid = 0

    def wait(self) -> int:
        return 1

    def kill(self) -> None:
        pass


class Member:
    """A worker that can be talked to from the third one on."""

    count = 0

    def __init__(self, place: int, inherited: list[int]) -> None:
        type(self).count += 1
        self.number, self.place, self.process = self.count, place, Process()
        self.ready, self.gone = asyncio.Event(), asyncio.Event()

    async def talk(self, *_: Any) -> None:
        if self.number == 2:
            raise RuntimeError("the socket is closed")
        self.ready.set()


def test_a_worker_that_cannot_be_talked_to_is_followed_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group, "Member", Member)
    monkeypatch.setattr(group, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(group, "share", lambda host, port: socket.socket())

    async def work() -> None:
        shared: Any = SimpleNamespace(
            descriptors=[], descriptor=0, connected=lambda place, count: None
        )
        here = [socket.create_server(("127.0.0.1", 0))]
        workers = Group(Config(), here, shared, shared)
        nothing: Any = None
        await workers.begin(nothing, nothing, nothing)
        workers.members[0].gone.set()
        async with asyncio.timeout(5):
            while workers.members[0].number != 3 or not workers.members[0].ready.is_set():  # type: ignore[attr-defined]  # the test's own
                await asyncio.sleep(0.01)
        assert workers.restarts == 2
        for task in workers._keeping:
            task.cancel()
        here[0].close()

    asyncio.run(work())
