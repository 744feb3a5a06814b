"""The learner's side of the published model: a row of the database instead of mapped memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from topstory.serving.journal.journal import JournalError, JournalLost
from topstory.serving.journal.postgres.journal import PostgresJournal

log = logging.getLogger("topstory.serving")

CHANNEL = "topstory"  # where front ends listen
_PUBLISH = """
INSERT INTO model VALUES (true, 1, %s, clock_timestamp(), %s) ON CONFLICT (sole) DO UPDATE
SET version = model.version + 1, epoch = excluded.epoch, at = excluded.at, body = excluded.body
"""
_ANNOUNCE = f"NOTIFY {CHANNEL}"

RunWithJournal = Callable[[Callable[[], object]], Awaitable[None]]


class Board:
    """Takes what a `Publisher` writes, and publishes the newest of it.

    One row is written at a time, between two commits of the journal, in a transaction that checks
    the owner's epoch: a learner that was replaced publishes nothing.
    """

    next = 0  # there is one buffer

    def __init__(
        self, journal: PostgresJournal, run: RunWithJournal, replaced: Callable[[str], None]
    ) -> None:
        """`replaced` is called if this is no longer the learner, with the reason."""
        self._journal, self._run, self._replaced = journal, run, replaced
        self._buffer = bytearray(4096)
        self._length = 0
        self._body: bytes | None = None  # that waits to be published
        self._task: asyncio.Task[None] | None = None

    def begin(self, length: int) -> bytearray:
        """The buffer, at least this long."""
        if len(self._buffer) < length:
            self._buffer = bytearray(2 * length)  # arrays may still use the other one
        self._length = length
        return self._buffer

    def publish(self) -> None:
        """Publish what was written, after the one that is on its way."""
        self._body = bytes(self._buffer[: self._length])
        if self._task is None:
            self._task = asyncio.create_task(self._send())

    async def _send(self) -> None:
        try:
            while self._body is not None:
                body, self._body = self._body, None
                try:
                    await self._run(partial(self._write, body))
                except JournalLost as error:
                    self._replaced(str(error))
                    return
                except JournalError as error:  # the next one comes within a second
                    log.error("the model could not be published: %s", error)
        finally:
            self._task = None

    def _write(self, body: bytes) -> None:
        self._journal.run_as_owner((_PUBLISH, (self._journal.epoch, body)), (_ANNOUNCE, ()))
