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
from topstory.serving.journal.chain import Head
from topstory.serving.journal.journal import (
    TAKEN_OVER,
    DamagedJournal,
    JournalError,
    JournalLost,
)
from topstory.serving.journal.records import Entry
from topstory.serving.journal.sqlite_schema import prepare

# All rows in one statement: sqlite3 releases the interpreter's lock at every step, and getting it
# back from a busy event loop takes up to a millisecond each time.
MAX_ROWS = 128  # in one INSERT; each number of rows is a prepared statement of its own


_OWNED = "(SELECT epoch FROM meta) = ?"
_FORMS = 5  # of a batch that are usual: what the rows have, and whether all are of one kind


@lru_cache(maxsize=_FORMS * MAX_ROWS)
def _insertion(size: int, kind: str | None, pays: bool, named: bool) -> str:
    """Insert so many rows, if the epoch is still this one: else none.

    Args:
        size: how many.
        kind: of all records; None if they are of several.
        pays: whether there is a payoff among them.
        named: whether a decision has a request id.

    A parameter takes SQLite longer than a constant: half the columns of most batches are constant.
    """
    columns = ["?", "?", f"'{kind}'" if kind else "?", "?" if pays else "NULL"]
    columns += ["?" if named else "NULL", "?", "?"]
    rows = [f"({', '.join(columns)}, NULL)"] * (size - 1) + [f"({', '.join(columns)}, ?)"]
    return f"INSERT INTO journal SELECT * FROM (VALUES {', '.join(rows)}) WHERE {_OWNED}"


