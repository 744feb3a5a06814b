"""A front end's thread that waits for news from the learner: newer models, answers to calls."""

from __future__ import annotations

import asyncio
import logging
import select
import threading
from collections.abc import Callable
from time import sleep

from topstory.serving.fleet.board import CHANNEL
from topstory.serving.fleet.calls import answers
from topstory.serving.fleet.database_time import DatabaseTime
from topstory.serving.fleet.front.published import PublishedState, PublishedView
from topstory.serving.fleet.inbox import Inbox
from topstory.serving.journal.journal import JournalError
from topstory.serving.workers.wire import Answered

log = logging.getLogger("topstory.serving")

WAIT_SECONDS = 0.5  # without a notification it looks all the same
_MODEL = """
SELECT version, epoch, (extract(epoch FROM at) * 1000000)::bigint, body
FROM model WHERE version > %s
"""


class Listener:
    """Hands news to the event loop."""

    def __init__(
        self,
        inbox: Inbox,
        view: PublishedView,
        time: DatabaseTime,
        node: int,
        answer: Callable[[Answered], None],
    ) -> None:
        self._inbox, self._view, self._time, self._node = inbox, view, time, node
        self._answer = answer
        self._listening: object = None  # the connection that listens
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def first(self) -> PublishedState | None:
        """The newest model, before the event loop runs; None: there is none yet."""
        self._time.measure(self._inbox.connection)
        return self._newer()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Listen until `close`."""
        self._thread = threading.Thread(
            target=self._run, args=(loop,), name="listener", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._ending.is_set():
            try:
                self._wait()
                state = self._newer()
                news = answers(self._inbox, self._node)
            except JournalError as error:
                log.error("no news from the learner: %s", error)
                sleep(WAIT_SECONDS)
                continue
            except Exception:
                log.exception("the published model cannot be used")
                sleep(WAIT_SECONDS)
                continue
            if state is not None:
                # Waited for: the next one builds on what is installed.
                asyncio.run_coroutine_threadsafe(self._install(state), loop).result()
            for each in news:
                loop.call_soon_threadsafe(self._answer, each)

    def _wait(self) -> None:
        connection = self._inbox.connection
        if self._listening is not connection:
            self._inbox.do(f"LISTEN {CHANNEL}")
            self._listening = connection
            return
        self._time.measure(connection)
        select.select([connection.fileno()], [], [], WAIT_SECONDS)

    def _newer(self) -> PublishedState | None:
        rows = self._inbox.run(_MODEL, self._view.version)
        if not rows:
            return None
        version, epoch, at, body = rows[0]
        return self._view.opened(int(version), int(epoch), int(at), bytes(body))

    async def _install(self, state: PublishedState) -> None:
        self._view.install(state)
