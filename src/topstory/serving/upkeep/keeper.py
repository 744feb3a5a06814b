"""What a service does beside answering: it saves its state, and archives what is old."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from topstory.serving.journal.clock import SECOND
from topstory.serving.journal.journal import Journal, JournalError
from topstory.serving.journal.records import Decided
from topstory.serving.service.service import Service
from topstory.serving.state.pool import FOREVER
from topstory.serving.state.snapshots import Picture, Snapshots
from topstory.serving.upkeep.journal_export import NothingToExport, Part, export

DAY = 86_400 * SECOND
GRACE = 60 * SECOND  # a payoff that came in time may still be on its way to the journal
ROUND = 100_000  # decisions archived at a time: deleting them holds up a commit

log = logging.getLogger("topstory.serving")


class Keeper:
    """Takes snapshots now and then; moves old decisions from the journal to log folders."""

    def __init__(self, service: Service, snapshots: Snapshots) -> None:
        self._service, self._snapshots = service, snapshots
        self.number = max(snapshots.numbers(), default=0)  # of the newest snapshot
        self.at = service.clock.now()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(self._service.config.journal.snapshot_seconds)
            try:
                await self.snapshot()
                if self._service.config.journal.archive_days is not None:
                    await self.archive()
            except (OSError, ValueError, JournalError) as error:
                # The journal has everything: a snapshot only makes the next start faster.
                log.error("no snapshot or archive was written: %s", error)
            except Exception:  # the next round is tried all the same
                log.exception("no snapshot or archive was written")

    async def snapshot(self) -> None:
        """Save the state as it is now, if it changed."""
        if self._service.state.number == self.number or self._service.commits.broken:
            return
        picture = Picture.of(self._service.state)
        await asyncio.to_thread(self._snapshots.write, picture)
        self.number, self.at = picture.number, self._service.clock.now()

    async def archive(self) -> int:
        """Move decisions that are old and final to log folders; how many records went.

        Only those that the older snapshot has, with their payoffs: the newer one could be lost,
        and the state could still be made again.
        """
        service = self._service
        days = service.config.journal.archive_days
        kept = self._snapshots.numbers()
        if days is None or len(kept) < 2:
            return 0
        age = max(int(days * DAY), int(service.config.window_seconds * SECOND))
        before = await asyncio.to_thread(self._write, service.clock.now(), age, kept[-1])
        gone: list[int] = []
        if before:
            await service.commits.run(lambda: gone.append(service.journal.prune(before)))
        return sum(gone)

    def _write(self, now: int, age: int, saved: int) -> int:
        """Archive what is old enough; the number of the first record that is not, or 0."""
        journal = self._service.journal.again()
        try:
            unsaved = journal.first_paid_after(saved)
            before = _first_young(journal, now, age, min(saved + 1, unsaved or FOREVER))
            begun = self._begun(journal.pruned())
            if begun is not None:
                # Its folders may be written already: under the same name they are written anew,
                # where those of a larger round would stand beside them, with the same events.
                if begun > before:
                    log.info("the archive's round %d waits for its decisions to be old", begun)
                before = begun if begun <= before else 0
            if before:
                for pool in self._service.state.pools:
                    self._write_pool(journal, pool, before)
            return before
        finally:
            journal.close()

    def _begun(self, pruned: int) -> int | None:
        """The first round whose decisions are still in the journal, though a folder has them."""
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
                log.info("not archived: %s", error)


def _first_young(journal: Journal, now: int, age: int, below: int) -> int:
    """The number after the last decision that is old and final; 0 if there is none to archive."""
    before, old = 0, 0
    for entry, _ in journal.history(below):
        if entry.at >= now - age or old == ROUND:
            break
        if isinstance(entry.record, Decided):
            # By its own window: the configuration's may have been another one then.
            if entry.record.expires >= now - GRACE:
                break
            before, old = entry.number + 1, old + 1
    return before
