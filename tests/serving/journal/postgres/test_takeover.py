"""PostgreSQL behind a pooler, hung, behind a dead network, or with an owner that is paused."""

from __future__ import annotations

import asyncio
import shutil
import signal
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from tests.serving.journal.test_unwritable import ready
from tests.serving.making import Made, add_articles, config, run, visits
from tests.serving.pooler import Proxy, TransactionPooler, proxied
from tests.serving.processes import Served, eventually

import topstory as ts
from topstory.serving.api.errors import ApiError, Unavailable
from topstory.serving.api.messages import ArticleRequest, DecideRequest, FeedbackRequest
from topstory.serving.config.schema import Config
from topstory.serving.journal import group_commit
from topstory.serving.journal.connect import own_journal
from topstory.serving.journal.journal import (
    DamagedJournal,
    JournalError,
    JournalLost,
    JournalOwned,
)
from topstory.serving.journal.postgres import connection as postgres_connection
from topstory.serving.journal.postgres import journal as postgres_journal
from topstory.serving.journal.postgres import lock
from topstory.serving.journal.records import Entry, Paid
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.data_folder import StartOptions, open_folder
from topstory.serving.state.recovery.lost_tail import LostTail
from topstory.serving.upkeep.verification import verify

USER = (0.2, 0.3, 0.5, 1.0)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines that a test can wait for."""
    monkeypatch.setattr(postgres_journal, "COMMIT_SECONDS", 0.5)
    monkeypatch.setattr(lock, "LEASE_SECONDS", 0.5)
    monkeypatch.setattr(postgres_connection, "ANSWER_GRACE", 0.1)
    monkeypatch.setattr(group_commit, "PROBE_SECONDS", 0.05)
    monkeypatch.setattr(group_commit, "STUCK_SECONDS", 0.2)


def postgres_config(folder: Path, url: str) -> Config:
    return config(folder, journal={"url": url, "lock_seconds": 0.3})


def test_a_pooler_of_transactions_is_refused_by_name(tmp_path: Path, url: str) -> None:
    with (
        proxied(url, TransactionPooler()) as pooled,
        pytest.raises(JournalError, match=r"journal.url: a connection pooler .* pgbouncer"),
    ):
        own_journal(postgres_config(tmp_path, pooled))
    with proxied(url, Proxy()) as direct:  # one that only passes on is fine
        own_journal(postgres_config(tmp_path, direct)).close()


def test_a_commit_in_another_session_is_refused(tmp_path: Path, url: str) -> None:
    """If a pooler gets in between later: every commit checks whose session it is in."""
    journal = own_journal(postgres_config(tmp_path, url))
    journal.append([Entry(1, 1, Paid(7, 1.0))])
    writer: Any = journal._writer  # type: ignore[attr-defined]  # that of PostgreSQL
    writer.execute("SELECT set_config('topstory.session', 'another', false)")
    with pytest.raises(JournalLost, match="pgbouncer"):
        journal.append([Entry(2, 2, Paid(8, 1.0))])
    assert journal.last()[0] == 1
    journal.close()


def test_an_owner_that_shows_no_life_is_replaced_and_fenced(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long, except for the takeover itself: a busy machine may take a second from line to line.
    monkeypatch.setattr(lock, "LEASE_SECONDS", 600.0)
    settings = postgres_config(tmp_path, url)
    first = own_journal(settings)
    first.append([Entry(1, 1, Paid(7, 1.0))])
    with pytest.raises(JournalOwned, match="another service owns this journal"):
        own_journal(settings)
    with monkeypatch.context() as hasty:
        hasty.setattr(lock, "LEASE_SECONDS", 0.2)
        wait_for_lease(url)
        second = own_journal(settings)
    for _ in range(2):
        with pytest.raises(JournalLost, match="has taken over"):
            first.append([Entry(2, 2, Paid(8, 1.0))])
    second.append([Entry(2, 2, Paid(9, 1.0))])
    second.close()
    with pytest.raises(JournalLost, match="has taken over"):
        first.append([Entry(3, 3, Paid(8, 1.0))])
    first.close()


def wait_for_lease(url: str) -> None:
    """Until the owner's last sign of life is too old."""
    with psycopg.connect(url, autocommit=True) as connection:
        eventually(
            lambda: (
                connection.execute(
                    "SELECT clock_timestamp() - renewed > make_interval(secs => %s) "
                    "FROM topstory.meta",
                    (lock.LEASE_SECONDS,),
                ).fetchone()
                == (True,)
            )
        )


