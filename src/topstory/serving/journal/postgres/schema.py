"""The tables of a PostgreSQL journal, and how those of earlier versions are brought up to date.

Versions are numbered, and each has its step from the one before. The owner of the journal takes
them, under its lock: version 2 added checksums, version 3 the tables of a fleet, version 4 what its
front ends decide while the database cannot be reached, and version 5 its learner's signs of life.
"""

from __future__ import annotations

import secrets
from typing import Any

import msgspec
import psycopg

from topstory.serving.journal.chain import MARK_BYTES, checksum
from topstory.serving.journal.journal import DamagedJournal, JournalError
from topstory.serving.journal.postgres.fleet_tables import HAND_IN, TABLES
from topstory.serving.journal.records import decode

VERSION = 5
OLDEST_VERSION = 1
_CHUNK = 10_000  # records that are read at once

_SCHEMA = """
CREATE SCHEMA IF NOT EXISTS topstory;
CREATE TABLE IF NOT EXISTS topstory.journal (
    number BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,       -- microseconds since 1970
    kind TEXT NOT NULL,       -- the type of the record: Decided, Paid, Placed, …
    decision BIGINT,          -- of a payoff
    request TEXT,             -- of a decision: the client's id
    body BYTEA NOT NULL,      -- MessagePack
    crc INTEGER,              -- checksum of number, time and body
    chain BYTEA               -- in the last record of a batch: its mark
);
-- One row. `term` counts the owners: a commit by another than the last is refused. `renewed` is
-- when the owner last showed that it is alive. Up to the record `through` some may be archived;
-- `mark` is that of the batch that ends there. `head` and `head_mark`: of the last batch.
CREATE TABLE IF NOT EXISTS topstory.meta (
    sole BOOLEAN PRIMARY KEY DEFAULT true CHECK (sole),
    version INTEGER NOT NULL, term BIGINT NOT NULL, before BIGINT NOT NULL,
    through BIGINT, mark BYTEA, head BIGINT, head_mark BYTEA, renewed TIMESTAMPTZ
);
-- The database itself refuses a second payoff of a decision.
CREATE UNIQUE INDEX IF NOT EXISTS payoff_of
    ON topstory.journal (decision) WHERE decision IS NOT NULL;
CREATE INDEX IF NOT EXISTS decision_for
    ON topstory.journal (request, number) WHERE request IS NOT NULL;
"""


def prepare(connection: psycopg.Connection[Any]) -> None:
    """Make the tables, or bring them up to date: all of it or nothing."""
    found = connection.execute("SELECT to_regclass('topstory.meta') IS NOT NULL").fetchone()
    if found == (True,) and _version(connection) == VERSION:
        return
    with connection.transaction():
        connection.execute("SET LOCAL client_min_messages = warning")  # nothing about "exists"
        connection.execute(_SCHEMA)
        mark = secrets.token_bytes(MARK_BYTES)  # every journal has a chain of its own
        new = connection.execute(
            "INSERT INTO meta VALUES (true, %s, 0, 0, 0, %s, 0, %s, NULL) ON CONFLICT DO NOTHING",
            (VERSION, mark, mark),
        ).rowcount
        version = check_version(_version(connection))
        if version == 1:
            _add_checksums(connection, mark)
        if new or version < VERSION:
            connection.execute(TABLES)
            connection.execute(HAND_IN)
            connection.execute("UPDATE meta SET version = %s", (VERSION,))


def _version(connection: psycopg.Connection[Any]) -> int | None:
    found = connection.execute("SELECT version FROM meta").fetchone()
    return None if found is None else int(found[0])


def check_version(version: int | None) -> int:
    """The version; JournalError if this topstory cannot read it."""
    if version is None or not OLDEST_VERSION <= version <= VERSION:
        raise JournalError(
            f"the journal has version {version}, this topstory reads {OLDEST_VERSION} to {VERSION}"
        )
    return version


def _add_checksums(connection: psycopg.Connection[Any], mark: bytes) -> None:
    """From version 1: a checksum for every record, and the chain from the last one on."""
    connection.execute("SET LOCAL statement_timeout = 0")  # there may be very many
    connection.execute("ALTER TABLE journal ADD COLUMN crc INTEGER, ADD COLUMN chain BYTEA")
    connection.execute(
        "ALTER TABLE meta ADD COLUMN through BIGINT, ADD COLUMN mark BYTEA, ADD COLUMN head BIGINT,"
        " ADD COLUMN head_mark BYTEA, ADD COLUMN renewed TIMESTAMPTZ"
    )
    last = 0
    read = "SELECT number, at, body FROM journal WHERE number > %s ORDER BY number LIMIT %s"
    while rows := connection.execute(read, (last, _CHUNK)).fetchall():
        for number, _, body in rows:
            try:
                decode(body)
            except msgspec.MsgspecError as error:
                raise DamagedJournal(f"record {number} is damaged: {error}") from None
        numbers = [number for number, _, _ in rows]
        connection.execute(
            "UPDATE journal SET crc = new.crc FROM unnest(%s::bigint[], %s::integer[]) "
            "AS new (number, crc) WHERE journal.number = new.number",
            (numbers, [checksum(number, at, body) for number, at, body in rows]),
        )
        last = numbers[-1]
    connection.execute(
        "UPDATE meta SET version = 2, through = %s, mark = %s, head = %s, head_mark = %s",
        (last, mark, last, mark),
    )
