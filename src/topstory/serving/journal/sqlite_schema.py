"""The tables of a SQLite journal, and how those of earlier versions are brought up to date."""

from __future__ import annotations

import secrets
import sqlite3

import msgspec

from topstory.serving.journal.chain import MARK_BYTES, checksum
from topstory.serving.journal.journal import DamagedJournal, JournalError
from topstory.serving.journal.records import decode

APPLICATION = 0x7453544A  # "tSTJ"
VERSION = 2
OLDEST_VERSION = 1
_CHUNK = 10_000  # records that are read at once

_META = """
-- One row. `epoch` counts the owners: a commit by another than the last is refused. Up to the
-- record `through` some may be archived; `mark` is that of the batch that ends there.
CREATE TABLE meta (
    sole INTEGER PRIMARY KEY CHECK (sole = 1),
    epoch INTEGER NOT NULL, before INTEGER NOT NULL, through INTEGER NOT NULL, mark BLOB NOT NULL
) STRICT;
"""
_SCHEMA = f"""
CREATE TABLE journal (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,      -- microseconds since 1970
    kind TEXT NOT NULL,       -- the type of the record: Decided, Paid, Placed, …
    decision INTEGER,         -- of a payoff
    request TEXT,             -- of a decision: the client's id
    body BLOB NOT NULL,       -- MessagePack
    crc INTEGER,              -- checksum of number, time and body
    chain BLOB                -- in the last record of a batch: its mark
) STRICT;
{_META}
-- The database itself refuses a second payoff of a decision.
CREATE UNIQUE INDEX payoff_of ON journal (decision) WHERE decision IS NOT NULL;
CREATE INDEX decision_for ON journal (request, number) WHERE request IS NOT NULL;
"""


def prepare(connection: sqlite3.Connection, own: bool) -> int:
    """Make the tables, or bring them up to date if this is the owner; returns their version."""
    (found,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if found == 0 and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        mark = secrets.token_hex(MARK_BYTES)  # every journal has a chain of its own
        connection.executescript(
            f"BEGIN; {_SCHEMA} INSERT INTO meta VALUES (1, 0, 0, 0, x'{mark}'); "
            f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
        )
        return VERSION
    if found != APPLICATION:
        raise JournalError("not a topstory journal")
    if not OLDEST_VERSION <= version <= VERSION:
        raise JournalError(
            f"the journal has version {version}, this topstory reads {OLDEST_VERSION} to {VERSION}"
        )
    if own and version < VERSION:
        _add_checksums(connection)
        return VERSION
    return int(version)


def _add_checksums(connection: sqlite3.Connection) -> None:
    """From version 1: a checksum for every record, and the chain from the last one on."""
    connection.execute("BEGIN IMMEDIATE")  # all of it or nothing
    connection.execute("ALTER TABLE journal ADD COLUMN crc INTEGER")
    connection.execute("ALTER TABLE journal ADD COLUMN chain BLOB")
    connection.execute(_META)
    last = 0
    read = "SELECT number, at, body FROM journal WHERE number > ? ORDER BY number LIMIT ?"
    while rows := connection.execute(read, (last, _CHUNK)).fetchall():
        for number, _, body in rows:
            try:
                decode(body)
            except msgspec.MsgspecError as error:
                raise DamagedJournal(f"record {number} is damaged: {error}") from None
        connection.executemany(
            "UPDATE journal SET crc = ? WHERE number = ?",
            [(checksum(number, at, body), number) for number, at, body in rows],
        )
        last = rows[-1][0]
    connection.execute(
        "INSERT INTO meta SELECT 1, 0, before, ?, ? FROM pruned",
        (last, secrets.token_bytes(MARK_BYTES)),
    )
    connection.execute("DROP TABLE pruned")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
