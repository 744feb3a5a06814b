"""What survives: crashes, damaged snapshots, full and locked disks, clocks that go back."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from tests.serving.making import D, Made, add_articles, config, folded, run, visits

import topstory as ts
from topstory.serving import commits
from topstory.serving.archive import NothingToExport, export
from topstory.serving.clock import SECOND, Clock
from topstory.serving.config import Config
from topstory.serving.configuring import BadConfig
from topstory.serving.journal import JournalError
from topstory.serving.keeping import DAY, Keeper
from topstory.serving.messages import ArticleRequest, DecideRequest, FeedbackRequest
from topstory.serving.records import Decided, Paid, Placed
from topstory.serving.refusals import Refused, Unavailable
from topstory.serving.service import Service
from topstory.serving.snapshots import Picture, Snapshots

USER = (0.2, 0.3, 0.5, 1.0)


def fingerprint(told: Config) -> str:
    """Of the state that a start recovers."""
    made = Made(told)
    found = made.service.state.fingerprint()
    made.crash()
    return found


async def with_snapshots(service: Service) -> str:
    """Traffic, with a snapshot after each third of it."""
    keeper = Keeper(service, Snapshots(Path(service.config.data) / "snapshots"))
    await add_articles(service)
    for seed in range(3):
        await visits(service, 30, seed)
        await keeper.snapshot()
        await visits(service, 10, seed + 10)
    await service.remove_article("front", "article-3")
    return service.state.fingerprint()


def test_a_snapshot_and_the_journal_after_it_make_the_exact_state(tmp_path: Path) -> None:
    told = config(tmp_path)
    before = run(told, with_snapshots)
    kept = Snapshots(tmp_path / "snapshots").numbers()
    assert len(kept) == 2
    assert fingerprint(told) == before == folded(told).fingerprint()


def test_recovery_goes_on_as_if_the_service_had_never_stopped(tmp_path: Path) -> None:
    """Decisions included: the same numbers and state give the same choices."""
    told, whole = config(tmp_path / "one"), config(tmp_path / "other")

    async def first(service: Service) -> None:
        await with_snapshots(service)

    async def second(service: Service) -> list[tuple[str, float]]:
        made = await visits(service, 60, seed=99)
        return [(each.article, each.propensity) for each in made]

    async def both(service: Service) -> list[tuple[str, float]]:
        await first(service)
        return await second(service)

    run(told, first)
    assert run(told, second) == run(whole, both)


@pytest.mark.parametrize("name", ["state.json", "front.safetensors"])
@pytest.mark.parametrize("harm", ["flip", "cut", "gone"])
def test_a_damaged_snapshot_falls_back_to_the_one_before(
    tmp_path: Path, name: str, harm: str
) -> None:
    told = config(tmp_path)
    before = run(told, with_snapshots)
    newest, older = Snapshots(tmp_path / "snapshots").numbers()
    path = tmp_path / "snapshots" / f"{newest:012d}" / name
    content = bytearray(path.read_bytes())
    if harm == "flip":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif harm == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.unlink()
    found = [state.number for state in Snapshots(tmp_path / "snapshots").newest()]
    assert found == [older]
    assert fingerprint(told) == before


def test_without_any_snapshot_the_whole_journal_is_folded(tmp_path: Path) -> None:
    told = config(tmp_path)
    before = run(told, with_snapshots)
    shutil.rmtree(tmp_path / "snapshots")
    assert fingerprint(told) == before


def test_a_snapshot_that_was_being_written_does_not_count(tmp_path: Path) -> None:
    told = config(tmp_path)
    before = run(told, with_snapshots)
    newest = Snapshots(tmp_path / "snapshots").numbers()[0]
    half = tmp_path / "snapshots" / f".{newest + 5:012d}.part"
    shutil.copytree(tmp_path / "snapshots" / f"{newest:012d}", half)
    (half / "state.json").unlink()
    assert fingerprint(told) == before


async def refuses_then_recovers(service: Service, path: Path, locked: bool) -> None:
    await add_articles(service)
    made = await service.decide(DecideRequest(user=USER))
    before = service.state.fingerprint()
    connection = sqlite3.connect(path, isolation_level=None)
    writer = service.journal._writer  # type: ignore[attr-defined]  # the SQLite journal's
    if locked:
        connection.execute("BEGIN IMMEDIATE")
    else:
        await service.commits.run(lambda: _fill(writer))
    for _ in range(2):
        outcomes = await asyncio.gather(
            service.decide(DecideRequest(user=USER, request="same")),
            service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0)),
            service.remove_article("front", "article-0"),
            return_exceptions=True,
        )
        assert [type(each) for each in outcomes] == [Unavailable] * 3
        assert {each.reason for each in outcomes if isinstance(each, Refused)} == {
            "journal_unavailable"
        }
        assert service.commits.failing is not None
        assert service.state.fingerprint() == before
    if locked:
        connection.execute("ROLLBACK")
    else:
        await service.commits.run(lambda: writer.execute("PRAGMA max_page_count = 1073741823"))
    connection.close()
    await service.decide(DecideRequest(user=USER, request="same"))
    answer = await service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0))
    assert not answer.repeated
    await service.remove_article("front", "article-0")
    assert service.commits.failing is None


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
                    "INSERT INTO journal VALUES (?, 0, 'Filler', NULL, NULL, zeroblob(?))",
                    (number, size),
                )
            except sqlite3.OperationalError as error:
                full = "full" in str(error)


@pytest.mark.parametrize("locked", [True, False], ids=["locked", "full"])
def test_a_locked_or_full_journal_refuses_with_503_and_recovers(
    tmp_path: Path, locked: bool
) -> None:
    told = config(tmp_path, journal={"lock_seconds": 0.05})
    path = tmp_path / "journal.sqlite"

    async def work(service: Service) -> str:
        await refuses_then_recovers(service, path, locked)
        return service.state.fingerprint()

    before = run(told, work)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM journal WHERE kind = 'Filler'")
    connection.close()
    assert folded(told).fingerprint() == before


@pytest.mark.parametrize("locked", [True, False], ids=["locked", "full"])
def test_readiness_comes_back_by_itself(
    tmp_path: Path, locked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "PROBE", 0.01)
    path = tmp_path / "journal.sqlite"

    async def work(service: Service) -> str:
        await add_articles(service)
        connection = sqlite3.connect(path, isolation_level=None)
        writer = service.journal._writer  # type: ignore[attr-defined]  # the SQLite journal's
        if locked:
            connection.execute("BEGIN IMMEDIATE")
        else:
            await service.commits.run(lambda: _fill(writer))
        with pytest.raises(Unavailable):
            await service.decide(DecideRequest(user=USER))
        await asyncio.sleep(0.2)  # longer than several probes take
        assert service.commits.failing is not None
        if locked:
            connection.execute("ROLLBACK")
        else:
            await service.commits.run(lambda: writer.execute("PRAGMA max_page_count = 1073741823"))
        connection.close()
        await recovered(service)
        assert not writer.execute("SELECT 1 FROM journal WHERE kind = 'Tried'").fetchall()
        await service.decide(DecideRequest(user=USER))
        return service.state.fingerprint()

    told = config(tmp_path, journal={"lock_seconds": 0.05})
    before = run(told, work)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM journal WHERE kind = 'Filler'")
    connection.close()
    assert folded(told).fingerprint() == before


async def recovered(service: Service) -> None:
    async with asyncio.timeout(10):
        while service.commits.failing is not None:
            await asyncio.sleep(0.01)


class Doubtful:
    """A journal whose disk fails after a commit, before it can tell."""

    def __init__(self, service: Service) -> None:
        self.journal, self.broken = service.journal, False

    def append(self, entries: object) -> None:
        self.journal.append(entries)  # type: ignore[arg-type]  # passed on as it came
        if self.broken:
            raise JournalError("disk I/O error")

    def last(self) -> tuple[int, int]:
        if self.broken:
            raise JournalError("disk I/O error")
        return self.journal.last()

    def probe(self) -> None:
        if self.broken:
            raise JournalError("disk I/O error")


def test_a_commit_in_doubt_is_settled_without_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "PROBE", 0.01)
    told = config(tmp_path)

    async def work(service: Service) -> str:
        await add_articles(service)
        made = await service.decide(DecideRequest(user=USER))
        doubtful = Doubtful(service)
        service.commits._journal = doubtful  # type: ignore[assignment]  # fails on demand
        doubtful.broken = True
        given = FeedbackRequest(decision=made.decision, payoff=1.0)
        with pytest.raises(Unavailable):
            await service.feedback(given)
        doubtful.broken = False
        await recovered(service)
        assert (await service.feedback(given)).repeated
        return service.state.fingerprint()

    assert run(told, work) == folded(told).fingerprint()


def test_a_commit_that_failed_but_reached_the_disk_is_in_the_state(tmp_path: Path) -> None:
    told = config(tmp_path)

    async def work(service: Service) -> str:
        await add_articles(service)
        made = await service.decide(DecideRequest(user=USER))
        doubtful = Doubtful(service)
        service.commits._journal = doubtful  # type: ignore[assignment]  # fails on demand
        doubtful.broken = True
        given = FeedbackRequest(decision=made.decision, payoff=1.0)
        with pytest.raises(Unavailable):
            await service.feedback(given)
        doubtful.broken = False
        await service.decide(DecideRequest(user=USER))
        assert (await service.feedback(given)).repeated
        return service.state.fingerprint()

    assert run(told, work) == folded(told).fingerprint()


def test_a_request_whose_commit_is_in_doubt_makes_no_second_decision(tmp_path: Path) -> None:
    told = config(tmp_path, window_seconds=10)

    async def work(service: Service) -> str:
        await add_articles(service, 2)
        wall = [service.clock.now() + 20 * SECOND]  # up for longer than the window
        service.clock = Clock(service.clock.now(), wall=lambda: wall[0], steady=lambda: 0)
        doubtful = Doubtful(service)
        service.commits._journal = doubtful  # type: ignore[assignment]  # fails on demand
        doubtful.broken = True
        asked = DecideRequest(user=USER, request="once")
        for _ in range(2):  # also while nobody knows
            with pytest.raises(Unavailable):
                await service.decide(asked)
            wall[0] += SECOND
        doubtful.broken = False
        await service.decide(DecideRequest(user=USER))
        first, again = await service.decide(asked), await service.decide(asked)
        assert first == again
        assert sum(map(sum, service.state.pools["front"].tally.shows)) == 2
        return service.state.fingerprint()

    assert run(told, work) == folded(told).fingerprint()


def test_a_payoff_whose_commit_was_in_doubt_spoils_no_other_records_commit(
    tmp_path: Path,
) -> None:
    told = config(tmp_path)

    async def work(service: Service) -> str:
        await add_articles(service, 2)
        made = await service.decide(DecideRequest(user=USER))
        doubtful = Doubtful(service)
        service.commits._journal = doubtful  # type: ignore[assignment]  # fails on demand
        doubtful.broken = True
        given = FeedbackRequest(decision=made.decision, payoff=1.0)
        copies = (service.feedback(given) for _ in range(2))  # one waits for the other
        outcomes = await asyncio.gather(*copies, return_exceptions=True)
        assert [type(each) for each in outcomes] == [Unavailable] * 2
        doubtful.broken = False
        retried, other = await asyncio.gather(
            service.feedback(given),
            service.decide(DecideRequest(user=USER)),
            return_exceptions=True,
        )
        assert isinstance(retried, Unavailable)  # it was not known yet
        assert not isinstance(other, BaseException)
        assert (await service.feedback(given)).repeated
        return service.state.fingerprint()

    assert run(told, work) == folded(told).fingerprint()


def test_doubt_is_settled_by_asking_again(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 2)
        made = await service.decide(DecideRequest(user=USER))
        doubtful = Doubtful(service)
        service.commits._journal = doubtful  # type: ignore[assignment]  # fails on demand
        doubtful.broken = True
        given = FeedbackRequest(decision=made.decision, payoff=1.0)
        with pytest.raises(Unavailable):
            await service.feedback(given)
        doubtful.broken = False
        with pytest.raises(Unavailable, match="in doubt"):
            await service.feedback(given)
        await service.commits.drain()  # nothing else comes
        assert (await service.feedback(given)).repeated

    run(config(tmp_path), work)


def test_a_state_that_cannot_follow_the_journal_is_neither_served_nor_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = config(tmp_path)

    async def work(service: Service) -> None:
        await add_articles(service)
        keeper = Keeper(service, Snapshots(tmp_path / "snapshots"))
        with monkeypatch.context() as broken:
            broken.setattr(service.state, "apply", lambda *_: 1 / 0)
            with pytest.raises(Unavailable, match="restart the service"):
                await service.decide(DecideRequest(user=USER))
        with pytest.raises(Unavailable, match="restart the service"):
            await service.decide(DecideRequest(user=USER))
        assert service.commits.failing is not None
        await keeper.snapshot()
        assert Snapshots(tmp_path / "snapshots").numbers() == []

    run(told, work)
    made = Made(told)  # and a restart has what the journal has
    assert sum(map(sum, made.service.state.pools["front"].tally.shows)) == 1
    made.crash()


def test_the_same_snapshot_written_twice_at_once_is_there_once(tmp_path: Path) -> None:
    """As when a service ends while it takes a snapshot: the end must not spoil it."""
    made = Made(config(tmp_path))
    picture = Picture.of(made.service.state)
    made.crash()
    snapshots = Snapshots(tmp_path / "twice")
    for _ in range(20):
        with ThreadPoolExecutor(2) as threads:
            one, other = threads.map(snapshots.write, [picture, picture])
        assert one == other
        assert one.is_dir()
        shutil.rmtree(one)


def test_a_feature_model_that_cannot_be_loaded_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises((ValueError, OSError), match="nowhere"):
        Made(config(tmp_path, features="nowhere"))
    Made(config(tmp_path)).crash()  # and nothing is held


def test_the_database_itself_refuses_a_second_payoff(tmp_path: Path) -> None:
    made = Made(config(tmp_path))
    from topstory.serving.records import Entry

    made.opening.journal.append([Entry(50, 0, Paid(7, 1.0))])
    with pytest.raises(JournalError, match="UNIQUE"):
        made.opening.journal.append([Entry(51, 0, Paid(7, 1.0))])
    made.crash()


def test_time_in_the_journal_never_goes_back(tmp_path: Path) -> None:
    wall, steady = [1_000 * SECOND], [0]
    clock = Clock(0, lambda: wall[0], lambda: steady[0])
    assert clock.now() == 1_000 * SECOND
    wall[0] -= 500 * SECOND  # somebody sets the clock back
    steady[0] += 2 * SECOND
    assert clock.now() == 1_002 * SECOND
    assert clock.ahead == 502 * SECOND
    wall[0] += 600 * SECOND
    assert clock.now() == 1_100 * SECOND
    assert clock.ahead == 0

    told = config(tmp_path)

    async def tomorrow(service: Service) -> None:
        service.clock = Clock(service.clock.now() + DAY)
        await add_articles(service, 1)

    run(told, tomorrow)

    async def today(service: Service) -> None:
        made = await service.decide(DecideRequest(user=USER))
        assert service.clock.ahead > DAY - 3600 * SECOND
        await service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0))

    run(told, today)
    made = Made(told)
    times = [entry.at for entry, _ in made.opening.journal.read()]
    made.crash()
    assert times == sorted(times)


def test_two_services_cannot_share_a_folder(tmp_path: Path) -> None:
    made = Made(config(tmp_path))
    with pytest.raises(BlockingIOError, match="another process serves"):
        Made(config(tmp_path))
    made.crash()


def test_exploration_may_change_at_a_restart_and_the_model_may_not(tmp_path: Path) -> None:
    run(config(tmp_path), with_snapshots)
    made = Made(config(tmp_path, policy={"name": "linucb-hybrid", "alpha": 0.9}))
    assert made.service.state.pools["front"].policy.explorer.bonus == 0.9
    made.crash()
    with pytest.raises(BadConfig, match=r"policy: pool 'front' was begun with hybrid"):
        Made(config(tmp_path, policy={"name": "linucb-hybrid", "ridge": 9.0}))
    with pytest.raises(BadConfig, match=r"context: .* was begun with 4, not 6"):
        Made(config(tmp_path, context=6))


def test_another_context_is_refused_without_a_snapshot_too(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 2)
        await visits(service, 3)

    run(config(tmp_path), work)
    for context in (3, 6):
        with pytest.raises(
            BadConfig, match=f"context: the journal was begun with 4, not {context}"
        ):
            Made(config(tmp_path, context=context))


def test_a_foreign_or_newer_file_is_not_taken_for_a_journal(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "journal.sqlite")
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    with pytest.raises(JournalError, match="not a journal of topstory"):
        Made(config(tmp_path))


# -- the archive --


async def a_little_history(service: Service) -> None:
    await add_articles(service, 3)
    await visits(service, 60, seed=1)
    await service.remove_article("front", "article-1")
    await visits(service, 60, seed=2)
    await asyncio.gather(
        *(service.decide(DecideRequest(user=USER, exclude=("article-0",))) for _ in range(9))
    )


def test_the_exported_journal_is_the_log_of_what_happened(tmp_path: Path) -> None:
    told = config(tmp_path / "data")
    run(told, a_little_history)
    made = Made(told)
    decided = [
        (entry, payoff or 0.0)
        for entry, payoff in made.opening.journal.history(10**9)
        if isinstance(entry.record, Decided)
    ]
    exported = export(made.opening.journal, tmp_path / "all", "front")
    uniform = export(made.opening.journal, tmp_path / "uniform", "front", "uniform")
    with pytest.raises(NothingToExport, match="still wait for feedback"):
        export(made.opening.journal, tmp_path / "none", "front", now=0)
    made.crash()
    log = ts.EventLog.read(tmp_path / "all")
    assert exported.events == len(log) == 129
    sizes = {len(event.pool) for event in log}
    assert sizes == {1, 2, 3}
    for event, (entry, payoff) in zip(log, decided, strict=True):
        record = entry.record
        assert isinstance(record, Decided)
        assert event.shown == record.article
        assert event.payoff == payoff
        assert event.propensity == pytest.approx(record.propensity, rel=1e-6)
        np.testing.assert_allclose(event.user, np.frombuffer(record.user), rtol=1e-6)
    random = ts.EventLog.read(tmp_path / "uniform")
    assert uniform.events == len(random) == sum(e.record.bucket == 2 for e, _ in decided)  # type: ignore[union-attr]  # decisions only
    assert random.recorded_propensity is None
    replayed = ts.replay(ts.policy("ucb"), random)
    assert replayed.events == len(random)
    assert random.dimension == D


def test_old_decisions_move_to_log_folders_and_the_state_stays(tmp_path: Path) -> None:
    told = config(tmp_path, journal={"archive_days": 1}, window_seconds=60)

    async def work(service: Service) -> str:
        keeper = Keeper(service, Snapshots(tmp_path / "snapshots"))
        await a_little_history(service)
        await keeper.snapshot()
        await visits(service, 5, seed=3)
        await keeper.snapshot()
        assert await keeper.archive() == 0  # too young
        service.clock = Clock(service.clock.now() + 2 * DAY)
        assert await keeper.archive() > 129
        await visits(service, 5, seed=4)
        return service.state.fingerprint()

    before = run(told, work)
    assert fingerprint(told) == before
    names = sorted(path.name for path in (tmp_path / "archive" / "front").iterdir())
    assert [name.split("-")[1] for name in names] == ["all", "uniform"]
    assert len(ts.EventLog.read(tmp_path / "archive" / "front" / names[0])) == 129
    shutil.rmtree(tmp_path / "snapshots")
    with pytest.raises(ValueError, match="restore the folder `snapshots` from a backup"):
        Made(told)


async def paid_late(service: Service, later: int) -> None:
    """Decisions before both snapshots, their payoffs between them; then the archive's turn."""
    keeper = Keeper(service, Snapshots(Path(service.config.data) / "snapshots"))
    await add_articles(service, 2)
    made = [await service.decide(DecideRequest(user=USER)) for _ in range(4)]
    await keeper.snapshot()
    for each in made[1:]:
        await service.feedback(FeedbackRequest(decision=each.decision, payoff=1.0))
    await keeper.snapshot()
    await visits(service, later)
    service.clock = Clock(service.clock.now() + 2 * DAY)
    assert await keeper.archive() == 1  # the first decision alone: nobody paid for it
    assert await keeper.archive() == 0