class SqliteJournal(sql.SqlJournal):
    """A journal in a file; `append` has a connection of its own.

    Args:
        path: the file.
        lock_seconds: the longest wait while another program locks it.
        own: whether this is the service that writes. Every owner has a new epoch, and a commit
            with an older one is refused: the newest owner is the only one. Others only read.

    >>> from topstory.serving.journal.records import Paid
    >>> journal = SqliteJournal(Path(":memory:"), own=True)
    >>> journal.append([Entry(1, 1_000, Paid(0, 1.0))])
    >>> journal.last()
    (1, 1000)
    """

    remote = False

    def __init__(self, path: Path, lock_seconds: float = 1.0, own: bool = False) -> None:
        self.path = path
        self._lock_seconds, self._own = lock_seconds, own
        # The file, and its log of recent commits; and which files had those names when it began.
        self._names = () if str(path) == ":memory:" else (str(path), f"{path}-wal")
        self._files: list[tuple[int, int]] | None = None
        self._writer = self._reader = self._connect()
        try:
            self.version = prepare(self._writer, own)
            # In memory there is nothing to share: one connection does both.
            if str(path) != ":memory:":
                self._reader = self._connect()
            if own:
                self._epoch = self._next_epoch()
                self.beat()
                self.head = self._attempt = self._find_head()
        except (sqlite3.Error, JournalError) as error:
            self.close()
            kind = type(error) if isinstance(error, JournalError) else JournalError
            raise kind(f"{path}: {error}") from None

    def _connect(self) -> sqlite3.Connection:
        try:
            self._keep_private()
            connection = sqlite3.connect(
                self.path,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=_FORMS * MAX_ROWS,
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
            # A file that exists is not opened: closing it would release SQLite's locks, which
            # belong to the process, and another could then remove the log of recent commits.
            with suppress(OSError):  # SQLite reports what is wrong
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            with suppress(OSError):
                self.path.chmod(0o600)

    def _next_epoch(self) -> int:
        found = self._writer.execute("UPDATE meta SET epoch = epoch + 1 RETURNING epoch")
        return int(found.fetchall()[0][0])

    def _find_head(self) -> Head:
        """The end of the last batch."""
        checkpoint = self.checkpoint()
        assert checkpoint is not None
        number, _ = self.last()
        if number <= checkpoint.number:
            return checkpoint
        mark = self.mark(number)
        if mark is None:
            raise DamagedJournal(f"the batch of the last record, {number}, has no end")
        return Head(number, mark)

    def append(self, entries: Sequence[Entry]) -> None:
        """Write all of them in one durable commit, or none: JournalError."""
        if not self._own:
            raise JournalError("this connection only reads")
        columns, self._attempt = sql.columns(entries, self.head.mark, self._epoch)
        try:
            if len(entries) > MAX_ROWS:
                self._writer.execute("BEGIN IMMEDIATE")  # else one statement is a transaction
                written = 0
                for done in range(0, len(entries), MAX_ROWS):
                    some = slice(done, done + MAX_ROWS)
                    written += self._insert(sql.Columns._make(each[some] for each in columns))
                self._writer.execute("COMMIT")
            else:
                written = self._insert(columns)
        except sqlite3.Error as error:
            self._undo()
            raise JournalError(str(error)) from None
        except Exception:
            self._undo()
            raise
        if not written:
            raise JournalLost(TAKEN_OVER)
        self.head = self._attempt  # also if the file is no longer where it was: it may come back
        self.beat()  # before anybody is told: a file that was deleted takes commits all the same

    def _insert(self, columns: sql.Columns) -> int:
        """How many rows were written: none if this is no longer the owner."""
        numbers, times, kinds, decisions, requests, bodies, checksums, marks = columns
        size = len(numbers)
        kind = kinds[0] if kinds.count(kinds[0]) == size else None
        pays, named = decisions.count(None) < size, requests.count(None) < size
        varying: list[Sequence[Any]] = [numbers, times]
        if kind is None:
            varying.append(kinds)
        if pays:
            varying.append(decisions)
        if named:
            varying.append(requests)
        values = [*chain.from_iterable(zip(*varying, bodies, checksums, strict=True))]
        values += (marks[-1], self._epoch)
        return self._writer.execute(_insertion(size, kind, pays, named), values).rowcount

    def committed(self, entries: Sequence[Entry]) -> bool:
        """Whether the last `append`, which failed, is in the journal all the same."""
        self.beat()
        attempt = self._attempt
        if attempt.number == entries[-1].number and self.mark(attempt.number) == attempt.mark:
            self.head = attempt
            return True
        return False

    def beat(self) -> None:
        """Check that the files are still those of the first time: JournalLost."""
        try:
            found = [os.stat(name) for name in self._names]
        except FileNotFoundError:
            found = []
        except OSError as error:
            raise JournalError(str(error)) from None
        files = [(each.st_dev, each.st_ino) for each in found]
        if self._files is None:
            self._files = files
        if files != self._files:
            raise JournalLost(
                f"{self.path} was deleted or replaced while the service ran: stop the service, "
                "and restore the file"
            )

    def probe(self) -> None:
        """Commit something that leaves no trace: JournalError if nothing can be written now."""
        self.beat()
        try:
            self._begin()
            self._writer.execute(sql.PROBE, (sql.PROBE_BODY,))
            self._writer.execute(sql.UNDO_PROBE)
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo()
            raise JournalError(str(error)) from None

    def prune(self, before: int) -> int:
        """Delete decisions below that number, and their payoffs; how many records went."""
        try:
            self._begin()
            ((last,),) = self._writer.execute(sql.LAST_PRUNED, (before, before)).fetchall()
            end = self._writer.execute(sql.BATCH_END, (last,)).fetchone()
            if end is not None:
                self._writer.execute(
                    "UPDATE meta SET through = ?, mark = ? WHERE through < ?", (*end, last)
                )
            gone = self._writer.execute(sql.PRUNE, (before, before)).rowcount
            self._writer.execute("UPDATE meta SET before = max(before, ?)", (before,))
            self._writer.execute("COMMIT")
            return gone
        except sqlite3.Error as error:
            self._undo()
            raise JournalError(str(error)) from None

    def _begin(self) -> None:
        """Begin to write, as the owner."""
        self._writer.execute("BEGIN IMMEDIATE")
        ((owned,),) = self._writer.execute(f"SELECT {_OWNED}", (self._epoch,)).fetchall()
        if not owned:
            self._undo()
            raise JournalLost(TAKEN_OVER)

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

    def _check_database(self) -> None:
        """Read every page, and compare the indices with the table."""
        found = self._one("PRAGMA integrity_check(1)")[0]
        if found != "ok":
            raise DamagedJournal(f"the database is damaged: {found}")

    def pruned(self) -> int:
        """The number below which decisions were deleted; 0 if none were."""
        return int(self._one(f"SELECT before FROM {'meta' if self.version > 1 else 'pruned'}")[0])

    def reopen(self) -> SqliteJournal:
        """The same journal on connections of its own, for another thread; it only reads."""
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
