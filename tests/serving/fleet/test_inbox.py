"""The inbox takes each batch, request and payoff once, and is cut where it is whole."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from struct import pack

import psycopg
import pytest

from topstory.serving.fleet.database_time import DatabaseTime
from topstory.serving.fleet.inbox import Batch, BatchOutcome, Inbox, NewDecision, NewPayoff
from topstory.serving.fleet.origins import origin_of
from topstory.serving.journal.journal import JournalError
from topstory.serving.journal.postgres.fleet_tables import (
    CONFLICT,
    EARLIER,
    EDIT_LOCK,
    MADE,
    NOTHING,
    OUTDATED,
    UNKNOWN,
)
from topstory.serving.journal.postgres.journal import PostgresJournal
from topstory.serving.journal.records import (
    ArticleFacts,
    Decided,
    Entry,
    Opened,
    Paid,
    Placed,
)

WINDOW = 1_000
USER = pack("<4d", 0.1, 0.2, 0.3, 1.0)


@pytest.fixture
def journal(url: str) -> Iterator[PostgresJournal]:
    """The learner's, which makes the tables."""
    made = PostgresJournal(url)
    yield made
    made.close()


class Node:
    """A front end's inbox, and its batches."""

    def __init__(self, url: str) -> None:
        self.inbox = Inbox(url, 1.0)
        self.id = self.inbox.new_node("test")
        self.number = 0

    def hand_in(self, *rows: NewDecision | NewPayoff, at: int = 5_000) -> BatchOutcome:
        self.number += 1
        return self.again(*rows, at=at)

    def again(self, *rows: NewDecision | NewPayoff, at: int = 5_000) -> BatchOutcome:
        made = [row for row in rows if isinstance(row, NewDecision)]
        paid = [row for row in rows if isinstance(row, NewPayoff)]
        return self.inbox.hand_in(self.id, Batch(self.number, at, at - WINDOW, made, paid))


@pytest.fixture
def nodes(url: str, journal: PostgresJournal) -> Iterator[list[Node]]:
    made = [Node(url) for _ in range(3)]
    yield made
    for node in made:
        node.inbox.close()


def decision(request: str | None = None, edition: int = 0, article: str = "rain") -> NewDecision:
    record = Decided("front", USER, article, 0, 0.5, 9_000, 0, teaches=True, request=request)
    return NewDecision("front", edition, request, record)


def payoff(of: int, value: float = 1.0) -> NewPayoff:
    return NewPayoff(of, 9_000, value, "web")


def test_a_plain_id_greater_than_last_would_lose_what_commits_late(url: str) -> None:
    with (
        psycopg.connect(url) as slow,
        psycopg.connect(url) as quick,
        psycopg.connect(url, autocommit=True) as reader,
    ):
        reader.execute("CREATE TABLE one_sequence (id BIGSERIAL, body TEXT)")
        insert = "INSERT INTO one_sequence (body) VALUES (%s)"
        slow.execute(insert, ("first number, last to commit",))
        quick.execute(insert, ("second number",))
        quick.commit()
        read = "SELECT id FROM one_sequence WHERE id > %s ORDER BY id"
        seen = [number for (number,) in reader.execute(read, (0,))]
        slow.commit()
        seen += [number for (number,) in reader.execute(read, (max(seen),))]
        assert seen == [2]  # record 1 was committed, and nobody will ever read it


def test_a_cut_loses_nothing_whatever_the_order_of_commits(url: str, nodes: list[Node]) -> None:
    slow, quick, learner = nodes
    with psycopg.connect(url) as blocking:  # the slow node's batch has its number, but waits
        blocking.execute("SELECT pg_advisory_lock(%s)", (EDIT_LOCK,))
        late = threading.Thread(target=slow.hand_in, args=(decision(),))
        late.start()
        # Payoffs take no turns with edits: the quick node commits meanwhile.
        blocking.execute(
            "INSERT INTO topstory.inbox (node, seq, at, body) VALUES (%s, 1, 5000, %s)",
            (quick.id, b"\x93\xa4Paid\x01\xca\x3f\x80\x00\x00"),
        )
        blocking.execute("UPDATE topstory.node SET seq = 1 WHERE id = %s", (quick.id,))
        blocking.commit()
        first = learner.inbox.new({}, 10, 10)
    late.join()
    second = learner.inbox.new(first.cut, 10, 10)
    assert [set(first.cut), set(second.cut)] == [{quick.id}, {slow.id}]
    assert [len(first.rows), len(second.rows)] == [1, 1]
    assert learner.inbox.new(first.cut | second.cut, 10, 10).rows == []


def test_a_batch_that_is_sent_again_is_taken_once(nodes: list[Node]) -> None:
    node, _, learner = nodes
    first = node.hand_in(decision("r1"), decision(), decision("r1"))
    assert [*first.codes] == [MADE, MADE, EARLIER]
    assert node.again(decision("r1"), decision(), decision("r1")) == first
    assert len(learner.inbox.new({}, 10, 10).rows) == 2
    node.number = 3
    with pytest.raises(JournalError, match=r"batch 3 of node \d+ came after batch 1"):
        node.again(decision())


def test_an_empty_batch_in_its_place_keeps_a_late_one_out(nodes: list[Node]) -> None:
    node, _, learner = nodes
    assert node.hand_in() == (origin_of(node.id, 1), [], [])
    assert [*node.again(decision()).codes] == []  # it was given up before it arrived
    assert learner.inbox.new({}, 10, 10).rows == []


