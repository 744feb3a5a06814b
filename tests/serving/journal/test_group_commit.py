"""Where a batch is committed: in the event loop if the disk is quick, else in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from topstory.serving.api.errors import Unavailable
from topstory.serving.journal.group_commit import QUICK_SECONDS, GroupCommit
from topstory.serving.journal.journal import JournalError, JournalLost
from topstory.serving.journal.records import Entry, Paid


class Journal:
    """A journal that takes so long by its own clock, and notes what it was given by whom."""

    def __init__(self) -> None:
        self.now, self.seconds, self.fails = 0.0, 0.0, False
        self.remote = False
        self.numbers: list[int] = []
        self.by: list[str] = []

    def append(self, entries: Sequence[Entry]) -> None:
        self.by.append("loop" if threading.current_thread() is threading.main_thread() else "own")
        self.now += self.seconds
        if self.fails:
            raise JournalError("disk I/O error")
        self.numbers += [entry.number for entry in entries]

    def committed(self, entries: Sequence[Entry]) -> bool:
        return entries[-1].number in self.numbers

    def probe(self) -> None:
        """It can be written."""


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Journal:
    made = Journal()
    monkeypatch.setattr("topstory.serving.journal.group_commit.perf_counter", lambda: made.now)
    return made


def commits(journal: Journal, limit: int = 100) -> GroupCommit:
    return GroupCommit(journal, lambda _: None, lambda _: None, limit)  # type: ignore[arg-type]  # the part of it that is used


def entries(first: int, count: int = 1) -> list[Entry]:
    return [Entry(number, 0, Paid(0, 1.0)) for number in range(first, first + count)]


def test_a_quick_disk_commits_in_the_loop_and_a_slow_one_in_its_thread(journal: Journal) -> None:
    async def work() -> None:
        made = commits(journal)
        assert await made.append(entries(1)) is None  # nobody knows how quick it is
        assert await made.append(entries(2)) is None
        journal.seconds = 2 * QUICK_SECONDS
        assert await made.append(entries(3)) is None  # it was quick till now
        assert await made.append(entries(4)) is None
        journal.seconds = 0.0
        assert await made.append(entries(5)) is None  # quick again
        assert await made.append(entries(6)) is None
        assert journal.by == ["own", "loop", "loop", "own", "own", "loop"]
        journal.fails = True
        assert await made.append(entries(7)) is not None
        journal.fails = False
        assert await made.append(entries(8)) is None  # after a failure it has to show it first
        assert journal.by[-2:] == ["loop", "own"]
        assert journal.numbers == [1, 2, 3, 4, 5, 6, 8]
        await made.drain()
        made.close()

    asyncio.run(work())


@pytest.mark.parametrize("awaited", [True, False])
@pytest.mark.parametrize("remote", [True, False])
def test_the_loop_waits_for_no_remote_disk(journal: Journal, remote: bool, awaited: bool) -> None:
    """A quick one costs less than its thread, whether somebody awaits the record or not."""

    async def work() -> None:
        journal.remote = remote
        made = commits(journal)
        for number in range(1, 4):
            await made.append(entries(number), awaited)
        assert journal.by == ["own", *["own" if remote else "loop"] * 2]
        await made.drain()
        made.close()

    asyncio.run(work())


def test_nothing_is_committed_while_something_else_is_done_with_the_journal(
    journal: Journal,
) -> None:
    over = threading.Event()

    async def work() -> None:
        made = commits(journal)
        await made.append(entries(1))
        await made.append(entries(2))
        assert journal.by == ["own", "loop"]
        pruning = asyncio.create_task(made.run(lambda: over.wait(60)))
        await asyncio.sleep(0.01)
        pruning.cancel()  # its thread goes on all the same
        await asyncio.sleep(0)
        coming = made.append(entries(3))
        await asyncio.sleep(0.05)
        assert journal.numbers == [1, 2]
        over.set()
        assert await coming is None
        assert journal.by[2:] == ["own"]
        await made.append(entries(4))
        assert journal.by[3:] == ["loop"]
        made.close()

    asyncio.run(work())


def test_no_more_records_wait_than_are_allowed(journal: Journal) -> None:
    async def work() -> None:
        made = commits(journal, limit=3)
        assert made.room == 3
        coming = made.append(entries(1, 2))
        assert made.room == 1
        made.append(entries(3))
        assert made.room == 0
        with pytest.raises(Unavailable, match="too many records wait"):
            made.append(entries(4))
        assert await coming is None
        assert made.room == 3
        made.close()

    asyncio.run(work())


def test_any_failure_is_reported_and_the_next_commit_is_tried(journal: Journal) -> None:
    async def work() -> None:
        made = commits(journal)
        with pytest.MonkeyPatch.context() as broken:
            broken.setattr(journal, "append", lambda _: 1 / 0)
            assert await made.append(entries(1)) == "division by zero"
        assert made.failing is not None
        assert await made.append(entries(1)) is None
        assert made.failing is None
        await made.drain()
        made.close()

    asyncio.run(asyncio.wait_for(work(), 60))


def test_what_waits_when_the_journal_is_lost_is_not_written(journal: Journal) -> None:
    async def work() -> None:
        made, tried, queued = commits(journal), list[int](), threading.Event()

        def lose(batch: Sequence[Entry]) -> None:
            tried.append(batch[0].number)
            queued.wait(60)
            raise JournalLost("the file is gone")

        with pytest.MonkeyPatch.context() as broken:
            broken.setattr(journal, "append", lose)
            first = made.append(entries(1))
            while made.in_flight == 0:
                await asyncio.sleep(0)
            second = made.append(entries(2))  # while the first is on its way
            queued.set()
            assert [await first, await second] == ["the file is gone"] * 2
        assert tried == [1]
        await made.drain()
        made.close()

    asyncio.run(asyncio.wait_for(work(), 60))
