"""The journal as one SQLite file: WAL, and a real sync for every commit.

`synchronous=NORMAL` does not sync at a commit: what was acknowledged could be lost.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from topstory.serving.journal import sql
from topstory.serving.journal.journal import JournalError
from topstory.serving.journal.records import Entry

APPLICATION = 0x7453544A  # "tSTJ"
VERSION = 1

_SCHEMA = """
CREATE TABLE journal (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,      -- microseconds since 1970
    kind TEXT NOT NULL,       -- Decided, Paid, Placed, Removed, Opened, Configured
    decision INTEGER,         -- of a payoff
    request TEXT,             -- of a decision: the client's id
    body BLOB NOT NULL        -- MessagePack
) STRICT;
CREATE TABLE pruned (before INTEGER NOT NULL) STRICT;
INSERT INTO pruned VALUES (0);
-- The database itself refuses a second payoff of a decision.
CREATE UNIQUE INDEX payoff_of ON journal (decision) WHERE decision IS NOT NULL;
CREATE INDEX decision_for ON journal (request, number) WHERE request IS NOT NULL;
"""
# All rows in one statement: sqlite3 releases the interpreter's lock at every step, and getting it
# back from a busy event loop takes up to a millisecond each time.
MAX_ROWS = 128  # in one INSERT; each number of rows is a prepared statement of its own


@lru_cache(maxsize=MAX_ROWS)
def _insert(size: int) -> str:
    return f"INSERT INTO journal VALUES {', '.join(['(?, ?, ?, ?, ?, ?)'] * size)}"


class SqliteJournal(sql.SqlJournal):
    """A journal in a file; `append` has a connection of its own.

    >>> from topstory.serving.journal.records import Paid
    >>> journal = SqliteJournal(Path(":memory:"))
    >>> journal.append([Entry(1, 1_000, Paid(0, 1.0))])
    >>> journal.last()
    (1, 1000)
    """

    remote = False

    def __init__(self, path: Path, lock_seconds: float = 1.0) -> None:
        self.path = path
        self._lock_seconds = lock_seconds
        self._writer = self._connect()
        try:
            self._prepare()
        except (sqlite3.Error, JournalError) as error:
            self._writer.close()
            raise JournalError(f"{path}: {error}") from None
        # In memory there is nothing to share: one connection does both.
        self._reader = self._writer if str(path) == ":memory:" else self._connect()

    def _connect(self) -> sqlite3.Connection:
        try:
            self._keep_private()
            connection = sqlite3.connect(
                self.path,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=2 * MAX_ROWS,
            )
            connection.execute(f"PRAGMA busy_timeout = {int(self._lock_seconds * 1000)}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA journal_size_limit = 67108864")
        except sqlite3.Error as error:
            raise JournalError(f"{self.path}: {error}") from None
        return connection

    def _keep_private(self) -> None:
        """Nobody else may read contexts; SQLite gives its other files the same mode."""
        if str(self.path) != ":memory:":
            with suppress(OSError):  # SQLite reports what is wrong
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
                self.path.chmod(0o600)

    def _prepare(self) -> None:
        found = self._writer.execute("PRAGMA application_id").fetchone()[0]
        version = self._writer.execute("PRAGMA user_version").fetchone()[0]
        if found == 0 and not self._writer.execute("SELECT 1 FROM sqlite_master").fetchone():
            self._writer.executescript(
                f"BEGIN; {_SCHEMA} PRAGMA application_id = {APPLICATION}; "
                f"PRAGMA user_version = {VERSION}; COMMIT;"
            )
        elif found != APPLICATION:
            raise JournalError("not a topstory journal")
        elif version != VERSION:
            raise JournalError(f"the journal has version {version}, this topstory reads {VERSION}")

    def append(self, entries: Sequence[Entry]) -> None:
        """Write all of them in one durable commit, or none: JournalError."""
        rows = [sql.row(entry) for entry in entries]
        try:
            if len(rows) <= MAX_ROWS:  # one statement is a transaction by itself
                self._writer.execute(_insert(len(rows)), list(chain.from_iterable(rows)))
                return
            self._writer.execute("BEGIN IMMEDIATE")
            for done in range(0, len(rows), MAX_ROWS):
                some = rows[done : done + MAX_ROWS]
                self._writer.execute(_insert(len(some)), list(chain.from_iterable(some)))
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo()
            raise JournalError(str(error)) from None
        except Exception:
            self._undo()
            raise

    def probe(self) -> None:
        """Commit something that leaves no trace: JournalError if nothing can be written now."""
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            self._writer.execute(sql.PROBE, (sql.PROBE_BODY,))
            self._writer.execute(sql.UNDO_PROBE)
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo()
            raise JournalError(str(error)) from None

    def prune(self, before: int) -> int:
        """Delete decisions below that number, and their payoffs; how many records went."""
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            gone = self._writer.execute(sql.PRUNE, (before, before)).rowcount
            self._writer.execute("UPDATE pruned SET before = max(before, ?)", (before,))
            self._writer.execute("COMMIT")
            return gone
        except sqlite3.Error as error:
            self._undo()
            raise JournalError(str(error)) from None

    def copy(self, target: Path) -> None:
        """Write a consistent copy to a file that must not exist yet.

        The service goes on committing meanwhile: in WAL mode readers and the writer do not wait
        for each other. SQLite's backup API would restart at every commit of another process.
        """
        try:
            self._reader.execute("VACUUM INTO ?", (str(target),))
            target.chmod(0o600)
        except sqlite3.Error as error:
            raise JournalError(f"{self.path}: cannot be copied: {error}") from None

    def check(self) -> None:
        """Read every page: JournalError if one is damaged."""
        found = self._one("PRAGMA quick_check(1)")[0]
        if found != "ok":
            raise JournalError(f"{self.path}: damaged: {found}")

    def pruned(self) -> int:
        """The number below which decisions were deleted; 0 if none were."""
        return int(self._one("SELECT before FROM pruned")[0])

    def reopen(self) -> SqliteJournal:
        """The same journal on connections of its own, for another thread."""
        return SqliteJournal(self.path, self._lock_seconds)

    def close(self) -> None:
        """Close both connections."""
        for connection in (self._reader, self._writer):
            with suppress(sqlite3.Error):
                connection.close()

    def _undo(self) -> None:
        with suppress(sqlite3.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _one(self, query: str, *parameters: Any) -> Any:
        try:
            return self._reader.execute(query, parameters).fetchone()
        except sqlite3.Error as error:
            raise JournalError(str(error)) from None

    def _stream(self, query: str, *parameters: Any) -> Iterator[Any]:
        try:
            # No `yield from`: if it is abandoned halfway it closes the cursor, perhaps too late.
            for found in self._reader.execute(query, parameters):  # noqa: UP028
                yield found
        except sqlite3.Error as error:
            raise JournalError(str(error)) from None
