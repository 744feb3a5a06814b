"""Group commit: all records that wait share one sync of the disk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from time import perf_counter
from typing import Any

from topstory.serving.api.errors import Unavailable
from topstory.serving.journal.journal import Journal, JournalError
from topstory.serving.journal.records import Entry

log = logging.getLogger("topstory.serving")

LINGER = 0.005  # seconds that records may wait for others, if nobody waits for them
QUICK = 0.002  # seconds: a commit that takes less is waited for; longer ones are worth a thread
PROBE = 1.0  # seconds between two tries to write, while the last one failed
BEHIND = "the state could not follow it: restart the service"

Told = Callable[[str | None], None]  # None: committed; else why not


class Commit:
    """A commit on its way: who waits for it is told how it went, in the order of asking.

    By plain calls: a future for each of them would cost more than the record itself.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[Told] = []

    def then(self, told: Told) -> None:
        """Call `told` when it is over."""
        self._waiting.append(told)

    def __await__(self) -> Generator[Any, None, str | None]:
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.then(lambda failure: None if future.done() else future.set_result(failure))
        return future.__await__()

    def over(self, failure: str | None) -> None:
        """Tell all of them, and let them go."""
        waiting, self._waiting = self._waiting, []
        for told in waiting:
            try:
                told(failure)
            except Exception:
                log.exception("somebody could not be told of a commit")


