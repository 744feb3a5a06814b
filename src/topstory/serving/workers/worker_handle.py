"""A worker as the learner has it: its process, and the link to it."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import Callable

from topstory.serving import child_process
from topstory.serving.config.schema import Config
from topstory.serving.workers.learner import Learner
from topstory.serving.workers.link import Link, SendMessage
from topstory.serving.workers.wire import (
    Count,
    Counted,
    FromWorker,
    Ready,
    WarmUp,
    Welcome,
    from_worker,
)

MODULE = "topstory.serving.workers.worker_process"
COUNT_SECONDS, WARM_UP_SECONDS = 1.0, 60.0  # a worker has this long for it

MakeLearner = Callable[[SendMessage], Learner]


class WorkerHandle:
    """Starts a worker and talks to it until it has ended."""

    def __init__(self, place: int, inherited: list[int]) -> None:
        """Args: its place, and the descriptors it inherits beside its end of the sockets."""
        ours, theirs = socket.socketpair()
        command = [*child_process.command(MODULE), str(place)]
        descriptors = [theirs.fileno(), *inherited]
        with theirs:
            self.process = subprocess.Popen(
                [*command, *map(str, descriptors)],
                pass_fds=descriptors,
                stdin=subprocess.DEVNULL,
                env=child_process.environment(),
            )
        self.place = place
        self._end = ours
        self._link: Link | None = None
        self._learner: Learner | None = None
        self.ready = asyncio.Event()
        self.gone = asyncio.Event()
        self._warming_up = 0  # how many wait for it to load kernels, which may take long
        self._pending: dict[type[FromWorker], list[asyncio.Future[None]]] = {Ready: [], Counted: []}
        self._counted: Callable[[Counted], None] | None = None

    async def talk(
        self, config: Config, make: MakeLearner, counted: Callable[[Counted], None]
    ) -> None:
        """Send it the configuration, and answer what it asks from now on."""
        self._counted = counted
        link = self._link = Link(from_worker, self._received, self.gone.set)
        self._learner = make(link.send)
        await link.connect(self._end)
        link.send(Welcome(config))

    async def count(self, seconds: float = COUNT_SECONDS) -> bool:
        """Have it report what it has counted; whether it did so in time."""
        return await self._ask(Count(), Counted, seconds)

    async def beat(self, seconds: float) -> bool:
        """Whether it still answers. While it loads kernels it need not, for a while."""
        return await self.count(seconds) or bool(self._warming_up)

    async def warm_up(self) -> None:
        """Have it load the kernels for a pool's first article."""
        self._warming_up += 1
        try:
            await self._ask(WarmUp(), Ready, WARM_UP_SECONDS)
        finally:
            self._warming_up -= 1

    async def _ask(
        self, question: Count | WarmUp, answer: type[FromWorker], seconds: float
    ) -> bool:
        """Wait for an answer, unless the worker is gone; False if it takes longer."""
        if self._link is None or not self.ready.is_set() or self.gone.is_set():
            return True
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending[answer].append(answered)
        self._link.send(question)
        gone = asyncio.create_task(self.gone.wait())
        await asyncio.wait((answered, gone), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        return answered.done() or self.gone.is_set()

    async def end(self, seconds: float) -> None:
        """Have it answer its open requests, and end; after this time it is killed."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            await asyncio.to_thread(self.process.wait, seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            await asyncio.to_thread(self.process.wait)

    def _received(self, message: FromWorker) -> None:
        if isinstance(message, Ready):
            self.ready.set()
        elif isinstance(message, Counted):
            assert self._counted is not None
            self._counted(message)
        else:
            assert self._learner is not None
            self._learner.received(message)
            return
        for answered in self._pending[type(message)]:
            if not answered.done():
                answered.set_result(None)
        self._pending[type(message)] = []
