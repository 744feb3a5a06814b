"""The inbox: where front ends put what they decided and were paid, for the learner to take."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import msgspec
import psycopg

from topstory.serving.fleet.origins import origin_of, place_of
from topstory.serving.journal.journal import Found, JournalError
from topstory.serving.journal.postgres.arrays import (
    BigIntColumn,
    BytesColumn,
    DoubleColumn,
    TextColumn,
)
from topstory.serving.journal.postgres.connection import Connection, NoAnswer, connect, one_line
from topstory.serving.journal.records import Decided, Paid, decode, encode

T = TypeVar("T")

HAND_IN_SECONDS = 5.0  # one batch may take this long
_HAND_IN = """
SELECT * FROM hand_in(%s, %s, %s, %s, %s::text[], %s::bigint[], %s::text[], %s::bytea[],
    %s::bigint[], %s::float8[], %s::bytea[])
"""
_BODIES = """
SELECT i.node, i.seq, i.body FROM inbox i
JOIN unnest(%s::integer[], %s::bigint[]) AS w (node, seq) ON i.node = w.node AND i.seq = w.seq
"""
_IN_JOURNAL = """
SELECT d.number, d.body, p.body FROM journal d LEFT JOIN journal p ON p.decision = d.number
WHERE d.number = ANY (%s) AND d.kind = 'Decided'
"""
_NEW = """
SELECT n.id, n.seq, i.seq, i.body FROM node n
LEFT JOIN unnest(%s::integer[], %s::bigint[]) AS c (node, seq) ON c.node = n.id
CROSS JOIN LATERAL (
    SELECT seq, body FROM inbox
    WHERE node = n.id AND seq > coalesce(c.seq, 0) ORDER BY seq LIMIT %s) i
WHERE n.seq > coalesce(c.seq, 0) ORDER BY n.id, i.seq
"""
_BY_ORIGIN = """
SELECT d.number, d.at, d.body, p.body FROM journal d LEFT JOIN journal p ON p.decision = d.number
WHERE d.origin = ANY (%s)
"""
_PURGE = """
DELETE FROM inbox WHERE (node, seq) IN (
    SELECT i.node, i.seq FROM inbox i
    JOIN unnest(%s::integer[], %s::bigint[]) AS c (node, seq) ON c.node = i.node
    WHERE i.at < %s AND i.seq <= c.seq ORDER BY i.at LIMIT %s)
