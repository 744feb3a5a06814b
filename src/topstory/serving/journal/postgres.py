"""The journal in a PostgreSQL database: on another machine, or with a standby there.

One service owns it, and holds an advisory lock as long as it is connected. A standby can start once
the lock is free, and makes the same state from the same records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Literal

from topstory.serving.journal import sql
from topstory.serving.journal.journal import JournalError
from topstory.serving.journal.records import Entry

VERSION = 1
OWNER_LOCK = 0x7453544A  # "tSTJ": the advisory lock
COMMIT_SECONDS = 10.0  # a commit may take this long

_SCHEMA = f"""
CREATE SCHEMA IF NOT EXISTS topstory;
CREATE TABLE IF NOT EXISTS topstory.journal (
    number BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,       -- microseconds since 1970
    kind TEXT NOT NULL,       -- Decided, Paid, Placed, Removed, Opened, Configured
    decision BIGINT,          -- of a payoff
    request TEXT,             -- of a decision: the client's id
    body BYTEA NOT NULL       -- MessagePack
);
-- One row: `term` counts the services that have owned the journal.
CREATE TABLE IF NOT EXISTS topstory.meta (
    sole BOOLEAN PRIMARY KEY DEFAULT true CHECK (sole),
    version INTEGER NOT NULL, term BIGINT NOT NULL, before BIGINT NOT NULL
);
INSERT INTO topstory.meta VALUES (true, {VERSION}, 0, 0) ON CONFLICT DO NOTHING;
-- The database itself refuses a second payoff of a decision.
CREATE UNIQUE INDEX IF NOT EXISTS payoff_of
    ON topstory.journal (decision) WHERE decision IS NOT NULL;
CREATE INDEX IF NOT EXISTS decision_for
    ON topstory.journal (request, number) WHERE request IS NOT NULL;
"""
_INSERT = """
INSERT INTO journal SELECT * FROM unnest(
    %s::bigint[], %s::bigint[], %s::text[], %s::bigint[], %s::text[], %s::bytea[])
