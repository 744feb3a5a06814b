"""The learner's answers to one worker: decisions get their numbers, payoffs count once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
from starlette.types import ASGIApp

from topstory.serving.api.errors import Refused
from topstory.serving.api.messages import Acknowledged, FeedbackRequest
from topstory.serving.journal.group_commit import overloaded
from topstory.serving.journal.records import Decided
from topstory.serving.service.recent_decisions import Remembered
from topstory.serving.service.replies import attempt
from topstory.serving.service.sequencer import Wanted, not_written
from topstory.serving.service.service import Service
from topstory.serving.workers.forwarding import answered
from topstory.serving.workers.shared_memory.publisher import Publisher
from topstory.serving.workers.wire import (
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
            self._paid(message)
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
        try:
            self._service.certain(pool=told.pool)
        except Refused as refused:
            self.deny(told.first, len(told.decided), refused)
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
        run: list[Decided] = []  # new ones, taken together
        asked: set[str] = set()  # the clients' ids among them
        for i, decided in enumerate(told.decided):
            place = told.first + i
            if decided.request in asked:  # its twin comes first
                self._take(place - len(run), run, at)
                run, asked = [], set()
            if decided.request is not None and self._answered(told, i, at, looked):
                self._take(place - len(run), run, at)
                run, asked = [], set()
                continue
            if told.refused is not None:
                self.deny(place, 1, Refused(*told.refused))
                continue
            run.append(decided)
            if decided.request is not None:
                asked.add(decided.request)
        self._take(told.first + len(told.decided) - len(run), run, at)

    def _answered(self, told: Proposed, i: int, at: int, looked: int) -> bool:
        """Whether a client's request is taken care of: made before, refused, or looked for."""
        place, decided = told.first + i, told.decided[i]
        assert decided.request is not None
        try:
            if self._service.far(decided.request, at, looked):
                self._seek(told, i, at)
                return True
            made = self._service.made_before(decided.request, _wanted(decided), at, looked)
        except Refused as refused:
            self.deny(place, 1, refused)
            return True
        if made is not None:
            self._repeat(place, made)
        return made is not None

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

    def _take(self, first: int, run: list[Decided], at: int) -> None:
        if not run:
            return
        try:
            made = self._service.take(run, at)
        except Refused as refused:
            self.deny(first, len(run), refused)
            return
        taken, committing = Taken(first, len(made), made[0].number), made[0].committing
        if self._durable and committing is not None:
            committing.then(partial(self._committed, taken, first, len(made)))
        else:
            self._say(taken)
        if len(made) < len(run):
            self.deny(first + len(made), len(run) - len(made), overloaded())

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

    def _paid(self, told: Payments) -> None:
        """Most are news: those are taken together, and the others one by one."""
        news, commit = self._service.pay_new(told.tickets, told.payoffs)
        if commit is not None:
            commit.then(partial(self._all_settled, [told.first + place for place in news]))
        left = set(range(len(told.tickets))).difference(news) if news else range(len(told.tickets))
        for place in sorted(left):
            reply = _Paying(self, told.first + place)
            given = FeedbackRequest(decision="", payoff=told.payoffs[place])
            attempt(reply, self._service.pay_for, told.tickets[place], given, reply)

    def _all_settled(self, numbers: list[int], failure: str | None) -> None:
        if failure is None:
            self._say(Settled(numbers, [False] * len(numbers)))
        else:
            for number in numbers:
                self.deny(number, 1, not_written(failure))

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