def test_a_request_is_decided_once_through_whichever_node(nodes: list[Node]) -> None:
    one, other, _ = nodes
    made = one.hand_in(decision("r1", article="rain"))
    again = other.hand_in(decision("r1", article="sun"), decision("r2"))
    assert [*again.codes] == [EARLIER, MADE]
    assert again.refs[0] == made.first
    assert other.inbox.decisions([made.first])[made.first].article == "rain"
    nothing = NewDecision("front", 0, "r1", None)
    assert [*other.hand_in(nothing, nothing._replace(request="r3")).codes] == [EARLIER, NOTHING]
    # Once its window is over, the id is free again.
    assert [*other.hand_in(decision("r1"), at=5_001 + WINDOW).codes] == [MADE]


def test_a_payoff_counts_once_through_whichever_node(nodes: list[Node]) -> None:
    one, other, _ = nodes
    made = one.hand_in(decision(), decision())
    assert [*other.hand_in(payoff(made.first)).codes] == [MADE]
    again = one.hand_in(payoff(made.first), payoff(made.first, 0.0), payoff(made.first + 7))
    assert [*again.codes] == [EARLIER, CONFLICT, UNKNOWN]
    assert [*one.hand_in(payoff(made.first + 1), payoff(made.first + 1)).codes] == [MADE, EARLIER]
    assert [*other.hand_in(payoff(12)).codes] == [MADE]  # of the journal: the front end has checked


def test_what_both_nodes_send_at_once_is_taken_once(nodes: list[Node]) -> None:
    made = nodes[0].hand_in(*[decision() for _ in range(50)])
    paid = [payoff(made.first + place) for place in range(50)]
    outcomes: list[BatchOutcome] = []

    def send(node: Node, rows: list[NewPayoff]) -> None:
        outcomes.append(node.hand_in(*rows))

    # In opposite orders: without an order of its own the database would find a deadlock.
    threads = [
        threading.Thread(target=send, args=(nodes[1], paid)),
        threading.Thread(target=send, args=(nodes[2], paid[::-1])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    codes = sorted(code for outcome in outcomes for code in outcome.codes)
    assert codes == [MADE] * 50 + [EARLIER] * 50


def test_no_decision_is_made_without_an_edit_that_was_committed(
    journal: PostgresJournal, nodes: list[Node]
) -> None:
    node = nodes[0]
    assert [*node.hand_in(decision(edition=0)).codes] == [MADE]
    journal.append([Entry(1, 1, Opened("front", "")), Entry(2, 1, Placed("front", facts()))])
    outcome = node.hand_in(decision("r1", edition=1), decision(edition=2))
    assert [*outcome.codes] == [OUTDATED, MADE]
    assert [*node.hand_in(decision("r1", edition=2)).codes] == [MADE]


def test_an_edit_waits_for_decisions_that_were_made_without_it(
    url: str, journal: PostgresJournal, nodes: list[Node]
) -> None:
    done = threading.Event()

    def edit() -> None:
        journal.append([Entry(1, 1, Placed("front", facts()))])
        done.set()

    with psycopg.connect(url) as deciding:  # as a batch that is about to commit
        deciding.execute("SELECT pg_advisory_xact_lock_shared(%s)", (EDIT_LOCK,))
        editing = threading.Thread(target=edit)
        editing.start()
        assert not done.wait(0.2)
    editing.join()
    assert done.is_set()
    assert [*nodes[0].hand_in(decision(edition=0)).codes] == [OUTDATED]


def test_a_cut_is_bounded_and_goes_on_where_it_ended(nodes: list[Node]) -> None:
    one, other, learner = nodes
    one.hand_in(*[decision() for _ in range(5)])
    other.hand_in(decision("r"), decision("r"), decision("r"))
    cuts: dict[int, int] = {}
    sizes = []
    while (taken := learner.inbox.new(cuts, 2, 3)).rows:
        cuts |= taken.cut
        sizes.append(len(taken.rows))
    assert sizes == [3, 2, 1]
    assert cuts == {one.id: 5, other.id: 3}  # past the numbers of what was repeated


def test_what_was_taken_is_purged_once_nobody_can_ask_for_it(nodes: list[Node]) -> None:
    one, other, learner = nodes
    one.hand_in(decision(), at=1_000)
    one.hand_in(decision(), at=2_000)
    other.hand_in(decision(), at=1_000)
    assert learner.inbox.purge({one.id: 2}, before=1_500, limit=10) == 1
    left = learner.inbox.new({}, 10, 10).rows
    assert [origin for origin, _ in left] == [origin_of(one.id, 2), origin_of(other.id, 1)]


def test_the_journal_finds_what_it_took_by_origin(
    journal: PostgresJournal, nodes: list[Node]
) -> None:
    made = nodes[0].hand_in(decision("r1"))
    ((origin, record),) = nodes[2].inbox.new({}, 10, 10).rows
    assert isinstance(record, Decided)
    journal.append([Entry(1, 7, record), Entry(2, 7, Paid(1, 0.5, origin=made.first + 1))])
    found = nodes[2].inbox.taken([origin, origin + 99])
    assert {origin: (each.number, each.payoff) for origin, each in found.items()} == {
        origin: (1, 0.5)
    }
    with pytest.raises(JournalError, match="journal_origin"):  # never twice
        journal.append([Entry(3, 8, record)])


def facts() -> ArticleFacts:
    return ArticleFacts("rain")


def test_a_connection_that_is_lost_gives_no_time_but_an_error_that_is_expected(url: str) -> None:
    with closing(Inbox(url, 1.0)) as inbox:
        connection, time = inbox.connection, DatabaseTime()
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))
        with pytest.raises(JournalError, match=r"terminat|closed"):
            time.measure(connection)
        time.measure(inbox.connection)  # another one
