"""The lock of the one service that writes, and the lease that shows that its owner is alive."""

from __future__ import annotations

import psycopg

from topstory.serving.journal.journal import JournalOwned
from topstory.serving.journal.postgres.connection import Connection

OWNER_LOCK = 0x7453544A  # "tSTJ": the advisory lock
LEASE_SECONDS = 5.0  # an owner that shows no sign of life for so long can be replaced

_HOLDER = """
SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = %s AND classid = 0
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def take_lock(
    connection: Connection, own_backend: int, *, starting: bool, silent: int | None = None
) -> None:
    """Take the lock, from a lost connection of its own, or from an owner that is gone.

    Args:
        connection: that is to hold it.
        own_backend: the server's process of the connection that this service had; 0: none.
        starting: whether an owner that shows no sign of life may be replaced.
        silent: the epoch of one that shows none; None: one whose lease is over.
    """
    if own_backend and own_backend in _holders(connection):
        connection.execute("SELECT pg_terminate_backend(%s, 1000)", (own_backend,))
    if starting:  # before it waits for a lock that nobody will give back
        _end_if_silent(connection, silent)
    if _try_lock(connection):
        return
    if starting and _end_if_silent(connection, silent) and _try_lock(connection):
        return
    raise JournalOwned("another service owns this journal: stop it first")


def _end_if_silent(connection: Connection, silent: int | None) -> bool:
    """End the connections of an owner that shows no sign of life; whether it is there."""
    gone = _lease_is_over(connection) if silent is None else _term(connection) == silent
    for pid in _holders(connection) if gone else ():
        connection.execute("SELECT pg_terminate_backend(%s, 1000)", (pid,))
    return gone


def _try_lock(connection: Connection) -> bool:
    try:
        connection.execute("SELECT pg_advisory_lock(%s)", (OWNER_LOCK,))
    except psycopg.errors.LockNotAvailable:
        return False
    return True


def _holders(connection: Connection) -> list[int]:
    return [pid for (pid,) in connection.execute(_HOLDER, (OWNER_LOCK,)).fetchall()]


def _term(connection: Connection) -> int | None:
    found = connection.execute("SELECT term FROM meta").fetchone()
    return None if found is None else int(found[0])


def _lease_is_over(connection: Connection) -> bool:
    """Whether the owner has shown no sign of life; one of version 1 gives none, nor does nobody."""
    try:
        found = connection.execute(
            "SELECT renewed + make_interval(secs => %s) < clock_timestamp() FROM meta",
            (LEASE_SECONDS,),
        ).fetchone()
    except (psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedTable):
        return False
    return found is not None and bool(found[0])
