"""Where an answer goes once it is known."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from topstory.serving.api.errors import ApiError

log = logging.getLogger("topstory.serving")

Answer = TypeVar("Answer")
Given = TypeVar("Given", contravariant=True)


class Refusable(Protocol):
    """Takes an error."""

    def refuse(self, refused: ApiError) -> None:
        """Answer with this error."""
        ...


class Reply(Refusable, Protocol[Given]):
    """Takes one answer or one error. A plain call: nothing has to be woken up for it."""

    def grant(self, answer: Given) -> None:
        """Answer with this."""
        ...


class Awaited(Generic[Answer]):
    """A reply backed by a future."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def grant(self, answer: Answer) -> None:
        """Answer with this."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def refuse(self, refused: ApiError) -> None:
        """Answer with this error."""
        if not self.answer.done():
            self.answer.set_exception(refused)


class Together:
    """The answers to an array, once all are known; each is granted or refused by itself."""

    def __init__(self, count: int, whole: Reply[Any]) -> None:
        self._answers: list[Any] = [None] * count
        self._missing, self._whole = count, whole

    def put(self, place: int, answer: Any) -> None:
        """One of them."""
        self._answers[place] = answer
        self._missing -= 1
        if not self._missing:
            self._whole.grant(self._answers)


class ElementReply:
    """The reply to one request of an array."""

    def __init__(self, together: Together, place: int) -> None:
        self._together, self._place = together, place

    def grant(self, answer: Any) -> None:
        """Answer with this."""
        self._together.put(self._place, answer)

    def refuse(self, refused: ApiError) -> None:
        """Answer with this error."""
        self._together.put(self._place, refused.answer)


def attempt(reply: Refusable, work: Callable[..., None], *arguments: Any) -> None:
    """Do the work; if it fails, the reply gets the error: every request must get an answer."""
    try:
        work(*arguments)
    except ApiError as refused:
        reply.refuse(refused)
    except Exception:
        reply.refuse(unexpected())


def unexpected() -> ApiError:
    """Log the exception at hand; clients learn no more of it than this error."""
    log.exception("a request failed unexpectedly")
    return ApiError(500, "internal_error", "internal error")
