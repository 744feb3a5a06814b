"""Where an answer goes once it is known."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from topstory.serving.api.errors import Refused

log = logging.getLogger("topstory.serving")

Answer = TypeVar("Answer")
Given = TypeVar("Given", contravariant=True)


class Reply(Protocol[Given]):
    """Takes one answer or one refusal. A plain call: nothing has to be woken up for it."""

    def grant(self, answer: Given) -> None:
        """Here it is."""
        ...

    def refuse(self, refused: Refused) -> None:
        """Say why not."""
        ...


class Awaited(Generic[Answer]):
    """A reply that somebody awaits."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def grant(self, answer: Answer) -> None:
        """Here it is."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def refuse(self, refused: Refused) -> None:
        """Say why not."""
        if not self.answer.done():
            self.answer.set_exception(refused)


class Together:
    """The answers to an array, once all are known; each is granted or refused for itself."""

    def __init__(self, count: int, whole: Reply[Any]) -> None:
        self._answers: list[Any] = [None] * count
        self._missing, self._whole = count, whole

    def put(self, place: int, answer: Any) -> None:
        """One of them."""
        self._answers[place] = answer
        self._missing -= 1
        if not self._missing:
            self._whole.grant(self._answers)


class Part:
    """The reply to one request of an array."""

    def __init__(self, together: Together, place: int) -> None:
        self._together, self._place = together, place

    def grant(self, answer: Any) -> None:
        """Here it is."""
        self._together.put(self._place, answer)

    def refuse(self, refused: Refused) -> None:
        """Say why not."""
        self._together.put(self._place, refused.answer)


class Everyone:
    """The replies to all who are decided for together, should that go wrong."""

    def __init__(self, replies: Iterable[Reply[Any]]) -> None:
        self._replies = replies

    def grant(self, answer: Any) -> None:
        """The same to all of them."""
        for reply in self._replies:
            reply.grant(answer)

    def refuse(self, refused: Refused) -> None:
        """Say why not, to all of them."""
        for reply in self._replies:
            reply.refuse(refused)


def attempt(reply: Reply[Any], work: Callable[..., None], *told: Any) -> None:
    """Do the work; what goes wrong is the reply, for nobody may be left waiting."""
    try:
        work(*told)
    except Refused as refused:
        reply.refuse(refused)
    except Exception:
        # Whatever it was, nobody outside learns more than that it was our fault.
        log.exception("a request failed unexpectedly")
        reply.refuse(Refused(500, "internal_error", "the service made a mistake"))
