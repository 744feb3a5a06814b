"""The learner's end of the transport to one worker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from starlette.types import ASGIApp

from topstory.serving.api.errors import ApiError
from topstory.serving.journal.records import Decided
from topstory.serving.service.sequencer.sequencer import Sequencer
from topstory.serving.service.transport import Wanted
from topstory.serving.workers.forwarding import answered, long_answers
from topstory.serving.workers.link import SendMessage
from topstory.serving.workers.shared_memory.publisher import Publisher
from topstory.serving.workers.wire import (
    Denied,
    Earlier,
    Forwarded,
    FromWorker,
    NothingToShow,
    Outdated,
    Paying,
    Proposed,
    Settled,
    Taken,
)


class Learner:
    """Takes what one worker proposes to the sequencer, and sends back what became of it."""

    def __init__(
        self,
        sequencer: Sequencer,
        publisher: Publisher,
        app: ASGIApp,
        warm_up: Callable[[], Awaitable[None]],
        send: SendMessage,
    ) -> None:
        self._sequencer, self._publisher, self._app, self._send = sequencer, publisher, app, send
        self._warm_up, self._long_answers = warm_up, long_answers()
        self._tasks: set[asyncio.Task[None]] = set()

    def received(self, message: FromWorker) -> None:
        """Pass on what the worker asks."""
        if isinstance(message, Proposed | NothingToShow):
            self._sequencer.propose(RemoteProposal(message, self, self._publisher, self._send))
        elif isinstance(message, Paying):
            self._sequencer.pay(RemotePayments(message, self._send))
        elif isinstance(message, Forwarded):
            task = asyncio.create_task(self._forward(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _forward(self, message: Forwarded) -> None:
        answer = await answered(self._app, message, self._long_answers)
        if (
            self._publisher.has_first_article
        ):  # the editor waits for workers to load kernels, no visitor does
            self._publisher.has_first_article = False
            await self._warm_up()
        self._send(answer)


class RemoteProposal:
    """Stands in for a worker's proposal, which was scored there."""

    def __init__(
        self,
        message: Proposed | NothingToShow,
        source: Learner,
        publisher: Publisher,
        send: SendMessage,
    ) -> None:
        self.pool, self.source, self._send = message.pool, source, send
        self._message, self._publisher = message, publisher
        self.requests: Sequence[str | None]
        if isinstance(message, Proposed):
            self.requests = [each.request for each in message.decided]
        else:
            self.requests = [request for request, _ in message.requests]

    def is_current(self, at: int) -> bool:
        """Whether the worker saw the pool as it is, and its list of articles holds at this time."""
        message, publisher = self._message, self._publisher
        ends = min(message.ends, publisher.until)
        return message.edition == publisher.editions[self.pool] and message.begins <= at < ends

    def wanted(self, place: int) -> Wanted:
        """What the request is for."""
        message = self._message
        if isinstance(message, NothingToShow):
            return message.requests[place][1]
        decided = message.decided[place]
        return decided.pool, decided.user, decided.exclude, decided.slots

    def decide(self, places: Sequence[int], first: int, at: int) -> Sequence[Decided]:
        """The worker has decided; ApiError if it had nothing to show."""
        message = self._message
        if isinstance(message, NothingToShow):
            raise ApiError(*message.error)
        return [message.decided[place] for place in places]

    def made(self, places: Sequence[int], first: int, decided: Sequence[Decided]) -> None:
        """Send the numbers of decisions."""
        for begin, count in _runs(places):
            self._send(Taken(self._message.first + begin, count, first))
            first += count

    def earlier(self, place: int, number: int, decided: Decided) -> None:
        """Send the decision of an earlier, equal request."""
        self._send(Earlier(self._message.first + place, number, decided))

    def outdated(self, places: Sequence[int]) -> None:
        """Have the worker propose again, from what is published by now."""
        if self._message.edition == self._publisher.editions[self.pool]:
            self._publisher.publish()  # no edit came: its clock or its list was behind
        for begin, count in _runs(places):
            self._send(Outdated(self._message.first + begin, count))

    def denied(self, places: Sequence[int], error: ApiError) -> None:
        """Send an error."""
        _deny(self._send, self._message.first, places, error)


class RemotePayments:
    """Stands in for payoffs that a worker was given."""

    def __init__(self, message: Paying, send: SendMessage) -> None:
        self.receipts, self.payoffs, self.keys = message.receipts, message.payoffs, message.keys
        self._first, self._send = message.first, send

    def settled(self, places: Sequence[int], repeated: bool) -> None:
        """Acknowledge payoffs."""
        numbers = [self._first + place for place in places]
        self._send(Settled(numbers, [repeated] * len(numbers)))

    def denied(self, places: Sequence[int], error: ApiError) -> None:
        """Send an error."""
        _deny(self._send, self._first, places, error)


def _deny(send: SendMessage, first: int, places: Sequence[int], error: ApiError) -> None:
    for begin, count in _runs(places):
        send(Denied(first + begin, count, error.status, error.reason, error.message))


def _runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Consecutive places: where each run begins, and how many they are.

    >>> list(_runs([0, 1, 2, 5, 7, 8]))
    [(0, 3), (5, 1), (7, 2)]
    """
    begin = 0
    for end in range(1, len(places) + 1):
        if end == len(places) or places[end] != places[end - 1] + 1:
            yield places[begin], end - begin
            begin = end