"""


class PostgresJournal(sql.SqlJournal):
    """A journal by a URL such as `postgresql://user@host/database`.

    Args:
        url: of the database; libpq's variables (`PGPASSWORD`, …) supply what it leaves out.
        lock_seconds: the longest wait for the lock, or for a lookup.
        own: whether this is the service that writes; others only read.
    """

    remote = True

    def __init__(self, url: str, lock_seconds: float = 1.0, own: bool = True) -> None:
        self._url, self._lock_seconds, self._own = url, lock_seconds, own
        self._writer: psycopg.Connection | None = None
        self._reader: psycopg.Connection | None = None
        self._term: int | None = None
        self.name = _without_secrets(url)
        try:
            if own:
                self._ready_to_write()
            self._check_version()
        except JournalError:
            self.close()
            raise

    def append(self, entries: Sequence[Entry]) -> None:
        """Write all of them in one durable commit, or none: JournalError."""
        columns = [list(column) for column in zip(*map(sql.row, entries), strict=True)]
        for again in (False, True):
            writer = self._ready_to_write()
            try:
                writer.execute(_INSERT, columns)
                return
            except psycopg.Error as error:
                if again or not writer.closed:
                    raise JournalError(_one_line(error)) from None
            # The connection was lost, perhaps after the commit: check, and else try once more.
            if self.last()[0] >= entries[-1].number:
                return

    def probe(self) -> None:
        """Commit something that leaves no trace: JournalError if nothing can be written now."""
        writer = self._ready_to_write()
        try:
            with writer.transaction():
                writer.execute(_query(sql.PROBE), (sql.PROBE_BODY,))
                writer.execute(_query(sql.UNDO_PROBE))
        except psycopg.Error as error:
            raise JournalError(_one_line(error)) from None

    def prune(self, before: int) -> int:
        """Delete decisions below that number, and their payoffs; how many records went."""
        writer = self._ready_to_write()
        try:
            with writer.transaction():
                writer.execute("SET LOCAL statement_timeout = 0")  # it may delete very many
                gone = writer.execute(_query(sql.PRUNE), (before, before)).rowcount
                writer.execute("UPDATE meta SET before = greatest(before, %s)", (before,))
            return gone
        except psycopg.Error as error:
            raise JournalError(_one_line(error)) from None

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

    # -- connections --

    def _ready_to_write(self) -> psycopg.Connection:
        """The owner's connection; a lost one is made again, unless another service took over."""
        if self._writer is not None and not self._writer.closed:
            return self._writer
        if not self._own:
            raise JournalError("this connection only reads")
        self._writer = None
        connection = self._connect(COMMIT_SECONDS)
        try:
            self._take(connection)
        except (psycopg.Error, JournalError) as error:
            with suppress(psycopg.Error):
                connection.close()
            raise JournalError(_one_line(error)) from None
        self._writer = connection
        return connection

    def _take(self, connection: psycopg.Connection) -> None:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":  # a request id that it cannot store would fail a whole commit
            raise JournalError(f"the database's encoding is {encoding}: create one with UTF8")
        try:
            connection.execute("SELECT pg_advisory_lock(%s)", (OWNER_LOCK,))
        except psycopg.errors.LockNotAvailable:
            raise JournalError("another service owns this journal: stop it first") from None
        if self._term is None:
            connection.execute(_SCHEMA)
            found = connection.execute("UPDATE meta SET term = term + 1 RETURNING term").fetchone()
            assert found is not None
            self._term = found[0]
            return
        found = connection.execute("SELECT term FROM meta").fetchone()
        if found is None or found[0] != self._term:
            raise JournalError("another service has taken over this journal: restart this one")

    def _ready_to_read(self) -> psycopg.Connection:
        if self._reader is None or self._reader.closed:
            self._reader = self._connect(self._lock_seconds)
        return self._reader

    def _connect(self, seconds: float) -> psycopg.Connection:
        """A connection whose statements may take this long; 0: no limit."""
        try:
            connection = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=2,  # the least that libpq takes
                client_encoding="utf8",
                tcp_user_timeout=round(COMMIT_SECONDS * 1000),  # a dead machine sends nothing
            )
            # Whatever the server's default: an acknowledged commit is on its disk.
            connection.execute("SET synchronous_commit = on")
            connection.execute("SET search_path = topstory")
            for setting, value in (("statement", seconds), ("lock", self._lock_seconds)):
                milliseconds = Literal(round(value * 1000))
                connection.execute(SQL(f"SET {setting}_timeout = {{}}").format(milliseconds))
        except psycopg.Error as error:
            raise JournalError(_one_line(error)) from None
        return connection

    def _check_version(self) -> None:
        version = int(self._one("SELECT version FROM meta")[0])
        if version != VERSION:
            raise JournalError(
                f"{self.name}: the journal has version {version}, this topstory reads {VERSION}"
            )

    def _last(self) -> Any:
        # The owner asks under its lock: so no commit of a lost connection is still on its way, and
        # the answer for an unconfirmed batch is final.
        return self._first(self._ready_to_write if self._own else self._ready_to_read, sql.LAST)

    def _one(self, query: str, *parameters: Any) -> Any:
        return self._first(self._ready_to_read, query, *parameters)

    def _first(self, ready: Callable[[], psycopg.Connection], query: str, *parameters: Any) -> Any:
        for again in (False, True):  # a lost connection is made again
            connection = ready()
            try:
                return connection.execute(_query(query), parameters).fetchone()
            except psycopg.Error as error:
                if again or not connection.closed:
                    raise JournalError(_one_line(error)) from None
        return None

    def _stream(self, query: str, *parameters: Any) -> Iterator[Any]:
        """Row by row, on a connection of its own: a whole journal may be larger than memory."""
        connection = self._connect(0)
        try:
            with connection, connection.cursor() as cursor:
                yield from cursor.stream(_query(query), parameters, size=1_000)
        except psycopg.Error as error:
            raise JournalError(_one_line(error)) from None


def _query(query: str) -> Any:
    """The query with psycopg's placeholders."""
    return SQL(query.replace("?", "%s"))


def _one_line(error: Exception) -> str:
    """The message on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _without_secrets(url: str) -> str:
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # libpq's own message may quote the password.
        raise JournalError(
            "not a PostgreSQL URL; write special characters in user name and password as %XX"
        ) from None
    return f"postgresql://{parts.get('host', 'localhost')}/{parts.get('dbname', '')}"
