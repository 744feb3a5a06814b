"""The journal as a table: the queries of both databases, and records as rows."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from topstory.serving.journal.chain import ChainCheck, Head, checksum, checksums_of, mark_of
from topstory.serving.journal.journal import DamagedJournal, Found, Payoff
from topstory.serving.journal.records import (
    AnyRecord,
    Decided,
    Entry,
    Excluded,
    Paid,
    decode,
    encode,
)

# Placeholders are SQLite's question marks.
LAST = "SELECT number, at FROM journal ORDER BY number DESC LIMIT 1"
MARK = "SELECT chain FROM journal WHERE number = ?"
CHECKPOINT = "SELECT through, mark FROM meta"
# A record is four columns: number, time, body, checksum.
_FOUND = """
SELECT d.number, d.at, d.body, d.crc, p.number, p.at, p.body, p.crc FROM journal AS d
LEFT JOIN journal AS p ON p.decision = d.number
"""
DECISION = f"{_FOUND} WHERE d.number = ? AND d.kind = 'Decided'"
REQUEST = f"{_FOUND} WHERE d.request = ? AND d.at >= ? ORDER BY d.number DESC LIMIT 1"
HISTORY = f"""{_FOUND} WHERE d.decision IS NULL AND d.number < ?
AND (d.number > ? OR d.kind <> 'Decided') ORDER BY d.number
"""
EXCLUSIONS = """
SELECT j.number, j.at, j.body, j.crc FROM journal AS j WHERE j.kind = 'Excluded' ORDER BY j.number
"""
READ = """
SELECT j.number, j.at, j.body, j.crc, d.number, d.at, d.body, d.crc, j.kind, j.decision, j.chain
FROM journal AS j LEFT JOIN journal AS d ON d.number = j.decision
WHERE j.number > ? ORDER BY j.number
"""
ALL = """
SELECT number, at, body, crc, kind, decision, request, chain FROM journal
WHERE number > ? ORDER BY number
"""
# Plus 0: else a database may scan the index of payoffs from its beginning.
FIRST_PAID_AFTER = "SELECT min(decision + 0) FROM journal WHERE number > ?"
_PRUNED = "(kind IN ('Decided', 'Cut') AND number < ?) OR (decision IS NOT NULL AND decision < ?)"
PRUNE = f"DELETE FROM journal WHERE {_PRUNED}"
# What is pruned leaves gaps in the chain: up to the end of the last batch that has one.
LAST_PRUNED = f"SELECT max(number) FROM journal WHERE {_PRUNED}"
BATCH_END = """
SELECT number, chain FROM journal
WHERE number >= ? AND chain IS NOT NULL ORDER BY number LIMIT 1
"""
# A row that is deleted in the same commit: nobody sees it, but it needs a page and a sync.
PROBE = "INSERT INTO journal VALUES (0, 0, 'Tried', NULL, NULL, ?, NULL, NULL)"
UNDO_PROBE = "DELETE FROM journal WHERE number = 0"
PROBE_BODY = bytes(8192)
# A journal of version 1, which is only read, has neither checksums nor marks.
_WITHOUT_CHECKSUMS = "(SELECT *, NULL AS crc, NULL AS chain FROM journal) AS"


class Columns(NamedTuple):
    """A batch as columns of the table; the last row has the mark."""

    numbers: list[int]
    times: list[int]
    kinds: list[str]
    decisions: list[int | None] | list[None]
    requests: list[str | None] | list[None]
    bodies: list[bytes]
    checksums: list[int]
    marks: list[bytes | None]


def columns(entries: Sequence[Entry], previous: bytes, epoch: int) -> tuple[Columns, Head]:
    """A batch as columns, and its end."""
    numbers, times = [each.number for each in entries], [each.at for each in entries]
    records, none = [each.record for each in entries], [None] * len(entries)
    types, bodies = list(map(type, records)), list(map(encode, records))
    checksums = checksums_of(numbers, times, bodies)
    head = Head(numbers[-1], mark_of(previous, epoch, checksums))
    decisions: list[int | None] | list[None] = none
    requests: list[str | None] | list[None] = none
    if Paid in types:
        decisions = [each.decision if isinstance(each, Paid) else None for each in records]
    if Decided in types:
        requests = [each.request if isinstance(each, Decided) else None for each in records]
    kinds, marks = [each.__name__ for each in types], [*none[1:], head.mark]
    return Columns(numbers, times, kinds, decisions, requests, bodies, checksums, marks), head


def _keys(record: AnyRecord) -> tuple[int | None, str | None]:
    """What a record can be found by: a decision, a client's request."""
    if isinstance(record, Decided):
        return None, record.request
    return (record.decision if isinstance(record, Paid) else None), None


