"""What front ends handed in is in the journal once, whatever the learner remembers or fails at."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.fleet.test_pipeline import fleet_config, folded
from tests.serving.making import SIGNER

from topstory.serving.fleet.inbox import Batch, Inbox, NewDecision, NewPayoff
from topstory.serving.fleet.learner import fold as folding
from topstory.serving.fleet.learner.fold import Fold
from topstory.serving.journal.clock import SECOND, Clock
from topstory.serving.journal.connect import journal_of
from topstory.serving.journal.journal import JournalError
from topstory.serving.journal.postgres.journal import PostgresJournal
from topstory.serving.journal.records import Decided, Entry, Paid
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.data_folder import open_folder

D = 4


class Handed:
    """One front end's records, as it hands them in."""

    def __init__(self, url: str) -> None:
        self.inbox = Inbox(url, 5.0)
        self.node, self.batch = self.inbox.new_node("test"), 0
        self.origins: list[int] = []
        self.random = np.random.default_rng(5)

    def decide_and_pay(self, count: int, pay: Sequence[int]) -> None:
        """New decisions, and payoffs of earlier ones, in one batch."""
        now = Clock().now()
        users = self.random.dirichlet(np.ones(D - 1), count)
        made = [
            NewDecision(
                *("front", 10**9, None),
                Decided(
                    *("front", np.append(user, 1.0).tobytes(), f"article-{place % 3}", 0, 0.2),
                    *(now + 3_600 * SECOND, 1, True),
                ),
            )
            for place, user in enumerate(users)
        ]
        paid = [NewPayoff(origin, 0, float(origin % 2), "web") for origin in pay]
        self.batch += 1
        outcome = self.inbox.hand_in(self.node, Batch(self.batch, now, 0, made, paid))
        assert set(outcome.codes) == {0}
        self.origins += range(outcome.first, outcome.first + count)


def fold_all(folder: Path, url: str, work: Any, **limits: int) -> None:
    """Let a learner run; `work` is told how to fold what was handed in."""
    opened = open_folder(fleet_config(folder, url, limits=limits))
    service = Service(opened.config, opened, SIGNER)
    handed, inbox = Handed(url), Inbox(url, 5.0)
    fold = Fold(opened.config, service.ledger, service.sequencer.influence, inbox)

    def drain() -> None:
        async def rounds() -> None:
            async with asyncio.timeout(60):
                while await fold.round():
                    pass
            await service.commits.drain()

        asyncio.run(rounds())

    try:
        work(handed, drain)
        assert fold.unknown == 0
        fingerprint = service.state.fingerprint()
    finally:
        for each in (handed.inbox, inbox, service, opened):
            each.close()
    assert folded(url, folder, D).fingerprint() == fingerprint


def journalled(url: str) -> tuple[Counter[int | None], Counter[int]]:
    """How often each decision is in the journal, by origin, and each payoff, by its decision's."""
    with closing(journal_of(url)) as journal:
        records = [entry.record for entry, _ in journal.read()]
        numbers = {entry.number: entry.record for entry, _ in journal.read()}
    made = Counter(each.origin for each in records if isinstance(each, Decided))
    paid: Counter[int] = Counter()
    for each in records:
        if isinstance(each, Paid):
            decided = numbers[each.decision]
            assert isinstance(decided, Decided)
            assert decided.origin is not None
            paid[decided.origin] += 1
    return made, paid


def test_a_payoff_counts_though_new_decisions_fill_the_memory(tmp_path: Path, url: str) -> None:
    """Memory forgets its decision in the very cut that takes the payoff."""
    paid: list[int] = []

    def work(handed: Handed, drain: Any) -> None:
        handed.decide_and_pay(32, [])
        drain()
        paid.extend(handed.origins[:8])
        handed.decide_and_pay(200, paid)
        drain()

    fold_all(tmp_path, url, work, remembered=32)
    made, found = journalled(url)
    assert set(made.values()) == {1}
    assert len(made) == 232
    assert found == Counter(paid)


def test_a_cut_that_was_not_written_is_taken_again_and_what_was_read_after_it(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "MAX_FOLD", 50)
    monkeypatch.setattr(folding, "RETRY_SECONDS", 0.01)
    append, failures = PostgresJournal.append, iter([False, True, False, True, True])
    looks: list[dict[int, int]] = []
    look = Fold._look

    def failing(self: PostgresJournal, entries: Sequence[Entry]) -> None:
        if next(failures, False):
            raise JournalError("no room")
        append(self, entries)

    def looked(self: Fold, cuts: dict[int, int]) -> folding.Look:
        looks.append(dict(cuts))
        return look(self, cuts)

    paid: list[int] = []

    def work(handed: Handed, drain: Any) -> None:
        monkeypatch.setattr(PostgresJournal, "append", failing)
        monkeypatch.setattr(Fold, "_look", looked)
        handed.decide_and_pay(300, [])
        paid.extend(handed.origins)
        handed.decide_and_pay(0, paid)
        drain()

    fold_all(tmp_path, url, work)
    made, found = journalled(url)
    assert (len(made), set(made.values())) == (300, {1})
    assert found == Counter(paid)
    assert any(again in looks[:place] for place, again in enumerate(looks))  # it was read again
    assert next(failures, None) is None  # all of them happened


def test_a_payoff_that_was_handed_in_before_its_decision_was_read_waits_for_it(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so does all that its own front end wrote after it, which is read again."""
    monkeypatch.setattr(folding, "MAX_FOLD", 8)
    paid: list[int] = []

    def work(handed: Handed, drain: Any) -> None:
        other = Handed(url)  # of a node that is read later, and has much
        other.decide_and_pay(50, [])
        paid.extend(other.origins[40:])
        handed.decide_and_pay(2, [])
        handed.decide_and_pay(0, paid)
        paid.extend(handed.origins[:1])
        handed.decide_and_pay(3, handed.origins[:1])
        other.decide_and_pay(0, later := handed.origins[-1:])
        paid.extend(later)
        drain()
        other.inbox.close()

    fold_all(tmp_path, url, work)
    made, found = journalled(url)
    assert (len(made), set(made.values())) == (55, {1})
    assert found == Counter(paid)
