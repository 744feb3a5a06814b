"""One worker as the learner has it: its process, and the link to it."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable

import msgspec

from topstory.serving.config.schema import Config
from topstory.serving.workers.learner import Learner
from topstory.serving.workers.link import Link
from topstory.serving.workers.wire import (
    Count,
    Counted,
    FromWorker,
    Look,
    Ready,
    Welcome,
    from_worker,
)

COUNTING, LOADING = 1.0, 60.0  # seconds that a worker has for it

MakeLearner = Callable[[Callable[[msgspec.Struct], None]], Learner]


class Member:
    """Starts a worker and talks to it until it has ended."""

    def __init__(self, place: int, inherited: list[int]) -> None:
        """Args: its place, and the descriptors it inherits beside its end of the sockets."""
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "topstory.serving.workers.worker_process", str(place)]
        descriptors = [theirs.fileno(), *inherited]
        with theirs:
            self.process = subprocess.Popen(
                [*command, *map(str, descriptors)], pass_fds=descriptors, stdin=subprocess.DEVNULL
            )
        self.place = place
        self._end = ours
        self._link: Link | None = None
        self._learner: Learner | None = None
        self.ready = asyncio.Event()
        self.gone = asyncio.Event()
        self._asked: dict[type[FromWorker], list[asyncio.Future[None]]] = {Ready: [], Counted: []}
        self._heard_counts: Callable[[Counted], None] | None = None

    async def talk(
        self, config: Config, make: MakeLearner, counted: Callable[[Counted], None]
    ) -> None:
        """Welcome it, and answer what it asks from now on."""
        self._heard_counts = counted
        link = self._link = Link(from_worker, self._heard, self.gone.set)
        self._learner = make(link.say)
        await link.connect(self._end)
        link.say(Welcome(config))

    async def count(self) -> None:
        """Have it tell what it has counted."""
        await self._ask(Count(), Counted, COUNTING)

    async def look(self) -> None:
        """Have it load the kernels for a pool's first article."""
        await self._ask(Look(), Ready, LOADING)

    async def _ask(self, question: Count | Look, answer: type[FromWorker], seconds: float) -> None:
        """One that is gone, or takes longer, is not waited for."""
        if self._link is None or not self.ready.is_set() or self.gone.is_set():
            return
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked[answer].append(told)
        self._link.say(question)
        gone = asyncio.create_task(self.gone.wait())
        await asyncio.wait((told, gone), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()

    async def end(self, seconds: float) -> None:
        """Ask it to end, having answered all it was asked; after so long it must."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            await asyncio.to_thread(self.process.wait, seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            await asyncio.to_thread(self.process.wait)

    def _heard(self, message: FromWorker) -> None:
        if isinstance(message, Ready):
            self.ready.set()
        elif isinstance(message, Counted):
            assert self._heard_counts is not None
            self._heard_counts(message)
        else:
            assert self._learner is not None
            self._learner.heard(message)
            return
        for told in self._asked[type(message)]:
            if not told.done():
                told.set_result(None)
        self._asked[type(message)] = []
