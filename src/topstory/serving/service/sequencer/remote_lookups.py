"""Lookups in a remote journal, in a separate thread, so other requests do not wait."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from topstory.serving.api.errors import Unavailable
from topstory.serving.journal.journal import Found, Journal, JournalError
from topstory.serving.service.replies import Refusable, attempt

Callback = Callable[[Found | None], None]


class RemoteLookups:
    """Looks decisions up; callbacks run in the event loop.

    A local file needs no thread: a lookup takes some 20 microseconds, and a thread would take
    longer to get the interpreter back from a busy loop.
    """

    def __init__(self, journal: Journal) -> None:
        self.remote = journal.remote
        self._journal = journal
        self._thread = ThreadPoolExecutor(1, "lookups")  # starts with the first lookup
        self.in_progress: Counter[int] = Counter()  # the numbers of decisions being looked up

    def decision(self, number: int, callback: Callback, errors: Refusable) -> None:
        """Look up a decision; if that fails, `errors` gets the error."""
        self.in_progress[number] += 1
        self._start(partial(self._journal.decision, number), callback, errors, number)

    def request(self, request: str, since: int, callback: Callback, errors: Refusable) -> None:
        """Look up what was decided for a client's request, not before that time."""
        self._start(partial(self._journal.request, request, since), callback, errors)

    def _start(
        self,
        lookup: Callable[[], Found | None],
        callback: Callback,
        errors: Refusable,
        number: int | None = None,
    ) -> None:
        def finished(done: asyncio.Future[Found | None]) -> None:
            attempt(errors, _report, done, callback)
            if number is not None:
                self.in_progress -= Counter((number,))

        asyncio.get_running_loop().run_in_executor(self._thread, lookup).add_done_callback(finished)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()


def _report(done: asyncio.Future[Found | None], callback: Callable[[Any], None]) -> None:
    try:
        found = done.result()
    except JournalError as error:
        raise unreadable(error) from None
    callback(found)


def unreadable(error: JournalError) -> Unavailable:
    """The error if a lookup failed."""
    return Unavailable(f"the journal cannot be read: {error}")
