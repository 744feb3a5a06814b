"""The journal as a table: the queries of both databases, and records as rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from topstory.serving.journal.journal import Found
from topstory.serving.journal.records import Decided, Entry, Paid, decode, encode

# Placeholders are SQLite's question marks.
LAST = "SELECT number, at FROM journal ORDER BY number DESC LIMIT 1"
_FOUND = """
SELECT d.number, d.at, d.body, p.body FROM journal AS d
LEFT JOIN journal AS p ON p.decision = d.number
"""
DECISION = f"{_FOUND} WHERE d.number = ? AND d.kind = 'Decided'"
REQUEST = f"{_FOUND} WHERE d.request = ? AND d.at >= ? ORDER BY d.number DESC LIMIT 1"
READ = """
SELECT j.number, j.at, j.body, d.body FROM journal AS j
LEFT JOIN journal AS d ON d.number = j.decision
WHERE j.number > ? ORDER BY j.number
"""
HISTORY = """
SELECT d.number, d.at, d.body, p.body FROM journal AS d
LEFT JOIN journal AS p ON p.decision = d.number
WHERE d.decision IS NULL AND d.number < ? ORDER BY d.number
"""
# Plus 0: else a database may scan the index of payoffs from its beginning.
FIRST_PAID_AFTER = "SELECT min(decision + 0) FROM journal WHERE number > ?"
PRUNE = """
DELETE FROM journal
WHERE (kind = 'Decided' AND number < ?) OR (decision IS NOT NULL AND decision < ?)
"""
# A row that is deleted in the same commit: nobody sees it, but it needs a page and a sync.
PROBE = "INSERT INTO journal VALUES (0, 0, 'Tried', NULL, NULL, ?)"
UNDO_PROBE = "DELETE FROM journal WHERE number = 0"
PROBE_BODY = bytes(8192)


def row(entry: Entry) -> tuple[int, int, str, int | None, str | None, bytes]:
    """The record as a row: number, at, kind, decision, request, body."""
    record = entry.record
    decision = record.decision if isinstance(record, Paid) else None
    request = record.request if isinstance(record, Decided) else None
    return entry.number, entry.at, type(record).__name__, decision, request, encode(record)


class SqlJournal(ABC):
    """A journal that is read by these queries; each database runs them in its own way."""

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

    def read(self, after: int = 0) -> Iterator[tuple[Entry, Decided | None]]:
        """The records after that number; a payoff comes with its decision."""
        for number, at, body, of in self._stream(READ, after):
            yield Entry(number, at, decode(body)), None if of is None else _decided(of)

    def history(self, before: int) -> Iterator[tuple[Entry, float | None]]:
        """All records below that number but payoffs; a decision comes with its payoff, if any."""
        for number, at, body, paid in self._stream(HISTORY, before):
            yield Entry(number, at, decode(body)), _payoff(paid)

    def decision(self, number: int) -> Found | None:
        """The decision of that number."""
        return _found(self._one(DECISION, number))

    def request(self, request: str, since: int) -> Found | None:
        """The decision that was made for a client's request, not before that time."""
        return _found(self._one(REQUEST, request, since))

    def first_paid_after(self, number: int) -> int | None:
        """The first decision whose payoff is a record after that number, if there is one."""
        [(found,)] = self._stream(FIRST_PAID_AFTER, number)  # it may take longer than a lookup
        return None if found is None else int(found)


def _found(row: Any) -> Found | None:
    if row is None:
        return None
    number, at, body, paid = row
    return Found(number, at, _decided(body), _payoff(paid))


def _decided(body: bytes) -> Decided:
    record = decode(body)
    assert isinstance(record, Decided)
    return record


def _payoff(body: bytes | None) -> float | None:
    if body is None:
        return None
    record = decode(body)
    assert isinstance(record, Paid)
    return record.payoff
