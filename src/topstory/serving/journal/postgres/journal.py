"""The journal in a PostgreSQL database: on another machine, or with a standby there.

One service owns it. Every commit checks in its own transaction that the owner's epoch is still the
last one. An owner that is alive renews its lease every second; if it does not, a standby takes over
with the next epoch, and makes the same state from the same records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg
from psycopg.sql import SQL

from topstory.serving.journal import sql
from topstory.serving.journal.chain import Head
from topstory.serving.journal.journal import (
    TAKEN_OVER,
    JournalError,
    JournalLost,
    JournalOwned,
)
from topstory.serving.journal.postgres.arrays import (
    BigIntColumn,
    BytesColumn,
    Column,
    IntegerColumn,
    TextColumn,
)
from topstory.serving.journal.postgres.connection import (
    ANSWER_GRACE,
    POOLED,
    Connection,
    NoAnswer,
    connect,
    one_line,
    owner_connection,
    without_secrets,
)
from topstory.serving.journal.postgres.fleet_tables import EDIT_LOCK
from topstory.serving.journal.postgres.lock import take_lock
from topstory.serving.journal.postgres.schema import VERSION, check_version, prepare
from topstory.serving.journal.records import Decided, Entry, Paid, Placed, Promoted, Removed

COMMIT_SECONDS = 5.0  # a commit may take this long
MIGRATION_SECONDS = 3_600.0  # to bring the tables up to date, or to delete old records
STREAM_SECONDS = 60.0  # for the next rows of a long answer

# Who may write: the owner of the last epoch, after the batch that it knows, in its own session.
_MINE = "term = %s AND head_mark = %s AND current_setting('topstory.session', true) = %s"
_INSERT = f"""
WITH mine AS (
    UPDATE meta SET head = %s, head_mark = %s, renewed = clock_timestamp()
    WHERE {_MINE} RETURNING true)
INSERT INTO journal SELECT * FROM unnest(
    %s::bigint[], %s::bigint[], %s::text[], %s::bigint[], %s::text[], %s::bytea[],
    %s::integer[], %s::bytea[], %s::bigint[])
