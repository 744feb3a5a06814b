"""One pipeline over any transport: the same requests get the same answers and the same records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.serving.making import SIGNER, Made, add_articles, config, refused, visitor

from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import (
    Acknowledged,
    ArticleRequest,
    DecideRequest,
    Decision,
    FeedbackRequest,
)
from topstory.serving.config.schema import Config
from topstory.serving.journal.clock import SECOND, Clock
from topstory.serving.journal.records import Decided, Entry, Placed, Removed
from topstory.serving.service import frontend
from topstory.serving.service.frontend import FrontEnd
from topstory.serving.service.replies import Awaited
from topstory.serving.service.service import Service
from topstory.serving.service.transport import LocalProposal, Payments
from topstory.serving.service.view import VisibleState
from topstory.serving.workers.learner import Learner
from topstory.serving.workers.shared_memory.double_buffer import Reader, Writer
from topstory.serving.workers.shared_memory.mapped_view import MappedView
from topstory.serving.workers.shared_memory.publisher import Publisher
from topstory.serving.workers.transport import SocketTransport
from topstory.serving.workers.wire import Decoder, from_learner, from_worker

USER = (0.2, 0.3, 0.5, 1.0)
START = 2_000_000_000 * SECOND
Answers = list[Any]


class Remote:
    """A front end behind the socket transport, whose messages are encoded but not sent."""

    def __init__(self, service: Service, settings: Config) -> None:
        writer = Writer()
        publisher = Publisher(service.state, tuple(settings.pools), service.clock, 0.0, writer)
        publisher.publish()

        def publish(batch: Sequence[Entry]) -> None:
            edited = {e.record.pool for e in batch if isinstance(e.record, Placed | Removed)}
            publisher.changed(*edited)
            publisher.publish()

        service.ledger.on_applied = publish
        self.view = Timed(settings, Reader(writer.descriptors), service)
        self.transport = SocketTransport(self.view, self._to(from_worker, lambda: self.learner))
        self.learner = Learner(
            service.sequencer, publisher, nothing, nothing, self._to(from_learner, self._transport)
        )
        self.front = FrontEnd(settings, self.view, self.transport, SIGNER, None)

    def _transport(self) -> SocketTransport:
        return self.transport

    def _to(self, decoder: Decoder, end: Callable[[], Any]) -> Callable[[msgspec.Struct], None]:
        """Deliver a message in the next turn, as a socket would."""

        def send(message: msgspec.Struct) -> None:
            (copy,) = decoder.decode(msgspec.msgpack.encode([message]))
            asyncio.get_running_loop().call_soon(lambda: end().received(copy))

        return send


class Timed(MappedView):
    """A mapped view whose clock stands still with the service's."""

    def __init__(self, settings: Config, reader: Reader, service: Service) -> None:
        super().__init__(settings, reader)
        self._service = service

    def now(self) -> int:
        return self._service.clock.now()


async def nothing(*_: Any) -> None:
    raise AssertionError("nothing is forwarded here")


async def answers(front: FrontEnd, requests: Sequence[DecideRequest | FeedbackRequest]) -> Answers:
    """What became of requests that come in one turn; of a refusal, its status and reason."""
    replies: list[Awaited[Any]] = []
    for each in requests:
        replies.append(Awaited())
        try:
            if isinstance(each, DecideRequest):
                front.ask(each, replies[-1])
            else:
                front.pay(each, replies[-1])
        except ApiError as error:
            replies[-1].refuse(error)
    found = await asyncio.gather(*(each.answer for each in replies), return_exceptions=True)
    return [(e.status, e.reason) if isinstance(e, ApiError) else e for e in found]


