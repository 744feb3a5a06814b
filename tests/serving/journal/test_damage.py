"""Damage is found: a flipped bit, a missing record, a journal without its end or its file."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.cli.running import run as command
from tests.serving.journal.test_unwritable import ready
from tests.serving.making import Made, add_articles, config, folded, run, visits
from tests.serving.processes import Served, eventually

import topstory as ts
from topstory.serving.api.errors import ApiError, Unavailable
from topstory.serving.api.messages import ArticleRequest, DecideRequest, FeedbackRequest
from topstory.serving.config.schema import Config
from topstory.serving.journal import group_commit
from topstory.serving.journal.connect import own_journal
from topstory.serving.journal.journal import DamagedJournal, JournalError, JournalLost
from topstory.serving.journal.records import Entry, Paid, TailLost
from topstory.serving.journal.sqlite import SqliteJournal
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.data_folder import StartOptions, open_folder
from topstory.serving.state.recovery.lost_tail import LostTail
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.upkeep.keeper import Keeper
from topstory.serving.upkeep.verification import verify

USER = (0.2, 0.3, 0.5, 1.0)
FLIPS = 120
FOUND = (JournalError, ValueError, sqlite3.Error)


async def traffic(service: Service) -> str:
    await add_articles(service)
    for seed in range(4):
        await visits(service, 15, seed)
    return service.state.fingerprint()


@pytest.fixture
def settings(tmp_path: Path) -> Config:
    return config(tmp_path / "data")


def changed(settings: Config, *statements: str) -> None:
    path = Path(settings.data) / "journal.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_every_flipped_bit_is_found_or_does_no_harm(settings: Config, tmp_path: Path) -> None:
    before = run(settings, traffic)
    path = Path(settings.data) / "journal.sqlite"
    changed(settings, "PRAGMA wal_checkpoint(TRUNCATE)")
    content = path.read_bytes()
    random = np.random.default_rng(1)
    found = 0
    for position in random.integers(len(content), size=FLIPS):
        spoilt = bytearray(content)
        spoilt[position] ^= 1 << int(random.integers(8))
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        path.write_bytes(spoilt)
        try:
            assert folded(settings).fingerprint() == before
        except FOUND:
            found += 1
            with pytest.raises(FOUND):
                verify(settings.data)
    path.write_bytes(content)
    assert folded(settings).fingerprint() == before
    assert verify(settings.data).records == folded(settings).number
    assert 0.3 * FLIPS < found < FLIPS  # free space is no harm


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM journal WHERE number = 30",
        "DELETE FROM journal WHERE number > 30",
        "UPDATE journal SET at = at + 1 WHERE number = 30",
        "UPDATE journal SET number = 1000 WHERE number = 30",
        "UPDATE journal SET request = 'another' WHERE number = 30",
        "UPDATE journal SET kind = 'Placed' WHERE kind = 'Decided' AND number < 40",
        "UPDATE journal SET body = zeroblob(9) WHERE number = 30",
        "UPDATE journal SET crc = crc + 1 WHERE number = 30",
        "UPDATE journal SET crc = NULL WHERE number = 30",
        "UPDATE journal SET chain = zeroblob(16) WHERE chain IS NOT NULL AND number > 30",
        "UPDATE meta SET mark = zeroblob(16)",
    ],
)
def test_the_command_names_what_is_damaged(settings: Config, harm: str) -> None:
    run(settings, traffic)
    whole = command("verify-journal", settings.data)
    assert "all are as they were written" in whole.stdout
    changed(settings, harm)
    failed = command("verify-journal", settings.data, status=1)
    assert "record" in failed.stderr
    assert "restore the last good backup" in " ".join(failed.stderr.split())


def test_a_start_refuses_to_learn_from_a_damaged_record(settings: Config) -> None:
    run(settings, traffic)
    changed(settings, "UPDATE journal SET body = zeroblob(length(body)) WHERE number = 30")
    with pytest.raises(DamagedJournal, match="record 30 is damaged: its checksum does not match"):
        Made(settings)


def test_a_payoff_of_a_damaged_decision_is_refused(settings: Config) -> None:
    async def first(service: Service) -> str:
        await add_articles(service, 2)
        made = await service.decide(DecideRequest(user=USER))
        keeper = Keeper(service, Snapshots(Path(settings.data) / "snapshots"))
        await keeper.snapshot()
        return made.decision

    async def second(service: Service) -> None:
        with pytest.raises(Unavailable, match=r"record \d+ is damaged"):
            await service.feedback(FeedbackRequest(decision, 1.0))

    decision = run(settings, first)
    changed(settings, "UPDATE journal SET body = zeroblob(length(body)) WHERE kind = 'Decided'")
    run(settings, second)


def test_what_is_archived_leaves_a_chain_that_can_be_checked(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal.sqlite", own=True)
    for first in range(1, 100, 4):
        journal.append([Entry(n, n, TailLost(n)) for n in range(first, first + 3)])
        journal.append([Entry(first + 3, first + 3, Paid(first, 1.0))])
    assert journal.check() == 100
    assert journal.prune(50) == 13
    assert journal.check() == 87
    assert journal.checkpoint() == (52, journal.mark(52))
    journal.append([Entry(101, 101, Paid(1000, 1.0))])
    journal.close()
    again = SqliteJournal(tmp_path / "journal.sqlite", own=True)
    again.append([Entry(102, 102, Paid(1001, 1.0))])
    assert again.check() == 89
    assert again.prune(2_000) == 14
    again.append([Entry(103, 103, Paid(1002, 1.0))])
    assert again.check() == 76
    again.close()


# -- the end is lost --


def lose_tail(settings: Config, kept: int) -> None:
    """The journal as it was when it had so many records: a copy that was behind."""
    changed(settings, f"DELETE FROM journal WHERE number > {kept}")


def lost_options() -> StartOptions:
    return StartOptions(accept_lost_tail=True)


@pytest.mark.parametrize("known_by", ["head", "snapshots"])
def test_a_journal_without_its_end_is_refused_until_the_operator_accepts(
    settings: Config, known_by: str
) -> None:
    async def work(service: Service) -> int:
        await traffic(service)
        await Keeper(service, Snapshots(data / "snapshots")).snapshot()
        return service.state.number

    data = Path(settings.data)
    run(settings, _first_half)
    kept = Snapshots(data / "snapshots").numbers()[0]
    number = run(settings, work)
    if known_by == "head":
        shutil.rmtree(data / "snapshots" / f"{number:012d}")
    else:
        (data / "head").unlink()
    lose_tail(settings, kept)
    for _ in range(2):
        with pytest.raises(LostTail, match=f"ends at record {kept}, but record {number} was"):
            Made(settings)
    folder = open_folder(settings, lost_options())
    assert (folder.state.number, folder.journal.last()[0]) == (number + 1, number + 1)
    folder.close()
    made = Made(settings)  # it is in the journal
    assert made.service.state.number == number + 1
    made.crash()
    assert verify(settings.data).last == number + 1


async def _first_half(service: Service) -> None:
    await traffic(service)
    await Keeper(service, Snapshots(Path(service.config.data) / "snapshots")).snapshot()


def test_a_journal_that_went_on_without_its_end_is_not_taken_for_the_same(
    settings: Config, tmp_path: Path
) -> None:
    """As when another machine goes on from a copy that was behind, and this one comes back."""
    run(settings, _first_half)
    path, copy = Path(settings.data) / "journal.sqlite", tmp_path / "behind.sqlite"
    changed(settings, "PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copyfile(path, copy)
    run(settings, traffic)
    mine = Snapshots(Path(settings.data) / "snapshots").numbers()
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    shutil.copyfile(copy, path)
    aside = tmp_path / "head"
    (Path(settings.data) / "head").rename(aside)

    async def more(service: Service) -> None:
        await traffic(service)
        await visits(service, 30, 99)

    run(settings, more)
    aside.rename(Path(settings.data) / "head")
    with pytest.raises(LostTail, match="is not the one that was committed"):
        Made(settings)
    assert Snapshots(Path(settings.data) / "snapshots").numbers() == mine


# -- the file is gone --


def test_a_missing_journal_is_not_begun_anew(settings: Config) -> None:
    run(settings, _first_half)
    for path in Path(settings.data).glob("journal.sqlite*"):
        path.unlink()
    with pytest.raises(FileNotFoundError, match=r"journal is missing.*restore it from a backup"):
        Made(settings)
    assert not (Path(settings.data) / "journal.sqlite").exists()
    (Path(settings.data) / "journal.sqlite").touch()  # nor is an empty one
    with pytest.raises(LostTail, match="ends at record 0"):
        Made(settings)


def delete(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    shutil.copyfile(path, path.with_name("copy"))
    path.with_name("copy").rename(path)


@pytest.mark.parametrize("harm", [delete, replace])
def test_a_journal_that_is_deleted_takes_no_more_records(
    settings: Config, harm: Callable[[Path], None]
) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 2)
        (made, *_) = await visits(service, 3, paid=0.0)
        harm(Path(settings.data) / "journal.sqlite")
        for _ in range(2):
            with pytest.raises(Unavailable, match="was deleted or replaced"):
                await service.feedback(FeedbackRequest(made.decision, 1.0))
            with pytest.raises(Unavailable, match="was deleted or replaced"):
                await service.decide(DecideRequest(user=USER))

    run(settings, work)


def test_a_journal_that_was_moved_away_and_back_is_whole(settings: Config, tmp_path: Path) -> None:
    run(settings, _first_half)
    folder, away = Path(settings.data), tmp_path / "away"
    away.mkdir()
    with closing(own_journal(settings)) as journal:
        last, at = journal.last()
        files = list(folder.glob("journal.sqlite*"))
        for each in files:
            each.rename(away / each.name)
        for number in (last + 1, last + 2):  # SQLite takes them all the same
            with pytest.raises(JournalLost, match="was deleted or replaced"):
                journal.append([Entry(number, at, Paid(number, 1.0))])
        for each in files:
            (away / each.name).rename(each)
    with closing(own_journal(settings)) as journal:
        verify(settings.data)
        journal.append([Entry(journal.last()[0] + 1, at, Paid(0, 1.0))])
        verify(settings.data)


def test_an_idle_service_notices_that_its_journal_was_deleted(tmp_path: Path) -> None:
    with (
        Served(tmp_path) as served,
        ts.Client(served.url, served.key, retries=0) as client,
    ):
        client.put_article("front", "only", ArticleRequest())
        (served.data / "journal.sqlite").unlink()
        eventually(lambda: not ready(served))
        with pytest.raises(ApiError, match="was deleted or replaced") as refused:
            client.decide(USER)
        assert refused.value.status == 503


# -- relaxed decisions --


def test_relaxed_decisions_stop_with_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "PROBE_SECONDS", 60)
    settings = config(tmp_path, journal={"decisions": "relaxed"})

    async def work(service: Service) -> None:
        await add_articles(service, 2)
        await visits(service, 3)
        full = JournalError("disk full")

        def fail(entries: object) -> None:
            raise full

        with monkeypatch.context() as broken:
            broken.setattr(service.journal, "append", fail)
            await service.decide(DecideRequest(user=USER))  # of the last moment
            await service.commits.drain()
            for _ in range(3):
                with pytest.raises(Unavailable, match="disk full; nothing was changed"):
                    await service.decide(DecideRequest(user=USER))
        assert len(service.recent) == 3

    run(settings, work)
    assert sum(map(sum, folded(settings).pools["front"].tally.shows)) == 3
