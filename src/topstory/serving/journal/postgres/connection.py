"""Connections to PostgreSQL that never wait for longer than they may."""

from __future__ import annotations

import secrets
import selectors
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg import waiting
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Composable, Literal

from topstory.serving.journal.journal import JournalError, JournalLost
from topstory.serving.journal.postgres.arrays import DUMPERS

T = TypeVar("T")

CONNECT_SECONDS = 2  # the least that libpq takes
ANSWER_GRACE = 0.5  # the server should end a statement by itself; then the connection is given up
POOLED = (
    "a connection pooler that pools transactions (such as pgbouncer with pool_mode = transaction) "
    "is between this service and its database: what the service sets for its session is lost. "
    "Connect to the database itself, or set pool_mode = session"
)
_CHECK_SESSION = "SELECT current_setting('topstory.session', true)"


class NoAnswer(psycopg.OperationalError):
    """The server did not answer in time; the connection is closed."""


class Connection(psycopg.Connection[Any]):
    """A connection that is closed if the server does not answer in time."""

    seconds = 5.0  # for an answer
    session = ""  # what only this session has been told

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Run an operation; OperationalError, and no connection any more, if it takes too long."""
        deadline = monotonic() + self.seconds
        try:
            wanted = next(gen)
            with selectors.DefaultSelector() as selector:
                while True:
                    key = selector.register(self.pgconn.socket, int(wanted))
                    found = selector.select(max(0.0, deadline - monotonic()))
                    selector.unregister(key.fileobj)
                    if not found:
                        self.pgconn.finish()
                        raise NoAnswer(f"no answer within {self.seconds:g} seconds")
                    wanted = gen.send(waiting.Ready(found[0][1]))
        except StopIteration as ended:
            answer: T = ended.value
            return answer


def connect(url: str, seconds: float, lock_seconds: float) -> Connection:
    """A connection whose statements may take this long; JournalError."""
    try:
        connection = Connection.connect(
            url,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            client_encoding="utf8",
            tcp_user_timeout=round(1000 * seconds),  # a dead machine sends nothing
        )
        connection.seconds = seconds + ANSWER_GRACE
        for column, dumper in DUMPERS:
            connection.adapters.register_dumper(column, dumper)
        # Whatever the server's default: an acknowledged commit is on its disk.
        settings: list[Composable] = [
            SQL("SET synchronous_commit = on; SET search_path = topstory")
        ]
        for setting, value in (
            ("statement", seconds),
            ("lock", lock_seconds),
            ("idle_in_transaction_session", seconds),
        ):
            milliseconds = Literal(round(value * 1000))
            settings.append(SQL(f"SET {setting}_timeout = {{}}").format(milliseconds))
        connection.execute(SQL("; ").join(settings))  # in one round trip
    except psycopg.Error as error:
        raise JournalError(one_line(error)) from None
    return connection


def owner_connection(url: str, seconds: float, lock_seconds: float) -> Connection:
    """A connection for the owner of a journal, in a session with a name; JournalError."""
    connection = connect(url, seconds, lock_seconds)
    try:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":  # a request id that it cannot store would fail a whole commit
            raise JournalError(f"the database's encoding is {encoding}: create one with UTF8")
        name_session(connection, url)
    except (psycopg.Error, JournalError) as error:
        with suppress(psycopg.Error):
            connection.close()
        if isinstance(error, JournalError):
            raise
        raise JournalError(one_line(error)) from None
    return connection


def name_session(connection: Connection, url: str) -> None:
    """Give the session a name that its statements can check; JournalLost if it has none.

    A pooler gives each transaction whatever connection to the database is free. So another
    client's name shows up in this session, or this one's is gone.
    """
    connection.session = secrets.token_hex(8)
    name = "SELECT set_config('topstory.session', %s, false)"
    connection.execute(name, (connection.session,))
    with Connection.connect(url, autocommit=True, connect_timeout=CONNECT_SECONDS) as other:
        other.execute(name, ("other",))
        for _ in range(3):  # more than one connection of the pooler may be free
            check_session(connection)
            other.execute(_CHECK_SESSION)


def check_session(connection: Connection) -> None:
    """JournalLost if this is not the session that was named."""
    found = connection.execute(_CHECK_SESSION).fetchone()
    if found is None or found[0] != connection.session:
        raise JournalLost(POOLED)


def one_line(error: Exception) -> str:
    """The message on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def without_secrets(url: str) -> str:
    """The address without user and password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # libpq's own message may quote the password.
        raise JournalError(
            "not a PostgreSQL URL; write special characters in user name and password as %XX"
        ) from None
    return f"postgresql://{parts.get('host', 'localhost')}/{parts.get('dbname', '')}"
