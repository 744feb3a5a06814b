"""The journal: one payoff for each decision, time that never goes back, files of its own."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from itertools import count, cycle
from pathlib import Path

import pytest
from tests.serving.making import D, Made, add_articles, config, folded, run

from topstory.serving.api.messages import ArticleRequest, DecideRequest, FeedbackRequest
from topstory.serving.journal import clock_file
from topstory.serving.journal.clock import MAX_JUMP, SECOND, Clock, as_datetime
from topstory.serving.journal.journal import JournalError
from topstory.serving.journal.records import ClockSet, Decided, Entry, Paid, Removed
from topstory.serving.journal.sqlite import MAX_ROWS, SqliteJournal
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.data_folder import StartOptions, open_folder
from topstory.serving.upkeep.keeper import DAY

USER = (0.2, 0.3, 0.5, 1.0)
PAYABLE = 9 * MAX_ROWS  # decisions that come first


def test_the_database_itself_refuses_a_second_payoff(tmp_path: Path) -> None:
    made = Made(config(tmp_path))
    made.folder.journal.append([Entry(50, 0, Paid(7, 1.0))])
    with pytest.raises(JournalError, match="UNIQUE"):
        made.folder.journal.append([Entry(51, 0, Paid(7, 1.0))])
    made.crash()


def record(kind: str, number: int) -> Decided | Paid | Removed:
    if kind == "paid":
        return Paid(number - PAYABLE, 0.5, "web")
    if kind == "removed":
        return Removed("front", f"article-{number}")
    request = f"request-{number}" if kind == "named" else None
    return Decided("front", bytes(8 * D), "a", 0, 0.5, 99, 1, True, request=request)


@pytest.mark.parametrize("size", [1, 2, MAX_ROWS, MAX_ROWS + 1, 3 * MAX_ROWS])
@pytest.mark.parametrize(
    "kinds", ["decided", "named", "decided named", "paid", "paid named removed"]
)
def test_a_batch_of_any_records_is_read_as_it_was_written(
    kinds: str, size: int, tmp_path: Path
) -> None:
    """Each mixture has a statement of its own."""
    journal, chosen = SqliteJournal(tmp_path / "journal.sqlite", own=True), cycle(kinds.split())
    journal.append([Entry(n, n, record("decided", n)) for n in range(1, PAYABLE + 1)])
    for first in range(PAYABLE + 1, PAYABLE + 3 * size + 1, size):
        numbers = range(first, first + size)
        entries = [Entry(each, 5_000 + each, record(next(chosen), each)) for each in numbers]
        journal.append(entries)
        assert [entry for entry, _ in journal.read(first - 1)] == entries
        assert journal.mark(numbers[-1]) == journal.head.mark
        assert all(journal.mark(each) is None for each in numbers[:-1])
    assert journal.check() == PAYABLE + 3 * size
    journal.close()


def test_time_in_the_journal_never_goes_back(tmp_path: Path) -> None:
    wall, steady = [1_000 * SECOND], [0]
    clock = Clock(0, lambda: wall[0], lambda: steady[0])
    assert clock.now() == 1_000 * SECOND
    wall[0] -= 500 * SECOND  # somebody sets the clock back
    steady[0] += 2 * SECOND
    assert clock.now() == 1_002 * SECOND
    assert clock.ahead == 502 * SECOND
    wall[0] += 600 * SECOND
    steady[0] += 90 * SECOND
    assert clock.now() == 1_100 * SECOND
    assert clock.ahead == 0

    settings = config(tmp_path)

    async def tomorrow(service: Service) -> None:
        service.ledger.clock = Clock(service.clock.now() + DAY)
        await add_articles(service, 1)

    run(settings, tomorrow)

    async def today(service: Service) -> None:
        made = await service.decide(DecideRequest(user=USER))
        assert service.clock.ahead > DAY - 3600 * SECOND
        await service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0))

    run(settings, today)
    made = Made(settings)
    times = [entry.at for entry, _ in made.folder.journal.read()]
    made.crash()
    assert times == sorted(times)


def test_a_clock_that_jumps_ahead_is_not_followed(caplog: pytest.LogCaptureFixture) -> None:
    wall, steady = [1_000 * SECOND], [0]
    clock = Clock(0, lambda: wall[0], lambda: steady[0])
    wall[0] += MAX_JUMP
    assert clock.now() == 1_060 * SECOND  # that far it is
    wall[0] += DAY
    steady[0] += 2 * SECOND
    for _ in range(2):
        assert clock.now() == 1_062 * SECOND
    assert clock.behind == DAY - 2 * SECOND
    assert caplog.text.count("jumped 86398 seconds ahead") == 1
    wall[0] -= DAY - 2 * SECOND
    steady[0] += SECOND
    assert clock.now() == 1_063 * SECOND
    assert clock.behind == 0
    wall[0] += 30 * DAY  # the machine slept, by both clocks
    steady[0] += 30 * DAY
    assert clock.now() == 30 * DAY + 1_063 * SECOND


def test_a_clock_a_day_ahead_for_a_moment_shows_no_embargoed_article(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        wall, steady = [service.clock.now()], [0]
        service.ledger.clock = Clock(wall[0], lambda: wall[0], lambda: steady[0])
        await service.put_article("front", "now", ArticleRequest())
        later = ArticleRequest(begins=as_datetime(wall[0] + DAY // 2))
        await service.put_article("front", "later", later)
        for jump in (DAY, -DAY):
            wall[0] += jump
            steady[0] += SECOND
            made = await service.decide(DecideRequest(user=USER, slots=2))
            assert made.ranking == ("now",)

    run(config(tmp_path), work)


def test_an_operator_can_set_the_journals_time_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """After a start with a clock that was a day ahead."""
    settings = config(tmp_path)

    async def tomorrow(service: Service) -> None:
        service.ledger.clock = Clock(service.clock.now() + DAY)
        await add_articles(service, 1)

    run(settings, tomorrow)
    made = Made(settings)
    assert "seconds ahead of the system clock" in caplog.text
    assert made.service.clock.ahead > DAY - 3600 * SECOND
    made.crash()
    before = Clock().now()
    folder = open_folder(settings, StartOptions(set_clock=True))
    assert before <= folder.state.at <= Clock().now()
    assert [type(e.record) for e, _ in folder.journal.read()][-1] is ClockSet
    folder.close()
    made = Made(settings)
    assert made.service.clock.ahead < 3600 * SECOND
    made.crash()
    assert folded(settings).at == made.service.state.at


@pytest.mark.parametrize("rebooted", [False, True])
def test_a_start_with_a_clock_far_ahead_does_not_follow_it(
    rebooted: bool,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the steady clock, or after a reboot by how long a service may have been down."""
    settings = config(tmp_path, journal={"downtime_hours": 48})

    async def embargoed(service: Service) -> None:
        await service.put_article("front", "now", ArticleRequest())
        later = ArticleRequest(begins=as_datetime(service.clock.now() + DAY // 2))
        await service.put_article("front", "later", later)

    run(settings, embargoed)
    if rebooted:
        boots = count()
        monkeypatch.setattr(clock_file, "_boot", lambda: f"boot {next(boots)}")
    true = time.time_ns

    def at_a_start(jump: int) -> tuple[tuple[str, ...], int]:
        """What is shown, and how far the journal's time is behind, if the clock jumped so far."""
        monkeypatch.setattr(time, "time_ns", lambda: true() + 1_000 * jump)

        async def work(service: Service) -> tuple[tuple[str, ...], int]:
            made = await service.decide(DecideRequest(user=USER, slots=2))
            return made.ranking, service.clock.behind

        return run(settings, work)

    shown, behind = at_a_start(3 * DAY)
    assert shown == ("now",)
    assert behind > 2.9 * DAY
    assert "restart once with --set-clock" in caplog.text
    assert at_a_start(0) == (("now",), 0)  # it was wrong for a while: nothing to do
    shown, behind = at_a_start(DAY)
    if rebooted:  # nobody can tell
        assert (len(shown), behind) == (2, 0)
        return
    assert shown == ("now",)
    # It is right, says the operator.
    folder = open_folder(settings, StartOptions(set_clock=True))
    assert [type(e.record) for e, _ in folder.journal.read()][-1] is ClockSet
    folder.close()
    shown, behind = at_a_start(DAY)
    assert (len(shown), behind) == (2, 0)
    assert folded(settings).number > 0


def test_another_process_that_comes_and_goes_leaves_the_log_of_commits_alone(
    tmp_path: Path,
) -> None:
    """SQLite removes it with the last connection: so the service must be known to have one."""
    journal = SqliteJournal(tmp_path / "journal.sqlite", own=True)
    journal.append([Entry(1, 1, Paid(7, 1.0))])
    journal.reopen().close()
    reading = (
        "import sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1])\n"
        "connection.execute('SELECT count(*) FROM journal').fetchall()\n"
        "connection.close()"
    )
    subprocess.run([sys.executable, "-c", reading, tmp_path / "journal.sqlite"], check=True)
    journal.append([Entry(2, 2, Paid(8, 1.0))])
    journal.close()


def test_nobody_else_can_read_a_journal_not_even_one_that_was_readable(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    for _ in range(2):
        journal = SqliteJournal(path, own=True)
        journal.append([Entry(journal.last()[0] + 1, 1, Removed("front", "a"))])
        for each in tmp_path.glob("journal.sqlite*"):
            assert each.stat().st_mode & 0o077 == 0, each
        journal.close()
        path.chmod(0o644)  # as version 0.1 made it


def test_a_foreign_or_newer_file_is_not_taken_for_a_journal(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "journal.sqlite")
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    with pytest.raises(JournalError, match="not a topstory journal"):
        Made(config(tmp_path))