@pytest.mark.parametrize("later", [0, 1])
def test_payoffs_that_the_older_snapshot_does_not_have_are_not_archived(
    tmp_path: Path, later: int
) -> None:
    """Else they are lost if the newer one is damaged; or no snapshot goes with the journal."""
    told = config(tmp_path, journal={"archive_days": 1}, window_seconds=60)

    async def work(service: Service) -> str:
        await paid_late(service, later)
        return service.state.fingerprint()

    before = run(told, work)
    newest, _ = Snapshots(tmp_path / "snapshots").numbers()
    assert fingerprint(told) == before
    (tmp_path / "snapshots" / f"{newest:012d}" / "state.json").unlink()
    assert fingerprint(told) == before


async def twice_saved(service: Service, keeper: Keeper) -> None:
    """Enough snapshots for all decisions so far to be archived."""
    for number in range(2):
        await keeper.snapshot()
        await service.put_article(
            "front", "article-0", ArticleRequest(features=(1, 0, 1), title=f"{number}")
        )


def archived(folder: Path) -> list[datetime | None]:
    """When the archived events were, folder after folder."""
    logs = sorted(folder.glob("archive/front/*-all"))
    return [event.timestamp for log in logs for event in ts.EventLog.read(log)]


def test_a_decision_that_is_still_open_is_not_archived_though_the_window_was_shortened(
    tmp_path: Path,
) -> None:
    days = {"archive_days": 1}

    async def before(service: Service) -> str:
        await service.put_article("front", "article-0", ArticleRequest(features=(1, 0, 1)))
        return (await service.decide(DecideRequest(user=USER))).decision

    decision = run(config(tmp_path, journal=days, window_seconds=3 * 86_400), before)

    async def after(service: Service) -> None:
        keeper = Keeper(service, Snapshots(tmp_path / "snapshots"))
        await twice_saved(service, keeper)
        service.clock = Clock(service.clock.now() + 2 * DAY)
        assert await keeper.archive() == 0
        await service.feedback(FeedbackRequest(decision=decision, payoff=1.0))
        await twice_saved(service, keeper)
        service.clock = Clock(service.clock.now() + 2 * DAY)
        assert await keeper.archive() == 2

    run(config(tmp_path, journal=days, window_seconds=60), after)


