"""Group commit: all records that wait share one sync of the disk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic, perf_counter
from typing import Any, TypeVar

import msgspec

from topstory.serving.api.errors import Unavailable
from topstory.serving.journal.journal import Journal, JournalError, JournalLost
from topstory.serving.journal.records import Entry

log = logging.getLogger("topstory.serving")
T = TypeVar("T")

LINGER_SECONDS = 0.005  # records without a waiting request may wait this long for others
QUICK_SECONDS = 0.002  # shorter commits run in the event loop; longer ones are worth a thread
PROBE_SECONDS = 1.0  # between two attempts to write, while the last one failed
BEAT_SECONDS = 1.0  # between two checks that the journal is there, and still ours
STUCK_SECONDS = 1.0  # a commit that takes longer counts as failing until it is done
STATE_BEHIND = "the state does not match the journal: restart the service"

Callback = Callable[[str | None], None]  # None: committed; else why not


class Commit(msgspec.Struct, eq=False):
    """A commit on its way. Callbacks run in the order in which they were added.

    Plain calls: a future for each of them would cost more than the record itself.
    """

    callbacks: list[Callback] = []  # msgspec gives each commit a list of its own

    def then(self, callback: Callback) -> None:
        """Call this when the commit has succeeded or failed."""
        self.callbacks.append(callback)

    def __await__(self) -> Generator[Any, None, str | None]:
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.then(lambda failure: None if future.done() else future.set_result(failure))
        return future.__await__()

    def finish(self, failure: str | None) -> None:
        """Run the callbacks, and drop them."""
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            try:
                callback(failure)
            except Exception:
                log.exception("a callback failed after a commit")


class GroupCommit:
    """Hands records to the journal, one batch at a time, and reports how each batch went.

    While one batch is being synced the next one gathers. `applied` is called with each batch after
    its commit, `lost` with one that failed: then nothing of it is in the journal.

    The journal has a thread of its own. If the journal is not remote and its last commit was
    quick, the event loop commits by itself: handing a batch to the thread, and sharing the
    interpreter with it, would take longer. After a slow or failed commit the thread is used, so
    that only those wait who wait for that commit.
    """

    def __init__(
        self,
        journal: Journal,
        applied: Callable[[Sequence[Entry]], None],
        lost: Callable[[Sequence[Entry]], None],
        limit: int,
    ) -> None:
        self._journal, self._applied, self._lost, self._limit = journal, applied, lost, limit
        self._remote = journal.remote
        self._quick = False  # whether the last commit was
        self._jobs: set[Future[Any]] = set()  # what the thread was given, and has not done
        self._waiting: list[Entry] = []
        self._next: Commit | None = None
        self._awaited = False  # whether a request waits for the next commit
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "journal")
        # A batch that may be in the journal: the disk failed before the outcome was known.
        self.unconfirmed: list[Entry] = []
        self._resolving: Future[None] | None = None
        self._failure: str | None = None  # why the last commit failed
        self._began: float | None = None  # when the thread began what it does, if it does anything
        self._probing: asyncio.Task[None] | None = None
        self.halted: str | None = None  # why nothing may be written until a restart
        self.seconds = 0.0  # of the last commit
        self.count = 0
        self.in_flight = 0

    @property
    def waiting(self) -> int:
        """Records that are not committed yet."""
        return len(self._waiting) + self.in_flight

    @property
    def failing(self) -> str | None:
        """Why nothing can be committed now; None if it can."""
        if self.halted is not None or self._failure is not None:
            return self.halted or self._failure
        began = self._began
        if began is not None and monotonic() - began > STUCK_SECONDS:
            return "the journal has not answered for more than a second"
        return None

    @property
    def room(self) -> int:
        """How many more records may wait."""
        return 0 if self.halted else max(0, self._limit - len(self._waiting))

    def check_state(self) -> None:
        """Raise Unavailable if the state is not what the journal says, or no longer ours."""
        if self.halted is not None:
            raise Unavailable(self.halted)

    def append(self, entries: Sequence[Entry], awaited: bool = True) -> Commit:
        """Queue records, no more than there is room for; finished once on disk and applied.

        Raises Unavailable if there is no room for any; or if nobody awaits them, and commits fail:
        then nothing would keep them.
        """
        if self.halted is not None:
            self.check_state()
        if not awaited and (failure := self.failing) is not None:
            raise Unavailable(f"the journal cannot be written: {failure}; nothing was changed")
        if len(self._waiting) >= self._limit:
            raise overloaded()
        if self._next is None:
            self._next = Commit()
        self._waiting += entries
        self._awaited |= awaited
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return self._next

    async def _run(self) -> None:
        while self._waiting:
            # All requests that the loop has ready by now go into one batch; if nobody waits for
            # it, so do those of the next moment.
            await asyncio.sleep(0 if self._awaited else LINGER_SECONDS)
            batch, commit = self._waiting, self._next
            assert commit is not None
            self._waiting, self._next, self._awaited = [], None, False
            self.in_flight = len(batch)
            if self._quick and not (self._remote or self._jobs or self.unconfirmed):
                failure = self._commit(batch)
            else:
                failure = await self._in_thread(self._commit, batch)
            self.in_flight = 0
            if failure is not None:
                self._lost(batch)
            else:
                try:
                    self._applied(batch)
                except Exception:
                    failure = self._fall_behind()
            if failure is not None or self._failure is not None:
                self._report(failure)
            commit.finish(failure)
        self._task = None

    def _report(self, failure: str | None) -> None:
        """How the last attempt to write went."""
        self._failure = failure
        if failure is not None and self._probing is None and self.halted is None:
            self._probing = asyncio.create_task(self._probe())

    async def watch(self) -> None:
        """While nothing is committed, check once a second that the journal is there, and ours."""
        while self.halted is None:
            await asyncio.sleep(BEAT_SECONDS)
            if self._task is None and self._probing is None and not self._jobs:
                failure = await self._in_thread(self._beat) if self._remote else self._beat()
                if failure is not None:
                    self._report(failure)

    def _beat(self) -> str | None:
        return self._attempt(self._journal.beat)

    def _attempt(self, work: Callable[[], None]) -> str | None:
        """Do something with the journal; returns why it failed."""
        try:
            work()
        except JournalLost as error:
            self.halt(str(error))
        except Exception as error:
            return str(error)
        return self.halted

    def halt(self, reason: str) -> None:
        """Write nothing any more: for any thread."""
        if self.halted is None:
            log.critical("the service stops writing: %s", reason)
            self.halted = reason

    async def _probe(self) -> None:
        """Try to write until it works again: a service that gets no requests would never know."""
        while self._failure is not None and self.halted is None:
            await asyncio.sleep(PROBE_SECONDS)
            if self._task is None:
                self._failure = await self._in_thread(self._attempt, self._try)
        self._probing = None

    def _try(self) -> None:
        self._resolve_now()
        self._journal.probe()

    def _fall_behind(self) -> str:
        """A state that does not match the journal must not be served, or saved."""
        log.critical("a committed batch could not be applied to the state", exc_info=True)
        self.halt(STATE_BEHIND)
        return STATE_BEHIND

    def _commit(self, batch: list[Entry]) -> str | None:
        if self.halted is not None:  # since it was queued
            return self.halted
        began, self._quick = perf_counter(), False
        try:
            if self.unconfirmed:
                self._resolve_now()
            self._journal.append(batch)
        except JournalLost as error:
            self.halt(str(error))
            return str(error)
        except Exception as error:
            # Whatever it was: all who wait get an answer, and the next batch is tried.
            if not isinstance(error, JournalError):
                log.exception("a commit failed unexpectedly")
            return self._check(batch, str(error))
        self.seconds = perf_counter() - began
        self._quick = self.seconds < QUICK_SECONDS
        self.count += 1
        return None

    def _check(self, batch: list[Entry], failure: str) -> str | None:
        """Whether a batch whose commit failed is in the journal all the same."""
        if self.unconfirmed:
            return failure  # an older batch is still unconfirmed: this one was never tried
        try:
            return None if self._journal.committed(batch) else failure
        except JournalLost as error:
            self.halt(str(error))
        except Exception:
            self.unconfirmed = batch
        return failure

    def resolve(self) -> None:
        """Begin to find out what became of the unconfirmed batch, though no record waits."""
        if self._resolving is None or self._resolving.done():
            self._resolving = self._submit(self._try_to_resolve)

    def _try_to_resolve(self) -> None:
        self._attempt(self._resolve_now)  # if it fails, the next request tries again

    def _resolve_now(self) -> None:
        if self.unconfirmed:
            if self._journal.committed(self.unconfirmed):
                self._apply_in_loop(self.unconfirmed)
            self.unconfirmed = []  # not before it is applied: until then it must not count as lost

    def _apply_in_loop(self, batch: list[Entry]) -> None:
        """Apply a batch late, before any later one."""
        asyncio.run_coroutine_threadsafe(self._apply_late(batch), self._loop).result()

    async def _apply_late(self, batch: list[Entry]) -> None:
        try:
            self._applied(batch)
        except Exception:
            self._fall_behind()

    def _submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        """Give the thread something to do."""
        self._loop = asyncio.get_running_loop()
        job = self._thread.submit(work, *arguments)
        self._jobs.add(job)  # until it is done, even if its caller no longer waits
        job.add_done_callback(self._jobs.discard)
        return job

    def _timed(self, work: Callable[..., T], *arguments: Any) -> T:
        self._began = monotonic()
        try:
            return work(*arguments)
        finally:
            self._began = None

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.wrap_future(self._submit(self._timed, work, *arguments))

    async def drain(self) -> None:
        """Wait until nothing waits, and the journal's thread is idle."""
        while self._task is not None or self._jobs:
            await asyncio.sleep(0.005)

    async def run(self, work: Callable[[], object]) -> None:
        """Do something else with the journal, between two commits."""
        await asyncio.wrap_future(self._submit(work))  # however long it takes

    def close(self) -> None:
        """End the thread; call `drain` first."""
        if self._probing is not None:
            self._probing.cancel()
        self._thread.shutdown()


def overloaded() -> Unavailable:
    """The error if there is no room for one more record."""
    return Unavailable("too many records wait for the disk", "overloaded")