class SqlJournal(ABC):
    """A journal that is read by these queries; each database runs them in its own way."""

    version: int  # of the tables

    @abstractmethod
    def _one(self, query: str, *parameters: Any) -> Any:
        """The first row, or None."""

    @abstractmethod
    def _stream(self, query: str, *parameters: Any) -> Iterator[Any]:
        """All rows, one after the other."""

    def _last(self) -> Any:
        """The row of `LAST`."""
        return self._one(LAST)

    def last(self) -> tuple[int, int]:
        """The number and time of the last record; (0, 0) if there is none."""
        found = self._last()
        return (0, 0) if found is None else (found[0], found[1])

    def mark(self, number: int) -> bytes | None:
        """The mark of the batch that ends with that record; None if none does."""
        checkpoint = self.checkpoint()
        if checkpoint is None or number == checkpoint.number:
            return None if checkpoint is None else checkpoint.mark
        found = self._one(MARK, number)
        return None if found is None or found[0] is None else bytes(found[0])

    def checkpoint(self) -> Head | None:
        """Up to where records may be missing, and the mark there; None before version 2."""
        if self.version == 1:
            return None
        number, mark = self._one(CHECKPOINT)
        return Head(int(number), bytes(mark))

    def read(self, after: int = 0) -> Iterator[tuple[Entry, Decided | None]]:
        """The records after that number; a payoff comes with its decision."""
        chain, end = self._chain(after), self._end()
        for row in self._stream(self._compatible(READ), after):
            number, at, _, crc, _, _, of, _, kind, decision, mark = row
            record = _checked(*row[:4])
            if kind != type(record).__name__ or decision != _keys(record)[0]:
                raise _damaged(number, "its columns do not match its body")
            decided = None if of is None else _decided(*row[4:8])
            if isinstance(record, Paid) and decided is None:
                raise _damaged(number, f"its decision, record {record.decision}, is missing")
            if chain is not None:
                chain.add(number, crc, mark)
            yield Entry(number, at, record), decided
        if chain is not None:
            chain.finish(end)

    def history(self, before: int, after: int = 0) -> Iterator[tuple[Entry, Payoff | None]]:
        """All records below that number but payoffs; a decision comes with its payoff, if any.

        Of decisions, only those after the number `after`.
        """
        for row in self._stream(self._compatible(HISTORY), before, after):
            yield Entry(row[0], row[1], _checked(*row[:4])), _payoff(*row[4:])

    def exclusions(self) -> list[Excluded]:
        """What operators excluded, in order."""
        found = self._stream(self._compatible(EXCLUSIONS))
        records = [_checked(*row) for row in found]
        return [record for record in records if isinstance(record, Excluded)]

    def check(self) -> int:
        """Check every record, and the database itself: DamagedJournal. Returns how many."""
        chain, end, count = self._chain(0), self._end(), 0
        for number, at, body, crc, kind, decision, request, mark in self._stream(
            self._compatible(ALL), 0
        ):
            record = _checked(number, at, body, crc)
            if (kind, decision, request) != (type(record).__name__, *_keys(record)):
                raise _damaged(number, "its columns do not match its body")
            if chain is not None:
                chain.add(number, crc, mark)
            count += 1
        if chain is not None:
            chain.finish(end)
        self._check_database()
        return count

    @abstractmethod
    def _check_database(self) -> None:
        """Check the database's own structure, as far as it can."""

    def decision(self, number: int) -> Found | None:
        """The decision of that number."""
        return _found(self._one(self._compatible(DECISION), number))

    def request(self, request: str, since: int) -> Found | None:
        """The decision that was made for a client's request, not before that time."""
        return _found(self._one(self._compatible(REQUEST), request, since))

    def first_paid_after(self, number: int) -> int | None:
        """The first decision whose payoff is a record after that number, if there is one."""
        [(found,)] = self._stream(FIRST_PAID_AFTER, number)  # it may take longer than a lookup
        return None if found is None else int(found)

    def _end(self) -> int:
        """The number of the last record, if the database notes it somewhere else, too."""
        return 0

    def _chain(self, after: int) -> ChainCheck | None:
        """Checks the records after that number; None before version 2."""
        checkpoint = self.checkpoint()
        if checkpoint is None or after <= checkpoint.number:
            return None if checkpoint is None else ChainCheck(checkpoint)
        mark = self.mark(after)
        if mark is None:
            raise DamagedJournal(f"record {after} is missing, or ends no batch")
        return ChainCheck(Head(after, mark))

    def _compatible(self, query: str) -> str:
        return query if self.version > 1 else query.replace("journal AS", _WITHOUT_CHECKSUMS)


def _found(row: Any) -> Found | None:
    if row is None:
        return None
    paid = _payoff(*row[4:])
    payoff = None if paid is None else paid.record.payoff
    return Found(row[0], row[1], _decided(*row[:4]), payoff)


def _checked(number: int, at: int, body: bytes, crc: int | None) -> AnyRecord:
    """The record of a row, which is what was written."""
    try:
        if crc is not None and checksum(number, at, body) != crc:
            raise _damaged(number, "its checksum does not match")
        return decode(body)
    except (msgspec.MsgspecError, TypeError, struct.error) as error:  # of another type altogether
        raise _damaged(number, f"it cannot be decoded: {error}") from None


def _decided(number: int, at: int, body: bytes, crc: int | None) -> Decided:
    record = _checked(number, at, body, crc)
    if not isinstance(record, Decided):
        raise _damaged(number, "it is no decision, though a payoff refers to it")
    return record


def _payoff(number: int, at: int, body: bytes | None, crc: int | None) -> Payoff | None:
    if body is None:
        return None
    record = _checked(number, at, body, crc)
    if not isinstance(record, Paid):
        raise _damaged(number, "it is no payoff, though it is listed as one")
    return Payoff(number, at, record)


def _damaged(number: int, why: str) -> DamagedJournal:
    return DamagedJournal(f"record {number} is damaged: {why}")