"""


class NewDecision(NamedTuple):
    """A decision that a front end made, as it saw the pool."""

    pool: str
    edition: int
    request: str | None
    decided: Decided | None  # None: there was nothing to show; was the request decided before?


class NewPayoff(NamedTuple):
    """A payoff that a front end was given."""

    decision: int  # its origin, or its number
    expires: int
    payoff: float
    key: str


class Batch(NamedTuple):
    """What is handed in together."""

    number: int
    at: int
    since: int  # requests that were decided before then may be decided again
    decisions: Sequence[NewDecision]
    payoffs: Sequence[NewPayoff]


class BatchOutcome(NamedTuple):
    """What became of a batch: by place, decisions first."""

    first: int  # the origin of the first place
    codes: Sequence[int]
    refs: Sequence[int]  # EARLIER decisions: their origins or numbers


class Arrivals(NamedTuple):
    """What is new in the inbox: up to the cut, all of it."""

    cut: dict[int, int]
    rows: list[tuple[int, Decided | Paid]]  # origins and records, in the order (node, number)


class Inbox:
    """One connection to the inbox; a lost one is made again. Not for two threads at a time."""

    def __init__(self, url: str, lock_seconds: float, seconds: float = HAND_IN_SECONDS) -> None:
        self._url, self._lock_seconds, self._seconds = url, lock_seconds, seconds
        self._connection: Connection | None = None

    @property
    def connection(self) -> Connection:
        """The connection; JournalError if there is none to be had."""
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._url, self._seconds, self._lock_seconds)
        return self._connection

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()

    def run(self, query: str, *parameters: Any) -> list[Any]:
        """All rows of an answer; JournalError."""
        return self._attempt(
            lambda it: it.execute(query.encode(), parameters, binary=True).fetchall()
        )

    def do(self, statement: str, *parameters: Any) -> None:
        """A statement without an answer, once: JournalError if it may have failed."""
        try:
            self.connection.execute(statement.encode(), parameters)
        except psycopg.Error as error:
            raise JournalError(one_line(error)) from None

    def _attempt(self, work: Callable[[Connection], T]) -> T:
        """Do something that may be done twice: once more if the connection was lost."""
        for again in (False, True):
            connection = self.connection
            try:
                return work(connection)
            except psycopg.Error as error:
                if again or not connection.closed or isinstance(error, NoAnswer):
                    raise JournalError(one_line(error)) from None
        raise AssertionError

    # -- a front end's side --

    def new_node(self, name: str = "", late: bool = False) -> int:
        """Register a front end that starts now: it alone writes as this node.

        `late`: for decisions that it makes while the database cannot be reached.
        """
        query = "INSERT INTO node (name, late) VALUES (%s, %s) RETURNING id"
        ((node,),) = self.run(query, name or socket.gethostname(), late)
        return int(node)

    def progress(self, node: int) -> tuple[int, int]:
        """The last number and the last batch that a node has handed in."""
        ((seq, batch),) = self.run("SELECT seq, batch FROM node WHERE id = %s", node)
        return int(seq), int(batch)

    def now(self) -> int:
        """The database's time, in microseconds since 1970."""
        ((now,),) = self.run("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        return int(now)

    def hand_in(self, node: int, batch: Batch) -> BatchOutcome:
        """Write a batch in one commit, or find out what became of it if it was sent before."""
        made, paid = batch.decisions, batch.payoffs
        ((first, codes, refs),) = self.run(
            *(_HAND_IN, node, batch.number, batch.at, batch.since),
            *(
                TextColumn([each.pool for each in made]),
                BigIntColumn([each.edition for each in made]),
            ),
            TextColumn([each.request for each in made]),
            BytesColumn([None if each.decided is None else encode(each.decided) for each in made]),
            BigIntColumn([each.decision for each in paid]),
            DoubleColumn([each.payoff for each in paid]),
            BytesColumn([encode(Paid(each.decision, each.payoff, each.key)) for each in paid]),
        )
        return BatchOutcome(origin_of(node, first + 1), codes, refs)

    def decisions(self, origins: Sequence[int]) -> dict[int, Decided]:
        """Decisions that are in the inbox, by origin."""
        places = [place_of(each) for each in origins]
        rows = self.run(_BODIES, [node for node, _ in places], [seq for _, seq in places])
        found = ((origin_of(node, seq), decode(bytes(body))) for node, seq, body in rows)
        return {origin: each for origin, each in found if isinstance(each, Decided)}

    def in_journal(self, numbers: Sequence[int]) -> dict[int, tuple[Decided, float | None]]:
        """Decisions of the journal, by number, with their payoffs there."""
        found = {}
        for number, body, paid in self.run(_IN_JOURNAL, list(numbers)):
            decided = decode(bytes(body))
            assert isinstance(decided, Decided)
            found[int(number)] = decided, None if paid is None else _payoff(paid)
        return found

    # -- the learner's side --

    def new(self, cuts: Mapping[int, int], limit: int, total: int) -> Arrivals:
        """What front ends handed in after these cuts, as of one moment.

        At most `limit` records of each, and `total` of all, of which each gets the same share: none
        waits for another that always has something new.
        """
        rows = self.run(_NEW, list(cuts), list(cuts.values()), limit)
        if len(rows) > total:
            limit = max(1, total // len({row[0] for row in rows}))
        cut: dict[int, int] = {}
        counts: dict[int, int] = {}
        taken = []
        for node, last, seq, body in rows:
            count = counts[node] = counts.get(node, 0) + 1
            if count > limit:
                continue
            record = decode(body)
            assert isinstance(record, Decided | Paid)
            origin = origin_of(node, seq)
            if isinstance(record, Decided):  # a payoff becomes another record anyway
                record = msgspec.structs.replace(record, origin=origin)
            taken.append((origin, record))
            # Numbers of repeated requests are missing, also at the end.
            cut[node] = seq if count == limit else last
        return Arrivals(cut, taken)

    def taken(self, origins: Sequence[int]) -> dict[int, Found]:
        """Decisions that the journal has by now, by origin, with their payoffs."""
        found = {}
        for number, at, body, paid in self.run(_BY_ORIGIN, list(origins)):
            decided = decode(bytes(body))
            assert isinstance(decided, Decided)
            assert decided.origin is not None
            payoff = None if paid is None else _payoff(paid)
            found[decided.origin] = Found(int(number), int(at), decided, payoff)
        return found

    def purge(self, cuts: Mapping[int, int], before: int, limit: int) -> int:
        """Delete what is older, and was taken; how many rows went."""
        return self._attempt(
            lambda it: it.execute(_PURGE, (list(cuts), list(cuts.values()), before, limit)).rowcount
        )


def _payoff(body: Any) -> float:
    record = decode(bytes(body))
    assert isinstance(record, Paid)
    return record.payoff
