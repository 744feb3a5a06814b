"""Looks into a journal that is far away: by a thread of their own, so that nobody else waits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from topstory.serving.api.errors import Unavailable
from topstory.serving.journal.journal import Found, Journal, JournalError
from topstory.serving.service.replies import Reply, attempt

Told = Callable[[Found | None], None]


class Looks:
    """What was found is told in the event loop.

    A file is looked into at once: that takes some 20 microseconds, and a thread would take longer
    to get the interpreter back from a busy loop.
    """

    def __init__(self, journal: Journal) -> None:
        self.far = journal.far
        self._journal = journal
        self._thread = ThreadPoolExecutor(1, "looks")  # begun when there is something to do
        self.sought: Counter[int] = Counter()  # decisions that are being looked for

    def decision(self, number: int, told: Told, reply: Reply[Any]) -> None:
        """Look for a decision; if that goes wrong, it is the reply."""
        self.sought[number] += 1
        self._look(partial(self._journal.decision, number), told, reply, number)

    def request(self, request: str, since: int, told: Told, reply: Reply[Any]) -> None:
        """The same for what was decided for a client's request, not before that time."""
        self._look(partial(self._journal.request, request, since), told, reply)

    def _look(
        self,
        look: Callable[[], Found | None],
        told: Told,
        reply: Reply[Any],
        number: int | None = None,
    ) -> None:
        def over(done: asyncio.Future[Found | None]) -> None:
            attempt(reply, _tell, done, told)
            if number is not None:
                self.sought -= Counter((number,))

        asyncio.get_running_loop().run_in_executor(self._thread, look).add_done_callback(over)

    def close(self) -> None:
        """No more."""
        self._thread.shutdown()


def _tell(done: asyncio.Future[Found | None], told: Told) -> None:
    try:
        found = done.result()
    except JournalError as error:
        raise unreadable(error) from None
    told(found)


def unreadable(error: JournalError) -> Unavailable:
    """A look failed."""
    return Unavailable(f"the journal cannot be read: {error}")
