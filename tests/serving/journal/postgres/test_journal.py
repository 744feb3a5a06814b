"""The journal in PostgreSQL keeps the same promises, and another machine can take over."""

from __future__ import annotations

import asyncio
import shutil
import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.cli.running import run as command
from tests.serving.making import Made, add_articles, config, run, visits
from tests.serving.processes import Served

import topstory as ts
from topstory.serving.api.errors import Unavailable
from topstory.serving.api.messages import ArticleRequest, DecideRequest, FeedbackRequest
from topstory.serving.config.loading import BadConfig
from topstory.serving.config.schema import Config
from topstory.serving.journal import group_commit
from topstory.serving.journal.connect import journal_of, own_journal
from topstory.serving.journal.journal import JournalError
from topstory.serving.journal.records import Entry, Paid
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.recovery import Starts, recover
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.upkeep.journal_export import export

USER = (0.2, 0.3, 0.5, 1.0)


def postgres_config(folder: Path, url: str) -> Config:
    return config(folder, journal={"url": url, "lock_seconds": 0.3})


def folded(settings: Config) -> str:
    """The fingerprint of a fresh fold of the whole journal, by somebody who only reads."""
    assert settings.journal.url is not None
    folder = Path(settings.data)
    journal = journal_of(settings.journal.url)
    try:
        empty = Snapshots(folder / "none")
        return recover(journal, empty, Starts(folder / "start"), settings.context).fingerprint()
    finally:
        journal.close()


async def traffic(service: Service) -> str:
    await add_articles(service)
    await visits(service, 40)
    return service.state.fingerprint()


