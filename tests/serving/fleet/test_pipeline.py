"""Front ends and a learner in threads of one process, with a real database between them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.making import config, visitor

from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import Acknowledged, DecideRequest, Decision, FeedbackRequest
from topstory.serving.config.schema import Config
from topstory.serving.fleet.front.process import Front
from topstory.serving.fleet.learner.candidate import LearnerCandidate
from topstory.serving.fleet.learner.process import learn_for_a_term
from topstory.serving.journal.connect import journal_of
from topstory.serving.journal.journal import JournalError, JournalLost
from topstory.serving.journal.postgres.journal import (
    JournalClaim,
    PostgresJournal,
    waiting_connection,
)
from topstory.serving.journal.records import Cut, Decided, Paid
from topstory.serving.service.replies import Awaited
from topstory.serving.state.recovery.data_folder import NOTHING_ALLOWED
from topstory.serving.state.recovery.recovery import Starts, recover
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.state.state import State
from topstory.serving.upkeep.verification import verify


def fleet_config(folder: Path, url: str, **overrides: Any) -> Config:
    return config(folder, journal={"url": url}, role="all", demo=True, **overrides)


@contextmanager
def learning(
    settings: Config, ended: Callable[[], None] = lambda: None
) -> Iterator[PostgresJournal]:
    """A learner, until the end of this; `ended` is called when it ends."""
    stop = threading.Event()
    candidate = LearnerCandidate(settings, stop)
    journal = candidate.wait()
    assert journal is not None

    def said(line: str) -> None:
        pass

    def term() -> None:
        learn_for_a_term(settings, candidate, journal, said, said, NOTHING_ALLOWED, stop)
        ended()

    thread = threading.Thread(target=term)
    thread.start()
    try:
        yield journal
    finally:
        stop.set()
        thread.join()


async def decide(front: Front, request: DecideRequest) -> Decision:
    reply: Awaited[Decision] = Awaited()
    front.front_end.ask(request, reply)
    return await reply.answer


async def pay(front: Front, decision: str, payoff: float) -> Acknowledged:
    reply: Awaited[Acknowledged] = Awaited()
    front.front_end.pay(FeedbackRequest(decision, payoff), reply)
    return await reply.answer


def folded(url: str, folder: Path, dimension: int) -> State:
    """The state by a fresh fold of the whole journal, in one process."""
    journal = journal_of(url)
    try:
        return recover(journal, Snapshots(folder / "none"), Starts(folder / "start"), dimension)
    finally:
        journal.close()


def test_two_front_ends_and_a_learner_count_everything_once(tmp_path: Path, url: str) -> None:
    settings = fleet_config(tmp_path / "data", url)
    random, decided, paid = np.random.default_rng(1), [], []

    async def visit(fronts: list[Front]) -> None:
        one, other = fronts
        async with one.background(), other.background():
            for turn in range(10):
                asked = [
                    decide(fronts[i % 2], DecideRequest(visitor(random), request=f"{turn}-{i}"))
                    for i in range(8)
                ]
                decided.extend(await asyncio.gather(*asked))
            first = decided[0]
            assert await decide(other, DecideRequest(visitor(random))) != first
            for place, each in enumerate(decided):  # through the one that did not decide
                answer = await pay(fronts[(place + 1) % 2], each.decision, float(place % 3 == 0))
                assert not answer.repeated
                paid.append(answer)
            assert (await pay(one, first.decision, 1.0)).repeated
            assert (await pay(other, first.decision, 1.0)).repeated
            with pytest.raises(ApiError) as refused:
                await pay(other, first.decision, 0.5)
            assert (refused.value.status, refused.value.reason) == (409, "payoff_conflict")

    with learning(settings), ExitStack() as stack:
        fronts = [Front(settings) for _ in range(2)]
        for front in fronts:
            stack.callback(front.close)
        asyncio.run(visit(fronts))
        fold_is_done(url, len(paid))
    journal = journal_of(url)
    try:
        records = [entry.record for entry, _ in journal.read()]
    finally:
        journal.close()
    made = [each for each in records if isinstance(each, Decided)]
    assert len(made) == len(decided) + 1
    assert len({each.origin for each in made}) == len(made)
    assert len([each for each in records if isinstance(each, Paid)]) == len(paid)
    cuts: dict[int, int] = {}
    for each in records:
        if isinstance(each, Cut):
            assert all(seq > cuts.get(node, 0) for node, seq in each.nodes.items())
            cuts |= each.nodes
    state = folded(url, tmp_path / "data", settings.context)
    assert state.cuts == cuts
    # What the learner saved at its end, and what a fold in one process makes: the same to the bit.
    snapshots = Snapshots(tmp_path / "data" / "snapshots")
    saved = snapshots.read(snapshots.numbers()[0])
    assert (saved.number, saved.fingerprint()) == (state.number, state.fingerprint())
    assert saved.cuts == cuts
    assert verify(url).records == len(records)


def fold_is_done(url: str, payoffs: int) -> None:
    """Wait until the learner has taken so many payoffs."""
    journal = journal_of(url)
    try:
        for _ in range(500):
            if sum(isinstance(entry.record, Paid) for entry, _ in journal.read()) >= payoffs:
                return
            threading.Event().wait(0.02)
        raise AssertionError("the learner did not take everything")
    finally:
        journal.close()


def test_a_learner_that_was_replaced_publishes_nothing(url: str) -> None:
    first = PostgresJournal(url, 0.2)
    first.run_as_owner(("INSERT INTO shared VALUES ('x', '1')", ()))
    claim = JournalClaim(waiting_connection(url, 0.2), silent=first.epoch)
    second = PostgresJournal(url, 0.2, claim=claim)
    try:
        with pytest.raises(JournalError, match="terminating connection"):
            first.run_as_owner(("UPDATE shared SET value = '2'", ()))
        with pytest.raises(JournalLost, match="taken over"):
            first.run_as_owner(("UPDATE shared SET value = '2'", ()))
        second.run_as_owner(("UPDATE shared SET value = value", ()))
        assert second._one("SELECT value FROM shared")[0] == b"1"
    finally:
        first.close()
        second.close()