WHERE EXISTS (SELECT FROM mine)
"""
_EDITS = (Placed, Removed, Promoted)
# Whoever decides from here on must have seen the edit.
_EDITION = """
INSERT INTO edition SELECT pool, %s FROM unnest(%s::text[]) AS pool
ON CONFLICT (pool) DO UPDATE SET number = excluded.number
"""
_RENEW = f"UPDATE meta SET renewed = clock_timestamp() WHERE {_MINE}"


class JournalClaim(NamedTuple):
    """What a candidate for a journal has in readiness."""

    connection: Connection  # as `waiting_connection` makes it
    silent: int | None  # the epoch of an owner that shows no sign of life: it is replaced


def waiting_connection(url: str, lock_seconds: float) -> Connection:
    """A connection that may take the journal, at once or later; JournalError."""
    return owner_connection(url, COMMIT_SECONDS, lock_seconds)


class PostgresJournal(sql.SqlJournal):
    """A journal by a URL such as `postgresql://user@host/database`.

    Args:
        url: of the database; libpq's variables (`PGPASSWORD`, …) supply what it leaves out.
        lock_seconds: the longest wait for the lock, or for a lookup.
        own: whether this is the service that writes; others only read.
        claim: of a candidate that waited for the journal.
    """

    remote = True
    head: Head

    def __init__(
        self,
        url: str,
        lock_seconds: float = 1.0,
        own: bool = True,
        claim: JournalClaim | None = None,
    ) -> None:
        self._url, self._lock_seconds, self._own, self._claim = url, lock_seconds, own, claim
        self._writer: Connection | None = None
        self._reader: Connection | None = None
        self._epoch: int | None = None
        self._attempt: Head | None = None  # a batch that may be in the journal
        self._backend = 0  # the server's process for the writer
        self.name = without_secrets(url)
        self.version = VERSION
        try:
            if own:
                self._ready_to_write()
            else:
                self.version = int(self._one("SELECT version FROM meta")[0])
                check_version(self.version)
        except JournalError as error:
            self.close()
            raise type(error)(one_line(error)) from None

    def append(self, entries: Sequence[Entry]) -> None:
        """Write all of them in one durable commit, or none: JournalError."""
        for again in (False, True):
            writer = self._ready_to_write()
            assert self._epoch is not None
            columns, end = sql.columns(entries, self.head.mark, self._epoch)
            self._attempt = end
            values = (*end, *self._mine(writer), *_arrays(columns, entries))
            try:
                written = self._write(writer, values, end.number, _edited(entries))
            except psycopg.Error as error:
                if again or not writer.closed or isinstance(error, NoAnswer):
                    raise JournalError(one_line(error)) from None
                # The connection was lost, perhaps after the commit: check, and else try once more.
                if self.committed(entries):
                    return
                continue
            if written:
                self.head = end
                return
            raise self._refused(writer)

    def _write(
        self, writer: Connection, values: tuple[Any, ...], last: int, edited: list[str]
    ) -> int:
        """Insert a batch; how many rows there are, 0 if it was not this owner's to write."""
        if not edited:
            return writer.execute(_INSERT, values).rowcount
        with writer.transaction():
            # No front end is about to commit a decision that was made without the edit.
            writer.execute("SELECT pg_advisory_xact_lock(%s)", (EDIT_LOCK,))
            written = writer.execute(_INSERT, values).rowcount
            if written:
                writer.execute(_EDITION, (last, edited))
        return written

    def run_as_owner(self, *statements: tuple[str, Sequence[Any]]) -> None:
        """Run statements in one transaction, if this is still the owner: else JournalLost."""
        writer = self._ready_to_write()
        try:
            with writer.transaction():
                if not writer.execute(_RENEW, self._mine(writer)).rowcount:
                    raise self._refused(writer)
                for statement, parameters in statements:
                    writer.execute(SQL(statement), parameters)
        except psycopg.Error as error:
            raise JournalError(one_line(error)) from None

    @property
    def epoch(self) -> int:
        """Of this owner."""
        assert self._epoch is not None
        return self._epoch

    def committed(self, entries: Sequence[Entry]) -> bool:
        """Whether the last `append`, which failed, is in the journal all the same."""
        writer = self._ready_to_write()
        attempt = self._attempt
        if attempt is None or attempt.number != entries[-1].number:
            return False
        if self._head_of(writer) != attempt:
            return False
        self.head = attempt
        return True

    def beat(self) -> None:
        """Renew the lease; JournalLost if the journal is no longer this owner's."""
        writer = self._ready_to_write()
        try:
            renewed = writer.execute(_RENEW, self._mine(writer)).rowcount
        except psycopg.Error as error:
            raise JournalError(one_line(error)) from None
        if not renewed:
            raise self._refused(writer)

    def probe(self) -> None:
        """Commit something that leaves no trace: JournalError if nothing can be written now."""
        self.beat()
        writer = self._ready_to_write()
        try:
            with writer.transaction():
                writer.execute(_query(sql.PROBE), (sql.PROBE_BODY,))
                writer.execute(_query(sql.UNDO_PROBE))
        except psycopg.Error as error:
            raise JournalError(one_line(error)) from None

    def prune(self, before: int) -> int:
        """Delete decisions below that number, and their payoffs; how many records went."""
        writer = self._ready_to_write()
        try:
            writer.seconds = MIGRATION_SECONDS  # it may delete very many
            with writer.transaction():
                writer.execute("SET LOCAL statement_timeout = 0")
                ((last,),) = writer.execute(_query(sql.LAST_PRUNED), (before, before)).fetchall()
                end = writer.execute(_query(sql.BATCH_END), (last,)).fetchone()
                gone = writer.execute(_query(sql.PRUNE), (before, before)).rowcount
                # Only now, for others wait for the row of the owner; without it nothing is deleted.
                if not writer.execute(_RENEW, self._mine(writer)).rowcount:
                    raise self._refused(writer)
                if end is not None:
                    writer.execute(
                        "UPDATE meta SET through = %s, mark = %s WHERE through < %s", (*end, last)
                    )
                writer.execute("UPDATE meta SET before = greatest(before, %s)", (before,))
            return gone
        except psycopg.Error as error:
            raise JournalError(one_line(error)) from None
        finally:
            writer.seconds = COMMIT_SECONDS + ANSWER_GRACE

    def pruned(self) -> int:
        """The number below which decisions were deleted; 0 if none were."""
        return int(self._one("SELECT before FROM meta")[0])

    def reopen(self) -> PostgresJournal:
        """The same journal on a connection of its own, for another thread; it only reads."""
        return PostgresJournal(self._url, self._lock_seconds, own=False)

    def close(self) -> None:
        """Close all connections."""
        for connection in (self._reader, self._writer):
            if connection is not None:
                with suppress(psycopg.Error):
                    connection.close()
        self._reader = self._writer = None

    # -- ownership --

    def _ready_to_write(self) -> Connection:
        """The owner's connection; a lost one is made again, unless another service took over."""
        if self._writer is not None and not self._writer.closed:
            return self._writer
        if not self._own:
            raise JournalError("this connection only reads")
        self._writer = None
        claim, self._claim = self._claim, None
        if claim is None:
            claim = JournalClaim(waiting_connection(self._url, self._lock_seconds), None)
        connection = claim.connection
        try:
            self._take(connection, claim.silent)
        except (psycopg.Error, JournalError) as error:
            with suppress(psycopg.Error):
                connection.close()
            if isinstance(error, JournalError):
                raise
            raise JournalError(one_line(error)) from None
        self._writer, self._backend = connection, connection.info.backend_pid
        return connection

    def _take(self, connection: Connection, silent: int | None) -> None:
        try:
            take_lock(connection, self._backend, starting=self._epoch is None, silent=silent)
        except JournalOwned:
            if self._epoch is None or self._term(connection) == self._epoch:
                raise
            raise JournalLost(TAKEN_OVER) from None
        if self._epoch is None:
            connection.seconds = MIGRATION_SECONDS
            prepare(connection)
            connection.seconds = COMMIT_SECONDS + ANSWER_GRACE
        # Of its own lost connections, too, none can write any more: they had an older epoch. One
        # that is just writing is waited for.
        found = connection.execute(
            "UPDATE meta SET term = term + 1, renewed = clock_timestamp() "
            "WHERE term = coalesce(%s, term) RETURNING term",
            (self._epoch,),
        ).fetchone()
        if found is None:
            raise JournalLost(TAKEN_OVER)
        first, self._epoch = self._epoch is None, found[0]
        if first:
            self.head = self._head_of(connection)
        else:
            self._check_head(connection)

    def _term(self, connection: Connection) -> int:
        ((term,),) = connection.execute("SELECT term FROM meta").fetchall()
        return int(term)

    def _mine(self, writer: Connection) -> tuple[Any, ...]:
        return self._epoch, self.head.mark, writer.session

    def _head_of(self, connection: Connection) -> Head:
        found = connection.execute("SELECT head, head_mark FROM meta").fetchone()
        assert found is not None
        return Head(int(found[0]), bytes(found[1]))

    def _check_head(self, connection: Connection) -> None:
        """JournalLost if the journal does not end where this owner's last commit was."""
        found = self._head_of(connection)
        if found not in (self.head, self._attempt):
            raise JournalLost(
                f"the database has lost records: its journal ends at record {found.number}, but "
                f"record {self.head.number} was committed. Was an older copy restored, or a "
                "replica promoted that was behind? Stop the service, and restore the database"
            )

    def _refused(self, writer: Connection) -> JournalError:
        """Why a commit was not this owner's to make."""
        try:
            found = writer.execute(
                "SELECT term, current_setting('topstory.session', true) FROM meta"
            ).fetchone()
            if found is None or found[0] != self._epoch:
                return JournalLost(TAKEN_OVER)
            if found[1] != writer.session:
                return JournalLost(POOLED)
            self._check_head(writer)
        except JournalLost as lost:
            return lost
        except psycopg.Error as error:
            return JournalError(one_line(error))
        return JournalError("the commit was refused; it is tried again")

    # -- connections --

    def _ready_to_read(self) -> Connection:
        if self._reader is None or self._reader.closed:
            self._reader = self._connect(self._lock_seconds)
        return self._reader

    def _connect(self, seconds: float) -> Connection:
        return connect(self._url, seconds, self._lock_seconds)

    def _last(self) -> Any:
        # The owner asks by the connection that holds its epoch.
        return self._first(self._ready_to_write if self._own else self._ready_to_read, sql.LAST)

    def _one(self, query: str, *parameters: Any) -> Any:
        return self._first(self._ready_to_read, query, *parameters)

    def _first(self, ready: Callable[[], Connection], query: str, *parameters: Any) -> Any:
        for again in (False, True):  # a lost connection is made again
            connection = ready()
            try:
                return connection.execute(_query(query), parameters).fetchone()
            except psycopg.Error as error:
                if again or not connection.closed:
                    raise JournalError(one_line(error)) from None
        return None

    def _stream(self, query: str, *parameters: Any) -> Iterator[Any]:
        """Row by row, on a connection of its own: a whole journal may be larger than memory."""
        connection = self._connect(STREAM_SECONDS)
        try:
            connection.execute("SET statement_timeout = 0")
            with connection, connection.cursor() as cursor:
                yield from cursor.stream(_query(query), parameters, size=1_000)
        except psycopg.Error as error:
            raise JournalError(one_line(error)) from None

    def _end(self) -> int:
        """The number of the last record, by the row that every commit changes."""
        return 0 if self.version == 1 else int(self._one("SELECT head FROM meta")[0])

    def _check_database(self) -> None:
        """PostgreSQL checks its pages by itself, if it was set up to."""


def _arrays(found: sql.Columns, entries: Sequence[Entry]) -> tuple[Column, ...]:
    records = [each.record for each in entries]
    origins = [each.origin if isinstance(each, (Decided, Paid)) else None for each in records]
    return (
        *(BigIntColumn(found.numbers), BigIntColumn(found.times), TextColumn(found.kinds)),
        *(BigIntColumn(found.decisions), TextColumn(found.requests), BytesColumn(found.bodies)),
        *(IntegerColumn(found.checksums), BytesColumn(found.marks), BigIntColumn(origins)),
    )


def _edited(entries: Sequence[Entry]) -> list[str]:
    """The pools that an editor changed."""
    return sorted({each.record.pool for each in entries if isinstance(each.record, _EDITS)})


def _query(query: str) -> Any:
    """The query with psycopg's placeholders."""
    return SQL(query.replace("?", "%s"))