async def traffic(service: Service, front: FrontEnd, wall: list[int]) -> Answers:
    """Visits, repeats, clicks, edits and mistakes, with a clock that the test moves."""
    random = np.random.default_rng(4)
    found: Answers = []
    for turn in range(12):
        requests = []
        for number in range(int(random.integers(2, 9))):
            # The same id in the same turn and in the next one, and sometimes for something else.
            ids = (None, None, f"r{turn}", f"r{turn - 1}", f"r{turn}-{number}")
            request = ids[int(random.integers(5))]
            user = USER if request and random.random() < 0.9 else visitor(random)
            slots = 1 if request else int(random.integers(1, 3))
            exclude = ("article-0",) if not request and random.random() < 0.2 else ()
            requests.append(DecideRequest(user=user, request=request, slots=slots, exclude=exclude))
        requests.append(DecideRequest(user=(1.0,)))
        found += await answers(front, requests)
        decisions = [each.decision for each in found if isinstance(each, Decision)]
        paid = [*random.choice(decisions, 4).tolist(), "k1.forged"]
        payoffs = random.integers(2, size=5).tolist()
        given = zip(paid, payoffs, strict=True)
        found += await answers(front, [FeedbackRequest(decision=d, payoff=p) for d, p in given])
        if turn == 5:
            await service.put_article("front", "new", ArticleRequest(features=(0.2, 0.8, 1.0)))
        if turn == 8:
            await service.remove_article("front", "article-1")
        wall[0] += SECOND
    for name in [*service.state.pools["front"].articles]:
        await service.remove_article("front", name)
    gone = [DecideRequest(user=USER, request=r) for r in (None, "r11", "never")]
    return found + await answers(front, gone)


def served(settings: Config, remote: bool) -> tuple[Answers, list[bytes], str]:
    """The answers to the traffic, its records without `draw`, and the state's fingerprint."""
    made = Made(settings)
    service, wall = made.service, [START]

    async def work() -> Answers:
        await add_articles(service)
        service.ledger.clock = Clock(START, wall=lambda: wall[0], steady=lambda: 0)
        front = Remote(service, settings).front if remote else service.front
        found = await traffic(service, front, wall)
        await service.commits.drain()
        return found

    found = asyncio.run(work())
    records = []
    for entry, _ in made.folder.journal.read():
        record = entry.record
        if isinstance(record, Decided):
            assert (record.draw is not None) == remote  # in one process it is the number
            record = msgspec.structs.replace(record, draw=None)
        if entry.at >= START:
            records.append(msgspec.msgpack.encode([entry.number, entry.at, record]))
    fingerprint = service.state.fingerprint()
    made.crash()
    return found, records, fingerprint


@pytest.mark.parametrize("decisions", ["durable", "relaxed"])
def test_the_transport_changes_neither_answers_nor_records(tmp_path: Path, decisions: str) -> None:
    """In the learning bucket of a model without ties, where nothing depends on the draw."""
    settings = {
        "traffic": {"learning": 1, "deployment": 0, "uniform": 0},
        "journal": {"decisions": decisions},
    }
    direct = served(config(tmp_path / "direct", **settings), remote=False)
    remote = served(config(tmp_path / "remote", **settings), remote=True)
    assert direct == remote
    answers, records, _ = direct
    assert len(records) > 50
    assert {type(each) for each in answers} == {Decision, Acknowledged, tuple}
    assert {each for each in answers if isinstance(each, tuple)} >= {
        *((422, "bad_context"), (403, "forged_decision"), (409, "no_article")),
        *((409, "request_conflict"), (409, "payoff_conflict")),
    }


class Fake:
    """A transport that keeps what it is given."""

    def __init__(self) -> None:
        self.proposals: list[LocalProposal] = []
        self.payments: list[Payments] = []

    def propose(self, proposal: LocalProposal) -> None:
        self.proposals.append(proposal)

    def pay(self, payments: Payments) -> None:
        self.payments.append(payments)


class NoView:
    """A view without pools: nothing is scored before the transport asks for it."""

    def latest(self) -> VisibleState:
        return VisibleState(0, {})

    def now(self) -> int:
        return 0


def front_end(transport: Any, **limits: float) -> FrontEnd:
    return FrontEnd(config(Path("nowhere"), limits=limits), NoView(), transport, SIGNER, None)


