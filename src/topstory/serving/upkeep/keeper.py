"""Background work of a service: it saves snapshots, and archives old decisions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from topstory.serving.journal.clock import SECOND
from topstory.serving.journal.clock_file import CLOCK, note
from topstory.serving.journal.journal import Journal, JournalError
from topstory.serving.journal.records import Decided
from topstory.serving.service.service import Service
from topstory.serving.state.pool import FOREVER
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.state.state_copy import StateCopying
from topstory.serving.upkeep.journal_export import NothingToExport, Part, export

DAY = 86_400 * SECOND
PAYOFF_GRACE = 60 * SECOND  # a payoff received in time may not be in the journal yet
MAX_ARCHIVED_AT_ONCE = 100_000  # decisions: deleting them delays a commit

log = logging.getLogger("topstory.serving")


class Keeper:
    """Takes snapshots, and moves old decisions from the journal to log folders."""

    def __init__(self, service: Service, snapshots: Snapshots) -> None:
        self._service, self._snapshots = service, snapshots
        self.number = max(snapshots.numbers(), default=0)  # of the newest snapshot
        self.at = service.clock.now()

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Work in the background while the service runs; at the end commit, and save the state."""
        service = self._service
        tasks = [asyncio.create_task(work) for work in (self.run(), service.commits.watch())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await service.commits.drain()
            try:
                await self.snapshot()
            except OSError as error:  # nothing is lost: the next start only takes longer
                log.error("could not write the last snapshot: %s", error)
            await service.commits.drain()
            await self.note_time()
            service.close()
            log.info("stopped at record %d", service.state.number)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await asyncio.sleep(self._service.config.journal.snapshot_seconds)
            try:
                await self.note_time()
                await self.snapshot()
                # However much comes in between two snapshots, as much goes out.
                while await self.archive() >= MAX_ARCHIVED_AT_ONCE:
                    await asyncio.sleep(0)
            except (OSError, ValueError, JournalError) as error:
                # Nothing is lost: a snapshot only makes the next start faster.
                log.error("could not write a snapshot or archive: %s", error)
            except Exception:  # the next round may succeed
                log.exception("could not write a snapshot or archive")

    async def note_time(self) -> None:
        """Leave a sign of life: the next start then knows what time it can be."""
        path = Path(self._service.config.data) / CLOCK
        await asyncio.to_thread(note, path, self._service.clock.now())

    async def snapshot(self) -> None:
        """Save the state, if it has changed."""
        if self._service.state.number == self.number or self._service.commits.halted:
            return
        with StateCopying(self._service.state) as copying:
            while copying.step():
                await asyncio.sleep(0)
        copy = copying.copy
        await asyncio.to_thread(self._snapshots.write, copy)
        self.number, self.at = copy.number, self._service.clock.now()

    async def archive(self) -> int:
        """Move old, final decisions to log folders; returns how many records were moved.

        Only decisions that the older snapshot has, with their payoffs, are moved: if the newer
        snapshot is lost, the state can still be rebuilt.
        """
        service = self._service
        days = service.config.journal.archive_days
        kept = self._snapshots.numbers()
        if days is None or len(kept) < 2:
            return 0
        age = max(int(days * DAY), int(service.config.window_seconds * SECOND))
        before = await asyncio.to_thread(self._write, service.clock.now(), age, kept[-1])
        moved: list[int] = []
        if before:
            await service.commits.run(lambda: moved.append(service.journal.prune(before)))
        return sum(moved)

    def _write(self, now: int, age: int, saved: int) -> int:
        """Archive what is old enough; returns the first record number that is not, or 0."""
        journal = self._service.journal.reopen()
        try:
            unsaved = journal.first_paid_after(saved)
            before = _first_young(journal, now, age, min(saved + 1, unsaved or FOREVER))
            begun = self._begun(journal.pruned())
            if begun is not None:
                # An unfinished round is repeated under the same names. A larger one would leave its
                # folders beside new ones, with the same events.
                if begun > before:
                    log.info("round %d of the archive waits until its decisions are old", begun)
                before = begun if begun <= before else 0
            if before:
                for pool in self._service.state.pools:
                    self._write_pool(journal, pool, before)
            return before
        finally:
            journal.close()

    def _begun(self, pruned: int) -> int | None:
        """The first round with a folder whose decisions are still in the journal."""
        folders = (Path(self._service.config.data) / "archive").glob("*/*-*")
        numbers = [folder.name.partition("-")[0] for folder in folders]
        return min(
            (n for n in map(int, filter(str.isdecimal, numbers)) if n > pruned), default=None
        )

    def _write_pool(self, journal: Journal, pool: str, before: int) -> None:
        folder = Path(self._service.config.data) / "archive" / pool
        parts: tuple[Part, ...] = ("all", "uniform")
        for part in parts:
            try:
                export(journal, folder / f"{before:012d}-{part}", pool, part, before=before)
            except NothingToExport as error:
                log.info("nothing to archive: %s", error)


def _first_young(journal: Journal, now: int, age: int, below: int) -> int:
    """The number after the last decision that is old and final; 0 if there is none."""
    before, old = 0, 0
    for entry, _ in journal.history(below):
        if entry.at >= now - age or old == MAX_ARCHIVED_AT_ONCE:
            break
        if isinstance(entry.record, Decided):
            # By its own window: the configured one may have changed since.
            if entry.record.expires >= now - PAYOFF_GRACE:
                break
            before, old = entry.number + 1, old + 1
    return before
