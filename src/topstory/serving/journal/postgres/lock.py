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
    connection: Connection, own_backend: int, *, starting: bool, lease: float | None = None
) -> None:
    """Take the lock, from a lost connection of its own, or from an owner that is gone.

    Args:
        connection: that is to hold it.
        own_backend: the server's process of the connection that this service had; 0: none.
        starting: whether an owner whose lease is over may be replaced.
        lease: seconds after which it is; None: LEASE_SECONDS.
    """
    if own_backend and own_backend in _holders(connection):
        connection.execute("SELECT pg_terminate_backend(%s, 1000)", (own_backend,))
    lease = LEASE_SECONDS if lease is None else lease
    if starting:  # before it waits for a lock that nobody will give back
        _end_if_over(connection, lease)
    if _try_lock(connection):
        return
    if starting and _end_if_over(connection, lease) and _try_lock(connection):
        return
    raise JournalOwned("another service owns this journal: stop it first")


def _end_if_over(connection: Connection, lease: float) -> bool:
    """End the connections of an owner whose lease is over; whether it is."""
    over = _lease_is_over(connection, lease)
    for pid in _holders(connection) if over else ():
        connection.execute("SELECT pg_terminate_backend(%s, 1000)", (pid,))
    return over


def _try_lock(connection: Connection) -> bool:
    try:
        connection.execute("SELECT pg_advisory_lock(%s)", (OWNER_LOCK,))
    except psycopg.errors.LockNotAvailable:
        return False
    return True


def _holders(connection: Connection) -> list[int]:
    return [pid for (pid,) in connection.execute(_HOLDER, (OWNER_LOCK,)).fetchall()]


def _lease_is_over(connection: Connection, lease: float) -> bool:
    """Whether the owner has shown no sign of life; one of version 1 gives none, nor does nobody."""
    try:
        found = connection.execute(
            "SELECT renewed + make_interval(secs => %s) < clock_timestamp() FROM meta",
            (lease,),
        ).fetchone()
    except (psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedTable):
        return False
    return found is not None and bool(found[0])