class Commits:
    """Hands records to the journal, one batch at a time, and tells how it went.

    While one batch is being synced the next one gathers. `applied` is called with each batch
    after its commit, `lost` with one that failed: then nothing of it is in the journal.

    The journal has a thread of its own. One that is not `far` and has just been quick is waited for
    right here: to hand a batch to the thread, and to share the interpreter with it, would take
    longer. One that was slow, or failed, holds up nobody but those who wait for it: the thread.
    """

    def __init__(
        self,
        journal: Journal,
        applied: Callable[[Sequence[Entry]], None],
        lost: Callable[[Sequence[Entry]], None],
        limit: int,
    ) -> None:
        self._journal, self._applied, self._lost, self._limit = journal, applied, lost, limit
        self._far = journal.far
        self._quick = False  # whether the last commit was
        self._others: list[Future[object]] = []  # what else the thread was given
        self._waiting: list[Entry] = []
        self._next: Commit | None = None
        self._awaited = False  # whether somebody waits for the next commit
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "journal")
        self.doubtful: list[Entry] = []  # perhaps committed: the disk failed before it could tell
        self._settling: asyncio.Future[None] | None = None
        self.failing: str | None = None  # why the last commit failed
        self._probing: asyncio.Task[None] | None = None
        self._trying = False
        self.broken = False
        self.seconds = 0.0  # of the last commit
        self.count = 0
        self.in_flight = 0

    @property
    def waiting(self) -> int:
        """Records that are not committed yet."""
        return len(self._waiting) + self.in_flight

    @property
    def room(self) -> int:
        """How many more records may wait."""
        return 0 if self.broken else max(0, self._limit - len(self._waiting))

    def check_state(self) -> None:
        """Refuse, if the state is not what the journal has."""
        if self.broken:
            raise Unavailable("the state could not follow the journal: restart the service")

    def gathering(self) -> Commit:
        """The commit that the next records will be in; refused if there is no room for any."""
        self.check_state()
        if len(self._waiting) >= self._limit:
            raise overloaded()
        if self._next is None:
            self._next = Commit()
        return self._next

    def append(self, entries: Sequence[Entry], awaited: bool = True) -> Commit:
        """Queue records, no more than there is room for; over when they are on disk and applied."""
        commit = self.gathering()
        self._waiting += entries
        self._awaited |= awaited
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return commit

    async def _run(self) -> None:
        while self._waiting:
            # All requests that the loop has ready by now go into one batch; where nobody waits for
            # it, so do those of the next moment.
            await asyncio.sleep(0 if self._awaited else LINGER)
            batch, commit = self._waiting, self._next
            assert commit is not None
            self._waiting, self._next, self._awaited = [], None, False
            self.in_flight = len(batch)
            if self._quick and not self._far and self._undisturbed():
                failure = self._commit(batch)
            else:
                failure = await self._in_thread(self._commit, batch)
            self.in_flight = 0
            if failure is None:
                failure = self._apply(batch)
            else:
                self._lost(batch)
            self.failing = failure
            if failure is not None and self._probing is None and not self.broken:
                self._probing = asyncio.create_task(self._probe())
            commit.over(failure)
        self._task = None

    def _undisturbed(self) -> bool:
        """Whether nothing else is with the journal's thread, and nothing has to be settled."""
        self._others = [each for each in self._others if not each.done()]
        return not (self._others or self._trying or self.doubtful or self._settles())

    async def _probe(self) -> None:
        """Try to write until it works again: who is sent no requests would never find out."""
        while self.failing is not None and not self.broken:
            await asyncio.sleep(PROBE)
            if self._task is None:
                self._trying = True
                failure = await self._in_thread(self._try, [])
                self._trying = False
                self.failing = failure
        self._probing = None

    def _try(self, _: list[Entry]) -> str | None:
        try:
            self._settle_doubt()
            self._journal.probe()
        except Exception as error:
            return str(error)
        return BEHIND if self.broken else None

    def _apply(self, batch: Sequence[Entry]) -> str | None:
        try:
            self._applied(batch)
        except Exception:
            # A state that did not follow the journal must not be served, or saved.
            log.critical("the state could not follow the journal", exc_info=True)
            self.broken = True
            return BEHIND
        return None

    def _commit(self, batch: list[Entry]) -> str | None:
        began, self._quick = perf_counter(), False
        try:
            self._settle_doubt()
            self._journal.append(batch)
        except Exception as error:
            # Whatever it was: nobody may be left waiting, and the next batch is tried.
            if not isinstance(error, JournalError):
                log.exception("a commit failed unexpectedly")
            return self._settle(batch, str(error))
        self.seconds = perf_counter() - began
        self._quick = self.seconds < QUICK
        self.count += 1
        return None

    def _settle(self, batch: list[Entry], failure: str) -> str | None:
        """Whether a batch whose commit failed is in the journal all the same."""
        if self.doubtful:
            return failure  # an older batch is still in doubt: this one was never tried
        try:
            number, _ = self._journal.last()
        except Exception:
            self.doubtful = batch
            return failure
        return None if number >= batch[-1].number else failure

    def settle(self) -> None:
        """Begin to find out what became of a batch in doubt, though no record waits for it."""
        if not self._settles():
            loop = asyncio.get_running_loop()
            self._settling = loop.run_in_executor(self._thread, self._try_to_settle)

    def _settles(self) -> bool:
        return self._settling is not None and not self._settling.done()

    def _try_to_settle(self) -> None:
        with suppress(Exception):  # who asks next tries again
            self._settle_doubt()

    def _settle_doubt(self) -> None:
        if self.doubtful:
            number, _ = self._journal.last()
            if number >= self.doubtful[-1].number:
                self._loop_call(self.doubtful)
            self.doubtful = []  # not before it is applied: till then nobody may take it for lost

    def _loop_call(self, batch: list[Entry]) -> None:
        """Apply a batch late, before any later one."""
        asyncio.run_coroutine_threadsafe(self._late(batch), self._loop).result()

    async def _late(self, batch: list[Entry]) -> None:
        self._apply(batch)

    async def _in_thread(
        self, work: Callable[[list[Entry]], str | None], batch: list[Entry]
    ) -> str | None:
        self._loop = asyncio.get_running_loop()
        return await self._loop.run_in_executor(self._thread, work, batch)

    async def drain(self) -> None:
        """Wait until nothing waits, and nothing is with the journal."""
        while self._task is not None or self._trying or self._settles():
            await asyncio.sleep(0.005)

    async def run(self, work: Callable[[], object]) -> None:
        """Do something else with the journal, between two commits."""
        running = self._thread.submit(work)
        self._others.append(running)  # until it is done, even if nobody waits for it any more
        await asyncio.wrap_future(running)

    def close(self) -> None:
        """No more; first `drain`."""
        if self._probing is not None:
            self._probing.cancel()
        self._thread.shutdown()


def overloaded() -> Unavailable:
    """There is no room for one more record."""
    return Unavailable("too many records wait for the disk", "overloaded")
