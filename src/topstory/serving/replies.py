"""Where an answer goes once it is known."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from topstory.serving.refusals import Refused

log = logging.getLogger("topstory.serving")

Answer = TypeVar("Answer", bound=msgspec.Struct)
Given = TypeVar("Given", bound=msgspec.Struct, contravariant=True)


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
