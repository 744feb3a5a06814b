"""Sends a node's batches to the inbox, each of them once, in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from topstory.serving.fleet.inbox import Batch, BatchOutcome, Inbox, NewDecision, NewPayoff
from topstory.serving.fleet.origins import is_origin
from topstory.serving.journal.postgres.fleet_tables import EARLIER
from topstory.serving.journal.records import Decided

T = TypeVar("T")


class BatchSender:
    """Numbers the batches of a node. One is on its way at a time."""

    def __init__(self, inbox: Inbox, node: int) -> None:
        self._inbox, self._node = inbox, node
        self._thread = ThreadPoolExecutor(1, "inbox")
        self._number = 0  # of the last batch that arrived
        self._unconfirmed = False  # whether the next one may have arrived

    async def run(self, work: Callable[[Inbox], T]) -> T:
        """Do something with the inbox, between two batches; JournalError."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, work, self._inbox)

    async def send(
        self, at: int, since: int, decisions: Sequence[NewDecision], payoffs: Sequence[NewPayoff]
    ) -> tuple[BatchOutcome, dict[int, Decided]]:
        """Hand a batch in; with the decisions of requests that were repeated. JournalError."""
        batch = Batch(self._number + 1, at, since, decisions, payoffs)
        return await self.run(lambda inbox: self._hand_in(inbox, batch))

    def _hand_in(self, inbox: Inbox, batch: Batch) -> tuple[BatchOutcome, dict[int, Decided]]:
        self._unconfirmed = True
        outcome = inbox.hand_in(self._node, batch)
        self._number, self._unconfirmed = batch.number, False
        places = zip(batch.decisions, outcome.codes, outcome.refs, strict=False)
        again = [ref for _, code, ref in places if code == EARLIER]
        earlier: dict[int, Decided] = {}
        if again:
            earlier = inbox.decisions([each for each in again if is_origin(each)])
            old = inbox.in_journal([each for each in again if not is_origin(each)])
            earlier |= {number: decided for number, (decided, _) in old.items()}
        return outcome, earlier

    async def resolve(self) -> None:
        """After a failure: see to it that a batch which did not arrive by now never will.

        An empty one takes its number. If the batch was there before, that changes nothing: then it
        counts, though its clients were refused, and they are told so when they ask again.
        """
        await self.run(self._resolve)

    def _resolve(self, inbox: Inbox) -> None:
        if not self._unconfirmed:
            inbox.run("SELECT 1")
            return
        inbox.hand_in(self._node, Batch(self._number + 1, 0, 0, (), ()))
        self._number, self._unconfirmed = self._number + 1, False

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()