def disconnect(url: str) -> int:
    """End every other connection to the database."""
    with psycopg.connect(url, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    return len(ended)


def test_the_state_is_the_same_whichever_database_keeps_the_journal(
    tmp_path: Path, url: str
) -> None:
    in_postgres = run(postgres_config(tmp_path / "postgres", url), traffic)
    in_a_file = run(config(tmp_path / "file"), traffic)
    assert folded(postgres_config(tmp_path / "postgres", url)) == in_postgres == in_a_file


def test_a_restart_goes_on_and_remembers_payoffs_and_requests(tmp_path: Path, url: str) -> None:
    settings = postgres_config(tmp_path, url)
    asked = DecideRequest(user=USER, request="first")

    async def before(service: Service) -> str:
        await add_articles(service)
        made = await service.decide(asked)
        await service.feedback(FeedbackRequest(made.decision, 1.0))
        return made.decision

    async def after(service: Service) -> str:
        made = await service.decide(asked)
        assert (await service.feedback(FeedbackRequest(made.decision, 1.0))).repeated
        return made.decision

    assert run(settings, before) == run(settings, after)


def test_lost_connections_are_made_again_and_nothing_is_lost(tmp_path: Path, url: str) -> None:
    settings = postgres_config(tmp_path, url)
    asked = DecideRequest(user=USER, request="first")

    async def work(service: Service) -> str:
        await add_articles(service)
        made = first = await service.decide(asked)
        given = FeedbackRequest(made.decision, 1.0)
        for _ in range(3):
            assert disconnect(url) >= 1
            await service.feedback(given)
            await visits(service, 5)
            assert await service.decide(asked) == first
            found = service.journal.request("first", 0)  # by the other connection
            assert found is not None
            assert found.decided.article == first.article
        return service.state.fingerprint()

    assert run(settings, work) == folded(settings)


def test_readiness_comes_back_by_itself(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "PROBE_SECONDS", 0.01)

    async def work(service: Service) -> None:
        await add_articles(service)
        with psycopg.connect(url, autocommit=True) as other:
            with other.transaction():
                other.execute("LOCK TABLE topstory.journal")
                with pytest.raises(Unavailable):
                    await service.decide(DecideRequest(user=USER))
                await asyncio.sleep(0.5)  # longer than a probe takes
                assert service.commits.failing is not None
            async with asyncio.timeout(10):
                while service.commits.failing is not None:
                    await asyncio.sleep(0.01)
        assert service.journal.last()[0] == service.state.number
        await service.decide(DecideRequest(user=USER))

    run(config(tmp_path, journal={"url": url, "lock_seconds": 0.1}), work)


def test_one_service_owns_a_journal_and_one_that_was_overtaken_writes_no_more(
    tmp_path: Path, url: str
) -> None:
    settings = postgres_config(tmp_path / "a", url)
    first = own_journal(settings)
    entry = Entry(first.last()[0] + 1, 1, Paid(99, 1.0))
    with pytest.raises(JournalError, match="another service owns this journal"):
        own_journal(settings)
    disconnect(url)
    standby = own_journal(settings)
    with pytest.raises(JournalError, match="has taken over this journal: restart"):
        first.append([entry])
    standby.close()
    with pytest.raises(JournalError, match="has taken over this journal: restart"):
        first.append([entry])
    first.close()
    reading = journal_of(url)
    assert reading.last() == (0, 0)
    with pytest.raises(JournalError, match="only reads"):
        reading.append([entry])
    reading.close()


def test_the_database_refuses_a_second_payoff_and_a_number_twice(tmp_path: Path, url: str) -> None:
    journal = own_journal(postgres_config(tmp_path, url))
    journal.append([Entry(1, 1, Paid(7, 1.0))])
    for again in (Entry(2, 2, Paid(7, 0.0)), Entry(1, 2, Paid(8, 1.0))):
        with pytest.raises(JournalError, match="duplicate key"):
            journal.append([Entry(3, 3, Paid(9, 1.0)), again])
        assert journal.last() == (1, 1)  # none of the batch
    assert (journal.first_paid_after(0), journal.first_paid_after(1)) == (7, None)
    assert journal.prune(8) == 1
    assert (journal.pruned(), journal.last()) == (8, (0, 0))
    journal.close()


def test_a_standby_takes_over_after_kill_9_with_every_acknowledged_payoff(
    tmp_path: Path, url: str
) -> None:
    """Two machines, played by two data folders, of which only `start` is the same."""
    journal = {"url": url, "lock_seconds": 2.0}
    settings: dict[str, Any] = {"journal": journal, "role": "alone", "signing": {"a": "ab" * 32}}
    one, two = (Served(tmp_path / name, **settings) for name in ("one", "two"))
    with one, ts.Client(one.url, one.key) as client:
        for number in range(3):
            client.put_article("front", f"article-{number}", ArticleRequest())
        made = [client.decide(USER).decision for _ in range(20)]
        for decision in made[:10]:
            client.feedback(decision, 1)
        assert one.end(signal.SIGKILL) == -signal.SIGKILL
    two.data.mkdir()
    shutil.copytree(one.data / "start", two.data / "start")
    with two, ts.Client(two.url, two.key) as client:
        assert [client.feedback(decision, 1).repeated for decision in made] == [True] * 10 + [
            False
        ] * 10
        buckets = client.stats().pools["front"].buckets
    assert sum(bucket.payoff for bucket in buckets.values()) == 20


def test_old_decisions_and_requests_are_looked_up_for_workers(tmp_path: Path, url: str) -> None:
    journal, limits = {"url": url, "lock_seconds": 2.0}, {"remembered": 1}
    settings = {"journal": journal, "limits": limits, "workers": 2, "policy": {"name": "ucb"}}
    with Served(tmp_path, "", **settings) as served, ts.Client(served.url, served.key) as client:
        client.put_article("front", "only", ArticleRequest())
        made = [client.decide(USER, request=f"r{number}") for number in range(60)]
        assert [client.decide(USER, request=f"r{number}") for number in range(60)] == made
        for repeated in (False, True):
            assert {client.feedback(each.decision, 1).repeated for each in made} == {repeated}
        assert client.stats().pools["front"].shows == 60
    assert "Traceback" not in served.errors()


def test_the_journal_is_exported_as_a_log(tmp_path: Path, url: str) -> None:
    run(postgres_config(tmp_path / "data", url), traffic)
    done = command("export-journal", url, tmp_path / "log", "--unfinished")
    assert "40 events" in done.stdout
    reading = journal_of(url)
    export(reading, tmp_path / "again", "front")
    reading.close()
    assert len(ts.EventLog.read(tmp_path / "again")) == 40


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("postgresql:///nothing?host=/nowhere", "journal.url: connection"),
        ("postgresql://user:se cret@host/", "journal.url: not a PostgreSQL URL"),
    ],
)
def test_a_database_that_cannot_be_used_is_reported_at_the_start(
    tmp_path: Path, wrong: str, words: str
) -> None:
    with pytest.raises((JournalError, BadConfig), match=words) as caught:
        Made(postgres_config(tmp_path, wrong))
    assert "cret" not in str(caught.value)


def test_the_url_is_not_journalled_for_it_may_hold_a_password(tmp_path: Path, url: str) -> None:
    settings = postgres_config(tmp_path, url)
    run(settings, traffic)
    with psycopg.connect(url) as connection:
        bodies = connection.execute("SELECT body FROM topstory.journal").fetchall()
    assert not any(url.encode() in body for (body,) in bodies)


def test_a_database_that_cannot_keep_every_text_is_refused(server: str, tmp_path: Path) -> None:
    """Else one client's id would fail the commit of all who wait with it."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        )
    with pytest.raises(JournalError, match="encoding is LATIN1: create one with UTF8"):
        Made(postgres_config(tmp_path, server.replace("/postgres?", "/latin?")))
