"""Nothing can be written: a full disk, a locked journal. ApiError with 503; then all goes on."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from tests.serving.http.test_http import ask
from tests.serving.making import add_articles, config, folded, run
from tests.serving.processes import Served, eventually

import topstory as ts
from topstory.serving.api.errors import ApiError, Unavailable
from topstory.serving.api.messages import ArticleRequest, DecideRequest, FeedbackRequest
from topstory.serving.config.schema import Config
from topstory.serving.journal import group_commit
from topstory.serving.journal.chain import Head
from topstory.serving.journal.head_file import HeadFile
from topstory.serving.service.service import Service

USER = (0.2, 0.3, 0.5, 1.0)


@asynccontextmanager
async def unwritable(service: Service, locked: bool) -> AsyncIterator[sqlite3.Connection]:
    """Nothing can be written: somebody holds the lock, or the disk is full. Gives the writer."""
    path = Path(service.config.data) / "journal.sqlite"
    writer = service.journal._writer  # type: ignore[attr-defined]  # the SQLite journal's
    if locked:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield writer
            other.execute("ROLLBACK")
    else:
        await service.commits.run(lambda: _fill(writer))
        yield writer
        await service.commits.run(lambda: writer.execute("PRAGMA max_page_count = 1073741823"))


def _fill(writer: sqlite3.Connection) -> None:
    """Leave no page free, as on a full disk."""
    pages = writer.execute("PRAGMA page_count").fetchone()[0]
    writer.execute(f"PRAGMA max_page_count = {pages}")
    number = 0
    for size in (5000, 500, 50, 1):
        full = False
        while not full:
            number -= 1
            try:
                writer.execute(
                    "INSERT INTO journal (number, at, kind, body) "
                    "VALUES (?, 0, 'Filler', zeroblob(?))",
                    (number, size),
                )
            except sqlite3.OperationalError as error:
                full = "full" in str(error)


def same_without_filler(settings: Config, before: str) -> None:
    """A fold finds the same, once what filled the disk is gone."""
    with closing(sqlite3.connect(Path(settings.data) / "journal.sqlite")) as connection, connection:
        connection.execute("DELETE FROM journal WHERE kind = 'Filler'")
    assert folded(settings).fingerprint() == before


@pytest.mark.parametrize("locked", [True, False], ids=["locked", "full"])
def test_a_locked_or_full_journal_refuses_with_503_and_recovers(
    tmp_path: Path, locked: bool
) -> None:
    async def work(service: Service) -> str:
        await add_articles(service)
        made = await service.decide(DecideRequest(user=USER))
        before = service.state.fingerprint()
        async with unwritable(service, locked):
            for _ in range(2):
                outcomes = await asyncio.gather(
                    service.decide(DecideRequest(user=USER, request="same")),
                    service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0)),
                    service.remove_article("front", "article-0"),
                    return_exceptions=True,
                )
                assert [type(each) for each in outcomes] == [Unavailable] * 3
                assert {each.reason for each in outcomes if isinstance(each, ApiError)} == {
                    "journal_unavailable"
                }
                assert service.commits.failing is not None
                assert service.state.fingerprint() == before
        await service.decide(DecideRequest(user=USER, request="same"))
        answer = await service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0))
        assert not answer.repeated
        await service.remove_article("front", "article-0")
        assert service.commits.failing is None
        return service.state.fingerprint()

    settings = config(tmp_path, journal={"lock_seconds": 0.05})
    same_without_filler(settings, run(settings, work))


@pytest.mark.parametrize("locked", [True, False], ids=["locked", "full"])
def test_readiness_comes_back_by_itself(
    tmp_path: Path, locked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "PROBE_SECONDS", 0.01)

    async def work(service: Service) -> str:
        await add_articles(service)
        async with unwritable(service, locked) as writer:
            with pytest.raises(Unavailable):
                await service.decide(DecideRequest(user=USER))
            await asyncio.sleep(0.2)  # longer than several probes take
            assert service.commits.failing is not None
        await recovered(service)
        assert not writer.execute("SELECT 1 FROM journal WHERE kind = 'Tried'").fetchall()
        await service.decide(DecideRequest(user=USER))
        return service.state.fingerprint()

    settings = config(tmp_path, journal={"lock_seconds": 0.05})
    same_without_filler(settings, run(settings, work))


async def recovered(service: Service) -> None:
    async with asyncio.timeout(10):
        while service.commits.failing is not None:
            await asyncio.sleep(0.01)


@contextmanager
def no_room(served: Served, room: int = 0) -> Iterator[None]:
    """The process that keeps the journal can write nothing beyond so many bytes of a file."""
    assert served.process is not None
    process = psutil.Process(served.process.pid)
    before = process.rlimit(resource.RLIMIT_FSIZE)
    process.rlimit(resource.RLIMIT_FSIZE, (max(0, room), before[1]))
    yield
    with suppress(psutil.NoSuchProcess):
        process.rlimit(resource.RLIMIT_FSIZE, before)


def ready(served: Served) -> bool:
    return ask(served, "GET", "/health/ready")[0] == 200


@pytest.mark.parametrize("workers", [1, 2])
def test_a_service_without_room_on_its_disk_refuses_and_recovers(
    workers: int, tmp_path: Path
) -> None:
    with (
        Served(tmp_path, workers=workers) as served,
        ts.Client(served.url, served.key, timeout=60, retries=0) as client,
    ):
        client.put_article("front", "only", ArticleRequest())
        made = client.decide(USER)
        with no_room(served):
            for _ in range(3):
                with pytest.raises(ApiError, match="journal cannot be written") as caught:
                    client.decide(USER)
                assert caught.value.status == 503
                with pytest.raises(ApiError, match="nothing was changed"):
                    client.feedback(made.decision, 1.0)
            assert not ready(served)
        eventually(lambda: ready(served))
        assert not client.feedback(made.decision, 1.0).repeated
    pool = folded(config(served.data)).pools["front"]
    assert sum(map(sum, pool.tally.shows)) == sum(map(sum, pool.tally.payoff)) == 1


def test_a_state_that_could_not_follow_the_journal_is_not_shown(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    fails = (
        "import pathlib\n"
        "from topstory.serving.state.pool import Pool\n"
        f"mark, learn = pathlib.Path({str(mark)!r}), Pool.learn\n"
        "def half(self):\n"
        "    assert not mark.exists()\n"
        "    learn(self)\n"
        "Pool.learn = half"
    )
    with (
        Served(tmp_path, fails) as served,
        ts.Client(served.url, served.key, timeout=60, retries=0) as client,
    ):
        client.put_article("front", "only", ArticleRequest())
        mark.touch()
        for ask_for in (
            lambda: client.decide(USER),
            lambda: client.articles("front"),
            lambda: client.article("front", "only"),
            client.stats,
        ):
            with pytest.raises(ApiError, match="restart the service") as refused:
                ask_for()
            assert refused.value.status == 503
        assert not ready(served)
        mark.unlink()
        served.end()
        served.start()
        with ts.Client(served.url, served.key, timeout=60) as again:
            assert again.stats().pools["front"].shows == 1  # the journal has it


def test_a_note_of_the_last_commit_that_cannot_be_written_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The journal may be elsewhere, and the commit is in it."""
    with closing(HeadFile(Path("/dev/full"))) as file:
        for number in range(3):
            file.write(Head(number, bytes(16)))
    assert caplog.text.count("No space left on device") == 1
