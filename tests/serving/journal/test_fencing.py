"""One owner at a time: a commit carries its owner's epoch, and its mark says whose it was."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import psycopg
import pytest
from tests.serving.making import Made, add_articles, config, folded, run, visits

from topstory.serving.api.errors import Unavailable
from topstory.serving.api.messages import DecideRequest, FeedbackRequest
from topstory.serving.config.schema import Config
from topstory.serving.journal import group_commit
from topstory.serving.journal.connect import own_journal
from topstory.serving.journal.journal import Journal, JournalError, JournalLost
from topstory.serving.journal.records import Entry, Paid, TailLost
from topstory.serving.service.service import Service

USER = (0.2, 0.3, 0.5, 1.0)


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Config:
    if request.param == "sqlite":
        return config(tmp_path)
    url = request.getfixturevalue("url")
    return config(tmp_path, journal={"url": url, "lock_seconds": 0.3})


def usurped(settings: Config) -> None:
    """Another owner, who got in though the first is alive: the next epoch."""
    if settings.journal.url is None:
        path = Path(settings.data) / "journal.sqlite"
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE meta SET epoch = epoch + 1")
    else:
        with psycopg.connect(settings.journal.url, autocommit=True) as other:
            other.execute("UPDATE topstory.meta SET term = term + 1")


def test_an_owner_that_was_replaced_writes_nothing_and_acknowledges_nothing(
    settings: Config,
) -> None:
    async def work(service: Service) -> int:
        await add_articles(service, 2)
        (made, *_) = await visits(service, 4, paid=0.0)
        last = service.journal.last()[0]
        usurped(settings)
        for _ in range(2):
            with pytest.raises(Unavailable, match="has taken over this journal"):
                await service.feedback(FeedbackRequest(made.decision, 1.0))
            with pytest.raises(Unavailable, match="has taken over this journal"):
                await service.decide(DecideRequest(user=USER))
            with pytest.raises(Unavailable, match="has taken over this journal"):
                await service.remove_article("front", "article-0")
        assert service.commits.failing is not None
        return last

    assert run(settings, work) == _last(settings)


def test_a_replaced_owner_makes_no_relaxed_decisions_but_those_of_the_last_moment(
    settings: Config,
) -> None:
    relaxed = msgspec.structs.replace(settings.journal, decisions="relaxed")

    async def work(service: Service) -> int:
        await add_articles(service, 2)
        await visits(service, 4, paid=0.0)
        await service.commits.drain()
        last = service.journal.last()[0]
        usurped(settings)
        await service.decide(DecideRequest(user=USER))  # nobody knows it yet
        await service.commits.drain()
        for _ in range(3):
            with pytest.raises(Unavailable, match="has taken over this journal"):
                await service.decide(DecideRequest(user=USER))
        return last

    assert run(msgspec.structs.replace(settings, journal=relaxed), work) == _last(settings)


def _last(settings: Config) -> int:
    with closing(own_journal(settings)) as journal:
        return journal.last()[0]


def test_a_replaced_owner_cannot_prune_or_probe(settings: Config) -> None:
    made = Made(settings)
    usurped(settings)
    for work in (
        lambda: made.folder.journal.prune(1),
        made.folder.journal.probe,
    ):
        with pytest.raises(JournalLost, match="has taken over"):
            work()
    made.crash()


def append_by_another(settings: Config, number: int) -> None:
    """A record of that number, by an owner of the next epoch."""
    usurped(settings)
    columns = "number, at, kind, decision, body, crc, chain"
    values = (number, 1, "Paid", 7, b"body", 0, bytes(16))
    if settings.journal.url is None:
        path = Path(settings.data) / "journal.sqlite"
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"INSERT INTO journal ({columns}) VALUES (?,?,?,?,?,?,?)", values)
    else:
        with psycopg.connect(settings.journal.url, autocommit=True) as other:
            other.execute(
                f"INSERT INTO topstory.journal ({columns}) VALUES (%s, %s, %s, %s, %s, %s, %s)",
                values,
            )


def test_a_record_of_the_same_number_does_not_confirm_a_commit(
    settings: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit fails, and before anybody looks, another owner has used the number."""
    monkeypatch.setattr(group_commit, "PROBE_SECONDS", 60)

    async def work(service: Service) -> None:
        await add_articles(service, 2)
        made = await service.decide(DecideRequest(user=USER))

        def fail(entries: list[Entry]) -> None:
            append_by_another(settings, entries[-1].number)
            raise JournalError("disk I/O error")

        monkeypatch.setattr(service.journal, "append", fail)
        before = service.state.fingerprint()
        with pytest.raises(Unavailable):
            await service.feedback(FeedbackRequest(made.decision, 1.0))
        assert service.state.fingerprint() == before

    run(settings, work)


def test_a_commit_that_arrived_is_confirmed_by_its_own_mark(settings: Config) -> None:
    made = Made(settings)
    journal: Journal = made.folder.journal
    entries = [Entry(journal.last()[0] + 1, 1, Paid(7, 1.0))]
    assert not journal.committed(entries)
    journal.append(entries)
    assert journal.committed(entries)
    assert journal.head.number == entries[-1].number
    other = [Entry(entries[-1].number, 1, Paid(8, 1.0)), Entry(99, 1, Paid(9, 1.0))]
    assert not journal.committed(other)
    made.crash()


def test_deleting_the_lock_file_lets_no_second_service_in(tmp_path: Path) -> None:
    made = Made(config(tmp_path))
    (tmp_path / "lock").unlink()
    with pytest.raises(BlockingIOError, match="another process serves"):
        Made(config(tmp_path))
    made.crash()


def test_two_owners_of_one_file_acknowledge_only_what_is_kept(tmp_path: Path) -> None:
    """Even if all locks fail, as on a network disk: the newer owner is the only one."""
    settings = config(tmp_path)

    async def work(service: Service) -> None:
        await add_articles(service, 2)
        await visits(service, 5)
        with closing(own_journal(settings)) as second:
            acknowledged = second.last()[0]
            with pytest.raises(Unavailable, match="has taken over"):
                await visits(service, 5)
            second.append([Entry(acknowledged + 1, second.last()[1], TailLost(acknowledged))])

    run(settings, work)
    assert sum(map(sum, folded(settings).pools["front"].tally.shows)) == 5