@pytest.mark.usefixtures("hasty")
def test_an_owner_renews_its_lease_while_nobody_asks(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "BEAT_SECONDS", 0.02)

    async def work(service: Service) -> None:
        watching = asyncio.create_task(service.commits.watch())
        with psycopg.connect(url, autocommit=True) as connection:

            def renewed() -> Any:
                return connection.execute("SELECT renewed FROM topstory.meta").fetchone()

            first = renewed()
            async with asyncio.timeout(10):
                while renewed() == first:
                    await asyncio.sleep(0.01)
            connection.execute("UPDATE topstory.meta SET term = term + 1")
            async with asyncio.timeout(10):
                await watching  # it ends: the journal is another's
        assert service.commits.failing is not None

    run(postgres_config(tmp_path, url), work)


@pytest.mark.usefixtures("hasty")
def test_a_network_that_swallows_packets_gives_503_and_a_standby_takes_over(
    tmp_path: Path, url: str
) -> None:
    proxy = Proxy()

    async def work(service: Service) -> None:
        await add_articles(service, 2)
        (made, *_) = await visits(service, 4, paid=0.0)
        proxy.swallows.set()
        with pytest.raises(Unavailable):
            async with asyncio.timeout(30):
                await service.feedback(FeedbackRequest(made.decision, 1.0))
        assert service.commits.failing is not None
        await asyncio.to_thread(wait_for_lease, url)
        standby = await asyncio.to_thread(Made, other)
        assert sum(map(sum, standby.service.state.pools["front"].tally.shows)) == 4
        proxy.swallows.clear()
        with pytest.raises(Unavailable):
            async with asyncio.timeout(30):
                await service.feedback(FeedbackRequest(made.decision, 1.0))
        assert not any(isinstance(entry.record, Paid) for entry, _ in standby.folder.journal.read())
        standby.crash()
        async with asyncio.timeout(30):
            while service.commits.halted is None:
                await asyncio.sleep(0.01)
        assert "has taken over" in service.commits.halted

    with proxied(url, proxy) as through:
        one, other = (
            postgres_config(tmp_path / "one", through),
            postgres_config(tmp_path / "two", url),
        )
        made = Made(one)
        (tmp_path / "two").mkdir()
        shutil.copytree(tmp_path / "one" / "start", tmp_path / "two" / "start")
        made.crash()
        run(one, work)


def test_a_standby_replaces_a_paused_owner_within_seconds(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "LEASE_SECONDS", 2.0)
    hasty = "from topstory.serving.journal.postgres import lock\nlock.LEASE_SECONDS = 2.0"
    common: dict[str, Any] = {
        "journal": {"url": url, "lock_seconds": 0.5},
        "role": "alone",
        "signing": {"a": "ab" * 32},
    }
    one = Served(tmp_path / "one", hasty, **common)
    two = Served(tmp_path / "two", hasty, **common)
    two.options = ("--standby",)
    with one, ts.Client(one.url, one.key, retries=0) as client:
        client.put_article("front", "only", ArticleRequest())
        made = [client.decide(USER).decision for _ in range(6)]
        for decision in made[:3]:
            client.feedback(decision, 1)
        two.data.mkdir()
        shutil.copytree(one.data / "start", two.data / "start")
        assert one.process is not None
        one.process.send_signal(signal.SIGSTOP)
        with two, ts.Client(two.url, two.key, retries=0) as standby:
            assert [standby.feedback(each, 1).repeated for each in made] == [True] * 3 + [False] * 3
            one.process.send_signal(signal.SIGCONT)
            for _ in range(3):
                with pytest.raises(ApiError) as refused:
                    client.decide(USER)
                assert refused.value.status == 503
            eventually(lambda: not ready(one))
            standby.feedback(standby.decide(USER).decision, 1)
            assert standby.stats().pools["front"].payoff == 7