def test_an_archive_that_was_interrupted_holds_no_event_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(service: Service) -> None:
        keeper = Keeper(service, Snapshots(tmp_path / "snapshots"))
        wall = [service.clock.now()]
        service.clock = Clock(0, wall=lambda: wall[0], steady=lambda: 0)
        await service.put_article("front", "article-0", ArticleRequest(features=(1, 0, 1)))
        for half in range(2):
            for _ in range(3):
                wall[0] += SECOND
                await service.decide(DecideRequest(user=USER))
            await twice_saved(service, keeper)
            wall[0] += 2 * DAY
            if not half:
                with monkeypatch.context() as broken:
                    broken.setattr(service.journal, "prune", lambda _: 1 / 0)
                    with pytest.raises(ZeroDivisionError):
                        await keeper.archive()
        assert [await keeper.archive() for _ in range(3)] == [3, 3, 0]

    run(config(tmp_path, journal={"archive_days": 1}, window_seconds=60), work)
    times = archived(tmp_path)
    assert len(times) == len(set(times)) == 6


def test_an_article_that_came_back_with_other_features_is_another_one_in_the_log(
    tmp_path: Path,
) -> None:
    told = config(tmp_path / "data")

    async def work(service: Service) -> None:
        for features in ((1.0, 0, 1), (0.0, 1, 1), (1.0, 0, 1)):
            await service.put_article("front", "a", ArticleRequest(features=features))
            await service.decide(DecideRequest(user=USER, exclude=("b",)))
            await service.remove_article("front", "a")

    run(told, work)
    made = Made(told)
    (second,) = [
        entry.number
        for entry, _ in made.opening.journal.history(10**9)
        if isinstance(entry.record, Placed) and entry.record.article.features == (0, 1, 1)
    ]
    export(made.opening.journal, tmp_path / "log", "front")
    made.crash()
    log = ts.EventLog.read(tmp_path / "log")
    other = f"a@{second}"
    assert [event.shown for event in log] == ["a", other, "a"]
    assert [event.pool for event in log] == [("a",), (other,), ("a",)]
    rows = {name: None if row is None else row.tolist() for name, row in log.articles.items()}
    assert rows == {"a": [1, 0, 1], other: [0, 1, 1]}
