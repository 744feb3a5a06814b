"""The journal: one payoff for each decision, time that never goes back, files of its own."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.serving.making import Made, add_articles, config, run

from topstory.serving.api.messages import DecideRequest, FeedbackRequest
from topstory.serving.journal.clock import SECOND, Clock
from topstory.serving.journal.journal import JournalError
from topstory.serving.journal.records import Entry, Paid
from topstory.serving.journal.sqlite import SqliteJournal
from topstory.serving.service.service import Service
from topstory.serving.upkeep.keeper import DAY

USER = (0.2, 0.3, 0.5, 1.0)


def test_the_database_itself_refuses_a_second_payoff(tmp_path: Path) -> None:
    made = Made(config(tmp_path))
    made.folder.journal.append([Entry(50, 0, Paid(7, 1.0))])
    with pytest.raises(JournalError, match="UNIQUE"):
        made.folder.journal.append([Entry(51, 0, Paid(7, 1.0))])
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


def test_a_foreign_or_newer_file_is_not_taken_for_a_journal(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "journal.sqlite")
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    with pytest.raises(JournalError, match="not a topstory journal"):
        Made(config(tmp_path))
