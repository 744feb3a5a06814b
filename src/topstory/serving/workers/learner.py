"""The learner's answers to one worker: decisions get their numbers, payoffs count once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
from starlette.types import ASGIApp

from topstory.serving.ledger import Wanted, not_written
from topstory.serving.messages import Acknowledged, FeedbackRequest
from topstory.serving.records import Decided
from topstory.serving.refusals import Refused
from topstory.serving.remembering import Remembered
from topstory.serving.replies import attempt
from topstory.serving.service import Service
from topstory.serving.workers.forwarding import answered
from topstory.serving.workers.messages import (
    Denied,
    Earlier,
    Forwarded,
    FromWorker,
    Outdated,
    Payments,
    Proposed,
    Settled,
    Taken,
)
from topstory.serving.workers.publishing import Publisher

Say = Callable[[msgspec.Struct], None]


class _Paying:
    """Where the answer to one payoff goes."""

    __slots__ = ("_learner", "_number")

    def __init__(self, learner: Learner, number: int) -> None:
        self._learner, self._number = learner, number

    def grant(self, answer: Acknowledged) -> None:
        """It counts, or did so before."""
        self._learner.settle(self._number, answer.repeated)

    def refuse(self, refused: Refused) -> None:
        """It does not."""
        self._learner.deny(self._number, 1, refused)


class Learner:
    """Answers one worker, from the one service that owns the state."""

    def __init__(
        self,
        service: Service,
        publisher: Publisher,
        app: ASGIApp,
        look: Callable[[], Awaitable[None]],
        say: Say,
    ) -> None:
        self._service, self._publisher, self._app, self._say = service, publisher, app, say
        self._look = look
        self._durable = service.durable
        self._settled: list[int] = []
        self._repeated: list[bool] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def heard(self, message: FromWorker) -> None:
        """What the worker asks."""
        if isinstance(message, Proposed):
            self._proposed(message)
        elif isinstance(message, Payments):
            for i, (ticket, payoff) in enumerate(
                zip(message.tickets, message.payoffs, strict=True)
            ):
                reply = _Paying(self, message.first + i)
                given = FeedbackRequest(decision="", payoff=payoff)
                attempt(reply, self._service.pay_for, ticket, given, reply)
        elif isinstance(message, Forwarded):
            task = asyncio.create_task(self._forwarded(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    # -- decisions --

    def _proposed(self, told: Proposed, looked: int = 0) -> None:
        editing = self._service.editing(told.pool)
        if editing is not None:  # what is decided after an edit must see it
            self._service.turns.hold(told.pool, self)
            editing.then(lambda _: self._say(Outdated(told.first, len(told.decided))))
            return
        at = self._service.clock.now()
        if told.edition != self._publisher.editions[told.pool]:
            self._service.turns.hold(told.pool, self)
            self._say(Outdated(told.first, len(told.decided)))
            return
        if not told.begins <= at < min(told.ends, self._publisher.until):
            self._publisher.publish()  # the worker's clock may be behind ours, or before
            self._say(Outdated(told.first, len(told.decided)))
            return
        self._service.turns.through(told.pool, self)
        run: list[Remembered] = []  # numbered one after the other
        for i, decided in enumerate(told.decided):
            try:
                made, far = None, self._service.far(decided.request, at, looked)
                if decided.request is not None and not far:
                    made = self._service.made_before(
                        *(decided.request, _wanted(decided), at, looked)
                    )
                if made is None and not far:
                    run.append(self._service.take(decided, at))
                    continue
                if made is None:
                    self._seek(told, i, at)
                else:
                    self._repeat(told.first + i, made)
            except Refused as refused:
                self.deny(told.first + i, 1, refused)
            self._take(told.first + i - len(run), run)
            run = []
        self._take(told.first + len(told.decided) - len(run), run)

    def _seek(self, told: Proposed, i: int, at: int) -> None:
        """Propose it again once the journal, which is far away, knows of no earlier decision."""
        number, decided = told.first + i, told.decided[i]
        assert decided.request is not None

        def then(made: Remembered | None) -> None:
            if made is None:
                self._proposed(msgspec.structs.replace(told, first=number, decided=[decided]), at)
            else:
                self._repeat(number, made)

        reply = _Paying(self, number)  # of which only refusals are heard
        self._service.look_for(decided.request, _wanted(decided), at, reply, then)

    def _take(self, first: int, run: list[Remembered]) -> None:
        if not run:
            return
        taken = Taken(first, len(run), run[0].number)
        committing = run[0].committing
        if self._durable and committing is not None:
            committing.then(partial(self._committed, taken, first, len(run)))
        else:
            self._say(taken)

    def _repeat(self, first: int, made: Remembered) -> None:
        told = Earlier(first, made.number, made.decided)
        if self._durable and made.committing is not None:
            made.committing.then(partial(self._committed, told, first, 1))
        else:
            self._say(told)

    def _committed(self, told: msgspec.Struct, first: int, count: int, failure: str | None) -> None:
        if failure is None:
            self._say(told)
        else:
            self.deny(first, count, not_written(failure))

    # -- payoffs --

    def settle(self, number: int, repeated: bool) -> None:
        """A payoff counts; those of one commit are told together."""
        if not self._settled:
            asyncio.get_running_loop().call_soon(self._tell_settled)
        self._settled.append(number)
        self._repeated.append(repeated)

    def _tell_settled(self) -> None:
        self._say(Settled(self._settled, self._repeated))
        self._settled, self._repeated = [], []

    # -- the rest --

    def deny(self, first: int, count: int, refused: Refused) -> None:
        """Say why not."""
        self._say(Denied(first, count, refused.status, refused.reason, refused.message))

    async def _forwarded(self, message: Forwarded) -> None:
        answer = await answered(self._app, message)
        if self._publisher.begun:  # visitors need not wait for kernels: the editor does
            self._publisher.begun = False
            await self._look()
        self._say(answer)


def _wanted(decided: Decided) -> Wanted:
    return decided.pool, decided.user, decided.exclude, decided.slots
