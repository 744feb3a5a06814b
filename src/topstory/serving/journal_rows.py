"""The journal as a table: what both databases ask, and records as rows."""

from __future__ import annotations

from typing import Any

from topstory.serving.journal import Found
from topstory.serving.records import Decided, Entry, Paid, decode, encode

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
# Plus 0: else a database may search the index of payoffs from its beginning.
FIRST_PAID_AFTER = "SELECT min(decision + 0) FROM journal WHERE number > ?"
PRUNE = """
DELETE FROM journal
WHERE (kind = 'Decided' AND number < ?) OR (decision IS NOT NULL AND decision < ?)
"""
# A row that is gone again in the same commit: nobody sees it, and it needs a page and a sync.
TRY = "INSERT INTO journal VALUES (0, 0, 'Tried', NULL, NULL, ?)"
TRIED = "DELETE FROM journal WHERE number = 0"
PAGES = bytes(8192)


def row(entry: Entry) -> tuple[int, int, str, int | None, str | None, bytes]:
    """The record as a row: number, at, kind, decision, request, body."""
    record = entry.record
    decision = record.decision if isinstance(record, Paid) else None
    request = record.request if isinstance(record, Decided) else None
    return entry.number, entry.at, type(record).__name__, decision, request, encode(record)


def read(found: Any) -> tuple[Entry, Decided | None]:
    """A row of `READ`: the record, and the decision that it pays for."""
    number, at, body, of = found
    return Entry(number, at, decode(body)), None if of is None else _decided(of)


def history(found: Any) -> tuple[Entry, float | None]:
    """A row of `HISTORY`: the record, and what it was paid."""
    number, at, body, paid = found
    return Entry(number, at, decode(body)), _payoff(paid)


def decision(found: Any) -> Found | None:
    """A row of `DECISION` or `REQUEST`, if there is one."""
    if found is None:
        return None
    number, at, body, paid = found
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
