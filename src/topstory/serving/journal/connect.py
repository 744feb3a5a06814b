"""Opens the journal: a file in the data folder, or a PostgreSQL database."""

from __future__ import annotations

import time
from pathlib import Path

from topstory.extras import require
from topstory.serving.config.loading import BadConfig
from topstory.serving.config.schema import Config
from topstory.serving.journal.journal import Journal, JournalError, JournalOwned
from topstory.serving.journal.sqlite import SqliteJournal

FILE = "journal.sqlite"
STANDBY_SECONDS = 0.5  # between two attempts to take over
SCHEMES = ("postgresql://", "postgres://")


def own_journal(config: Config) -> Journal:
    """The journal of the one service that writes it."""
    journal = config.journal
    if journal.url is None:
        return SqliteJournal(Path(config.data) / FILE, journal.lock_seconds, own=True)
    return _postgres(journal.url, journal.lock_seconds, own=True)


def wait_until_free(config: Config) -> None:
    """Wait until the owner of the journal is gone, or shows no sign of life."""
    if config.journal.url is None:
        raise BadConfig("journal.url: a standby needs a journal in PostgreSQL, which two can reach")
    while True:
        try:
            own_journal(config).close()
            return
        except JournalOwned:
            time.sleep(STANDBY_SECONDS)


def journal_of(where: str) -> Journal:
    """The journal of a service that may be running, for reading: by data folder or URL."""
    if where.startswith(SCHEMES):
        return _postgres(where, 1.0, own=False)
    path = Path(where) / FILE
    if not path.is_file():
        raise FileNotFoundError(f"{where}: there is no journal here")
    return SqliteJournal(path)


def _postgres(url: str, lock_seconds: float, own: bool) -> Journal:
    require("postgres")
    from topstory.serving.journal.postgres.journal import PostgresJournal

    try:
        return PostgresJournal(url, lock_seconds, own)
    except JournalError as error:
        raise type(error)(f"journal.url: {error}") from None
