"""The learner's signs of life, from a thread of their own.

What a learner writes, it writes by one connection, one thing after the other, and some of it takes
long. So it shows by another connection that it is alive, and finds out there that it was replaced.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import monotonic

from topstory.serving.fleet.inbox import Inbox
from topstory.serving.journal.journal import JournalError

log = logging.getLogger("topstory.serving")

BEAT_SECONDS = 0.2
ANSWER_SECONDS = 0.5  # a beat may take this long; then the connection is made anew
STUCK_SECONDS = 10.0  # an event loop that does not turn for so long is not alive
_BEAT = """
INSERT INTO lease SELECT true, term, 1 FROM meta WHERE term = %s
ON CONFLICT (sole) DO UPDATE SET term = excluded.term,
    beat = CASE WHEN lease.term = excluded.term THEN lease.beat + 1 ELSE 1 END
WHERE lease.term <= excluded.term RETURNING beat
"""


class Heartbeat:
    """Shows that the learner is alive, as long as this process has time and reaches the database.

    As a context: it beats until that is left.
    """

    def __init__(self, url: str, epoch: Callable[[], int], replaced: Callable[[], None]) -> None:
        """`epoch`: of the learner; it has another one after every lost connection.

        `replaced` is called, in the thread, once there is a learner of a later epoch.
        """
        self._inbox = Inbox(url, ANSWER_SECONDS, ANSWER_SECONDS)
        self._epoch, self._replaced = epoch, replaced
        self._turned: float | None = None  # when the event loop last did; None: it has not begun
        self._hasty: object = None  # the connection whose commits do not wait for the disk
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        self._inbox.close()

    def turned(self) -> None:
        """The event loop turns."""
        self._turned = monotonic()

    def _run(self) -> None:
        missed = 0
        while not self._ending.wait(BEAT_SECONDS):
            if self._turned is not None and monotonic() - self._turned > STUCK_SECONDS:
                continue
            try:
                missed = 0 if self._beat() else missed + 1
            except JournalError as error:
                log.warning("no sign of life can be given: %s", error)
            if missed > 1:  # once may be between a new epoch and its announcement here
                self._replaced()
                return

    def _beat(self) -> bool:
        """Whether this is still the learner."""
        connection = self._inbox.connection
        if self._hasty is not connection:  # a beat that is lost in a crash is no loss
            self._inbox.do("SET synchronous_commit = off")
            self._hasty = connection
        return bool(self._inbox.run(_BEAT, self._epoch()))
