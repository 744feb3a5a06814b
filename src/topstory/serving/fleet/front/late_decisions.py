"""Decisions without the database: from the last model, kept on the disk, and handed in later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from topstory.serving.fleet.front.spool import Spool
from topstory.serving.fleet.front.waiting_rows import WaitingDecision
from topstory.serving.fleet.inbox import Inbox
from topstory.serving.service.sequencer.ledger import not_written

log = logging.getLogger("topstory.serving")


class LateDecisions:
    """Puts decisions into a spool, and answers: in groups, as if they were handed in."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._thread = ThreadPoolExecutor(1, "spool")  # the other one may wait for the database
        self._waiting: list[WaitingDecision] = []
        self._task: asyncio.Task[None] | None = None
        self._open = True  # closed while what waits is handed in

    @property
    def usable(self) -> bool:
        """Whether decisions can be made without the database."""
        return self._open and self._spool.usable

    def add(self, made: Sequence[WaitingDecision]) -> None:
        """Keep these, and answer."""
        self._waiting += made
        if self._waiting and self._task is None:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(0)  # what is ready by now goes along
                made, self._waiting = self._waiting, []
                await self._keep(made)
        finally:
            self._task = None

    async def _keep(self, made: list[WaitingDecision]) -> None:
        kept = []
        for one in made:
            if one.row.decided is not None:
                kept.append((one, one.row.decided))
            elif one.error is not None:
                one.proposal.denied((one.place,), one.error)
        if not kept:
            return
        write, loop = self._spool.write, asyncio.get_running_loop()
        try:
            first, marked = await loop.run_in_executor(
                self._thread, write, [decided for _, decided in kept]
            )
        except OSError as error:
            log.error("decisions cannot be kept: %s", error)
            for one, _ in kept:
                one.proposal.denied((one.place,), not_written(str(error)))
            return
        for number, ((one, _), decided) in enumerate(zip(kept, marked, strict=True), first):
            one.proposal.made((one.place,), number, (decided,))

    async def hand_in(self, inbox: Inbox) -> None:
        """Hand in what waits, and get ready for the next time; OSError."""
        self._open = False
        try:
            await self.drain()
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._thread, self._spool.prepare, inbox)
        finally:
            self._open = True

    async def drain(self) -> None:
        """Wait until everything is on the disk."""
        while self._task is not None:
            await asyncio.sleep(0.001)

    def close(self) -> None:
        """End the thread; call `drain` first."""
        self._thread.shutdown()
        self._spool.close()
