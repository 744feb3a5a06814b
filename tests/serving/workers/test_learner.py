"""The learner takes together what a worker asks in one turn, as if it had come one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from struct import pack
from typing import Any, TypeVar

from starlette.types import Receive, Scope, Send
from tests.serving.making import add_articles, config, folded, run
from tests.serving.test_kill import payoffs

from topstory.serving.config.schema import Config
from topstory.serving.journal.records import Decided
from topstory.serving.service.inputs import Receipt
from topstory.serving.service.service import Service
from topstory.serving.state.pool import FOREVER
from topstory.serving.workers.learner import Learner
from topstory.serving.workers.shared_memory.publisher import Publisher
from topstory.serving.workers.wire import Denied, Earlier, Paying, Proposed, Settled, Taken

T = TypeVar("T")
USER = pack("<4d", 0.2, 0.3, 0.5, 1.0)
EXPIRES = FOREVER - 1


class Worker:
    """What a worker sends to a learner, and receives."""

    def __init__(self, service: Service) -> None:
        self.received: list[Any] = []
        self.service = service
        self.publisher = Publisher(service.state, ("front",), service.clock, 0.05)
        self.publisher.publish()
        self.learner = Learner(
            service.sequencer, self.publisher, _no_app, _no_warm_up, self.received.append
        )

    async def send(self, message: Proposed | Paying) -> list[Any]:
        """What it receives until nothing waits any more."""
        self.received.clear()
        self.learner.received(message)
        while self.service.commits.waiting or self.service.commits._task is not None:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)
        return list(self.received)

    async def propose(self, *requests: str | None, user: bytes = USER) -> list[Any]:
        decided = [
            Decided("front", user, "article-0", 0, 0.5, EXPIRES, 0, True, request=each)
            for each in requests
        ]
        edition = self.publisher.editions["front"]
        return await self.send(Proposed(1, "front", edition, 0, FOREVER, decided))

    async def pay(self, *paid: tuple[int, float]) -> dict[int, bool | int]:
        """By request: whether it was a repeat, or the status of the refusal."""
        receipts: list[Receipt] = [(decision, EXPIRES) for decision, _ in paid]
        found: dict[int, bool | int] = {}
        for message in await self.send(
            Paying(1, receipts, [payoff for _, payoff in paid], [""] * len(paid))
        ):
            if isinstance(message, Settled):
                assert not found.keys() & set(message.numbers)
                found |= dict(zip(message.numbers, message.repeated, strict=True))
            else:
                assert isinstance(message, Denied)
                found |= {message.first + i: message.status for i in range(message.count)}
        return found


async def _no_app(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError(scope)


async def _no_warm_up() -> None:
    raise AssertionError


def with_worker(settings: Config, work: Callable[[Worker], Awaitable[T]]) -> T:
    async def inside(service: Service) -> T:
        if "article-0" not in service.state.pools["front"].articles:
            await add_articles(service, 2)
        worker = Worker(service)
        found = await work(worker)
        worker.publisher.stop()
        return found

    return run(settings, inside)


def test_decisions_of_one_turn_follow_each_other(tmp_path: Path) -> None:
    async def work(worker: Worker) -> int:
        (taken,) = await worker.propose(None, None, "a", None)
        assert isinstance(taken, Taken)
        assert (taken.first, taken.count) == (1, 4)
        assert worker.service.state.number == taken.number + 3
        return taken.number

    settings = config(tmp_path)
    first = with_worker(settings, work)
    assert folded(settings).number == first + 3


def test_a_request_counts_once_in_one_turn_and_in_the_next(tmp_path: Path) -> None:
    async def work(worker: Worker) -> None:
        found = await worker.propose(None, "a", "b", "a", None, "c")
        taken: dict[int, int] = {}
        for message in found:
            if isinstance(message, Taken):
                taken |= {message.first + i: message.number + i for i in range(message.count)}
        earlier = {t.first: t.number for t in found if isinstance(t, Earlier)}
        assert taken.keys() | earlier.keys() == set(range(1, 7))
        assert earlier == {4: taken[2]}
        assert len(set(taken.values())) == 5
        again = await worker.propose("c", None, user=USER)
        assert [t.number for t in again if isinstance(t, Earlier)] == [taken[6]]
        other = await worker.propose("c", None, user=pack("<4d", 0.3, 0.3, 0.4, 1.0))
        assert [(t.first, t.status) for t in other if isinstance(t, Denied)] == [(1, 409)]
        assert [(t.first, t.count) for t in other if isinstance(t, Taken)] == [(2, 1)]

    with_worker(config(tmp_path), work)


def test_as_many_decisions_are_taken_as_there_is_room_for(tmp_path: Path) -> None:
    async def work(worker: Worker) -> None:
        found = await worker.propose(*[None] * 5)
        (taken,) = (each for each in found if isinstance(each, Taken))
        (denied,) = (each for each in found if isinstance(each, Denied))
        assert (taken.first, taken.count) == (1, 3)
        assert (denied.first, denied.count, denied.status) == (4, 2, 503)
        assert denied.reason == "overloaded"
        (again,) = await worker.propose(None)
        assert again.number == taken.number + 3  # no number is wasted

    with_worker(config(tmp_path, limits={"waiting": 3}), work)


def test_payoffs_of_one_turn_count_as_one_by_one(tmp_path: Path) -> None:
    settings = config(tmp_path)

    async def work(worker: Worker) -> tuple[int, str]:
        (taken,) = await worker.propose(*[None] * 4)
        first = taken.number
        # New, its repeat, its opposite, another one, and one that was never made.
        given = [(first, 1.0), (first, 1.0), (first, 0.0), (first + 1, 0.0), (first + 99, 1.0)]
        assert await worker.pay(*given) == {1: False, 2: True, 3: 409, 4: False, 5: 404}
        assert await worker.pay((first, 1.0), (first + 2, 1.0)) == {1: True, 2: False}
        # The number of a decision with the window of another, which a crash has lost.
        (denied,) = await worker.send(Paying(1, [(first + 3, EXPIRES - 1)], [1.0], [""]))
        assert (denied.first, denied.status) == (1, 404)
        return first, worker.service.state.fingerprint()

    first, fingerprint = with_worker(settings, work)
    assert payoffs(settings) == {first: 1, first + 1: 1, first + 2: 1}
    assert folded(settings).fingerprint() == fingerprint

    async def after_a_restart(worker: Worker) -> None:  # none of them is in memory
        assert await worker.pay((first, 1.0), (first + 3, 1.0)) == {1: True, 2: False}

    with_worker(settings, after_a_restart)
    assert payoffs(settings)[first + 3] == 1


def test_a_payoff_waits_for_its_decision_and_too_many_are_refused(tmp_path: Path) -> None:
    settings = config(tmp_path, journal={"decisions": "relaxed"}, limits={"waiting": 3})

    async def work(worker: Worker) -> None:
        proposed = worker.publisher.editions["front"]
        decided = Decided("front", USER, "article-0", 0, 0.5, EXPIRES, 0, True)
        worker.learner.received(Proposed(1, "front", proposed, 0, FOREVER, [decided]))
        (taken,) = worker.received  # at once, and it is not in the journal yet
        assert worker.service.state.number < taken.number
        assert await worker.pay((taken.number, 1.0)) == {1: False}
        numbers = []
        for _ in range(2):
            (some,) = await worker.propose(None, None)
            numbers += [some.number, some.number + 1]
        found = await worker.pay(*((number, 1.0) for number in numbers))
        assert found == {1: False, 2: False, 3: False, 4: 503}

    with_worker(settings, work)


def test_payoffs_whose_commit_fails_are_all_refused_and_can_come_again(tmp_path: Path) -> None:
    settings = config(tmp_path)

    async def work(worker: Worker) -> str:
        (taken,) = await worker.propose(None, None)
        given = [(taken.number, 1.0), (taken.number + 1, 0.0)]
        journal = worker.service.journal
        await worker.service.commits.run(
            lambda: journal._writer.execute("PRAGMA query_only = 1")  # type: ignore[attr-defined]  # as if it were full
        )
        assert await worker.pay(*given) == {1: 503, 2: 503}
        await worker.service.commits.run(
            lambda: journal._writer.execute("PRAGMA query_only = 0")  # type: ignore[attr-defined]  # the SQLite journal's
        )
        assert await worker.pay(*given) == {1: False, 2: False}
        return worker.service.state.fingerprint()

    fingerprint = with_worker(settings, work)
    assert folded(settings).fingerprint() == fingerprint