def test_visits_of_one_turn_are_proposed_together_and_each_of_them_is_answered() -> None:
    async def work() -> None:
        fake, error = Fake(), ApiError(503, "overloaded", "too many")
        front = front_end(fake)
        replies: list[Awaited[Decision]] = [Awaited() for _ in range(5)]
        for number, reply in enumerate(replies):
            front.ask(DecideRequest(user=USER, slots=2 if number == 2 else 1), reply)
        await asyncio.sleep(0)
        together, alone = fake.proposals
        assert (len(together.requests), len(alone.requests)) == (4, 1)
        decided = Decided("front", front.pack(*USER), "a", 0, 0.5, 10, 7, True)
        together.made((0, 2), 40, (decided, decided))
        together.earlier(1, 12, decided)
        together.denied((3,), error)
        alone.outdated((0,))
        assert [SIGNER.check((await replies[i].answer).decision)[0] for i in (0, 1, 3)] == [
            *(40, 12, 41)
        ]
        with pytest.raises(ApiError) as caught:
            await replies[4].answer
        assert caught.value is error
        await asyncio.sleep(0)  # what was outdated is proposed again
        assert [each.requests for each in fake.proposals[2:]] == [[None]]

    asyncio.run(work())


@pytest.mark.parametrize("slots", [1, 100])
def test_a_turn_ends_in_time_whatever_its_requests_take(
    slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long rankings, and pools with levers, take a hundred times as long as what was measured."""
    now = [0.0]
    monkeypatch.setattr(frontend, "perf_counter", lambda: now[0])

    class Slow(Fake):
        def propose(self, proposal: LocalProposal) -> None:
            super().propose(proposal)
            now[0] += 0.015

    async def work() -> None:
        fake = Slow()
        front = front_end(fake, queue_seconds=60.0)
        for number in range(1_000):
            front.ask(DecideRequest(user=USER, slots=slots, request=f"{number}"), Awaited())
        done = 0
        while done < 1_000:
            before = now[0]
            await asyncio.sleep(0)
            assert 0 < now[0] - before < 0.04
            done = sum(len(each.requests) for each in fake.proposals)
        asked = [each for proposal in fake.proposals for each in proposal.requests]
        assert asked == [f"{number}" for number in range(1_000)]  # in their order, each once

    asyncio.run(work())


def test_payoffs_of_one_turn_are_recorded_together_and_each_of_them_is_answered() -> None:
    async def work() -> None:
        fake, error = Fake(), ApiError(503, "overloaded", "too many")
        front = front_end(fake)
        ids = [SIGNER.sign(number, 9) for number in range(4)]
        replies: list[Any] = [Awaited() for _ in ids]
        replies[1] = None  # fails: the others get their answers all the same
        for number, (decision, reply) in enumerate(zip(ids, replies, strict=True)):
            front.pay(FeedbackRequest(decision=decision, payoff=number / 4), reply, f"key-{number}")
        await asyncio.sleep(0)
        (batch,) = fake.payments
        assert list(batch.receipts) == [(number, 9) for number in range(4)]
        assert list(batch.payoffs) == [0.0, 0.25, 0.5, 0.75]
        assert list(batch.keys) == ["key-0", "key-1", "key-2", "key-3"]
        batch.settled((1, 3), repeated=False)
        batch.settled((0,), repeated=True)
        batch.denied((1, 2), error)
        assert await replies[0].answer == Acknowledged(ids[0], 0.0, repeated=True)
        assert await replies[3].answer == Acknowledged(ids[3], 0.75, repeated=False)
        with pytest.raises(ApiError) as caught:
            await replies[2].answer
        assert caught.value is error
        front.pay(FeedbackRequest(decision=ids[0], payoff=1), Awaited())
        await asyncio.sleep(0)
        assert [len(each.receipts) for each in fake.payments] == [4, 1]

    asyncio.run(work())


def test_a_transport_that_fails_leaves_nobody_waiting(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Fake):
        def propose(self, proposal: LocalProposal) -> None:
            raise OSError("the socket is gone")

        def pay(self, payments: Payments) -> None:
            raise OSError("the socket is gone")

    async def work() -> None:
        front, replies = front_end(Broken()), [Awaited[Any](), Awaited[Any]()]
        front.ask(DecideRequest(user=USER), replies[0])
        front.pay(FeedbackRequest(decision=SIGNER.sign(1, 9), payoff=1), replies[1])
        for each in replies:
            with pytest.raises(ApiError) as caught:
                await each.answer
            assert refused(caught) == (500, "internal_error")

    asyncio.run(work())
    assert caplog.text.count("OSError: the socket is gone") == 2
