"""Requests that only the learner can answer, through the database: edits, levers, pages.

A front end writes the request into a table and the learner the answer. A call is begun once: if its
learner dies meanwhile, no other takes it up, for nobody knows how far it came. The front end then
answers 503; an edit with an `Idempotency-Key` can be sent again and is made once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec
from starlette.types import ASGIApp

from topstory.serving.api.errors import Unavailable
from topstory.serving.fleet.inbox import Inbox
from topstory.serving.journal.journal import JournalError
from topstory.serving.workers.forwarding import answered
from topstory.serving.workers.wire import Answered, Forwarded

log = logging.getLogger("topstory.serving")

CALL_SECONDS = 10.0  # the longest wait for an answer
MAX_CALLS = 64  # that a front end has open; above: 503
_CALL = "INSERT INTO call (node, number, request) VALUES (%s, %s, %s)"
_TAKE = f"""
UPDATE call SET epoch = %s WHERE (SELECT term FROM meta) = %s AND id IN (
    SELECT id FROM call WHERE epoch IS NULL
    AND at > clock_timestamp() - interval '{CALL_SECONDS} seconds'
    ORDER BY id LIMIT {MAX_CALLS} FOR UPDATE SKIP LOCKED)
RETURNING id, request
"""
_ANSWER = "UPDATE call SET answer = %s WHERE id = %s"
_ANSWERS = "DELETE FROM call WHERE node = %s AND answer IS NOT NULL RETURNING number, answer"
_FORGET = "DELETE FROM call WHERE at < clock_timestamp() - interval '60 seconds'"


class Caller:
    """A front end's side: `send` is where `Forwarding` sends its requests."""

    def __init__(self, inbox: Inbox, node: int) -> None:
        self._inbox, self._node = inbox, node
        self._thread = ThreadPoolExecutor(1, "calls")
        self.received: Callable[[Answered], None] = lambda answer: None
        self._open: dict[int, asyncio.TimerHandle] = {}

    @property
    def open(self) -> bool:
        """Whether an answer is awaited."""
        return bool(self._open)

    def send(self, message: msgspec.Struct) -> None:
        """Have the learner answer it."""
        assert isinstance(message, Forwarded)
        loop = asyncio.get_running_loop()
        if len(self._open) >= MAX_CALLS:
            loop.call_soon(self._refuse, message.first, "too many requests wait for the learner")
            return
        late = "the learner did not answer in time; an edit may have been made or not"
        self._open[message.first] = loop.call_later(CALL_SECONDS, self._refuse, message.first, late)
        body = msgspec.msgpack.encode(message)
        writing = loop.run_in_executor(self._thread, self._write, message.first, body)
        writing.add_done_callback(lambda done: self._written(message.first, done))

    def _write(self, number: int, body: bytes) -> None:
        self._inbox.do(_CALL, self._node, number, body)

    def _written(self, number: int, done: asyncio.Future[None]) -> None:
        error = done.exception()
        if error is not None:
            self._refuse(number, f"the database cannot be written: {error}")

    def _refuse(self, number: int, reason: str) -> None:
        error = Unavailable(reason)
        body = msgspec.json.encode(error.answer)
        headers = [(b"content-type", b"application/json"), (b"retry-after", b"1")]
        self.deliver(Answered(number, error.status, headers, body))

    def deliver(self, answer: Answered) -> None:
        """Hand an answer over, unless it comes too late."""
        timer = self._open.pop(answer.first, None)
        if timer is not None:
            timer.cancel()
            self.received(answer)
        elif answer.status == 503:
            self.received(answer)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()


def answers(inbox: Inbox, node: int) -> list[Answered]:
    """What the learner has answered since the last call; in the listener's thread."""
    rows = inbox.run(_ANSWERS, node)
    found = [(number, msgspec.msgpack.decode(bytes(body), type=Answered)) for number, body in rows]
    return [msgspec.structs.replace(each, first=int(number)) for number, each in found]


class Desk:
    """The learner's side: takes calls, and answers them by its own application."""

    def __init__(self, app: ASGIApp, inbox: Inbox, epoch: Callable[[], int], announce: str) -> None:
        """`epoch`: the learner's; it has another one after every lost connection."""
        self._app, self._inbox, self._epoch, self._announce = app, inbox, epoch, announce
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = ThreadPoolExecutor(1, "calls")

    async def run(self, seconds: float) -> None:
        """Look for calls so often."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                taken = await loop.run_in_executor(self._thread, self._take)
            except JournalError as error:
                log.error("calls cannot be read: %s", error)
                await asyncio.sleep(1.0)
                continue
            for number, request in taken:
                task = asyncio.create_task(self._answer(number, request))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            if not taken:
                await asyncio.sleep(seconds)

    def _take(self) -> list[tuple[int, Forwarded]]:
        epoch = self._epoch()
        rows = self._inbox.run(_TAKE, epoch, epoch)  # none, if it was replaced
        return [
            (number, msgspec.msgpack.decode(bytes(body), type=Forwarded)) for number, body in rows
        ]

    async def _answer(self, number: int, request: Forwarded) -> None:
        body = msgspec.msgpack.encode(await answered(self._app, request))
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._write, number, body)
        except JournalError as error:  # the front end gives up by itself
            log.error("an answer could not be written: %s", error)

    def _write(self, number: int, body: bytes) -> None:
        self._inbox.do(_ANSWER, body, number)
        self._inbox.do(self._announce)
        self._inbox.do(_FORGET)

    async def close(self) -> None:
        """Answer no more, and end the thread; front ends give up by themselves."""
        for each in self._tasks:
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._thread.shutdown()