@pytest.mark.usefixtures("hasty")
def test_a_hung_database_gives_503_in_time_and_recovers(tmp_path: Path, url: str) -> None:
    settings = postgres_config(tmp_path, url)

    async def work(service: Service) -> None:
        await add_articles(service, 2)
        made = await service.decide(DecideRequest(user=USER))
        processes = hung(url)
        try:
            for process in processes:
                process.suspend()
            feedback = asyncio.create_task(service.feedback(FeedbackRequest(made.decision, 1.0)))
            async with asyncio.timeout(10):
                while service.commits.failing is None:  # while the commit is still on its way
                    await asyncio.sleep(0.01)
            with pytest.raises(Unavailable):
                async with asyncio.timeout(20):
                    await feedback
            with pytest.raises(Unavailable):
                async with asyncio.timeout(20):
                    await service.decide(DecideRequest(user=USER))
        finally:
            for process in processes:
                process.resume()
        async with asyncio.timeout(20):
            while service.commits.failing is not None:
                await asyncio.sleep(0.01)
        await service.feedback(FeedbackRequest(made.decision, 1.0))
        assert sum(map(sum, service.state.pools["front"].tally.payoff)) == 1

    run(settings, work)


def hung(url: str) -> list[psutil.Process]:
    """All processes of the server."""
    with psycopg.connect(url, autocommit=True) as connection:
        (pid,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        main = psutil.Process(pid).parent()
        assert main is not None
        return [main, *(each for each in main.children() if each.pid != pid)]


def test_records_that_are_missing_at_the_end_are_damage(tmp_path: Path, url: str) -> None:
    settings = postgres_config(tmp_path, url)

    async def work(service: Service) -> None:
        await add_articles(service, 2)
        await visits(service, 5)

    run(settings, work)
    last = verify(url).last
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "DELETE FROM topstory.journal WHERE number > (SELECT min(number) "
            "FROM topstory.journal WHERE chain IS NOT NULL AND number > 2)"
        )
    with pytest.raises(DamagedJournal, match=rf"records after \d+, up to {last}, are missing"):
        verify(url)
    with pytest.raises(LostTail, match="not the one that was committed"):
        Made(settings)
    (tmp_path / "head").unlink()
    with pytest.raises(DamagedJournal, match="are missing"):
        Made(settings)


def saved(url: str) -> None:
    """Keep the journal as it is now: a replica that gets nothing more."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT * FROM topstory.journal")
        connection.execute("CREATE TABLE kept_meta AS SELECT * FROM topstory.meta")


def promoted(url: str) -> None:
    """The replica takes the database's place."""
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        connection.execute("DELETE FROM topstory.journal")
        connection.execute("INSERT INTO topstory.journal SELECT * FROM kept")
        connection.execute("DELETE FROM topstory.meta")
        connection.execute("INSERT INTO topstory.meta SELECT * FROM kept_meta")


def test_a_database_that_comes_back_without_its_end_is_noticed(tmp_path: Path, url: str) -> None:
    settings = postgres_config(tmp_path, url)

    async def work(service: Service) -> int:
        await add_articles(service, 2)
        await visits(service, 5)
        saved(url)
        (made, *_) = await visits(service, 5, 1, paid=0.0)
        promoted(url)
        for _ in range(2):
            with pytest.raises(Unavailable, match="the database has lost records"):
                await service.feedback(FeedbackRequest(made.decision, 1.0))
        return service.state.number

    number = run(settings, work)
    with pytest.raises(LostTail, match=f"but record {number} was committed"):
        Made(settings)
    folder = open_folder(settings, StartOptions(accept_lost_tail=True))
    assert folder.state.number == number + 1
    assert sum(map(sum, folder.state.pools["front"].tally.shows)) == 5
    folder.close()
    Made(settings).crash()
