"""The two routes that every visit takes, as plain ASGI callables."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from starlette.types import Receive, Scope, Send

from topstory.serving.answering import JSON, answer_bytes, header, read_body
from topstory.serving.config import Config, Role
from topstory.serving.keys import Keys
from topstory.serving.messages import Acknowledged, DecideRequest, Decision, FeedbackRequest
from topstory.serving.refusals import Refused

Asked = TypeVar("Asked")
_encoder = msgspec.json.Encoder()


class Answering(Protocol):
    """Whoever answers: a service, or a worker that asks one."""

    config: Config

    async def decide(self, asked: DecideRequest) -> Decision:
        """Show an article to a user."""
        ...

    async def feedback(self, given: FeedbackRequest) -> Acknowledged:
        """Take in what a decision paid."""
        ...


class HotRoute(Generic[Asked]):
    """Decodes one request or an array of them, calls, encodes."""

    def __init__(
        self,
        role: Role,
        kind: type[Asked],
        call: Callable[[Asked], Awaitable[msgspec.Struct]],
        service: Answering,
        keys: Keys,
    ) -> None:
        self._role, self._call, self._keys = role, call, keys
        self._limits = service.config.limits
        # Two decoders, for a union with an array would have to be looked at twice in any case.
        self._one = msgspec.json.Decoder(kind)
        self._many: msgspec.json.Decoder[list[Asked]] = msgspec.json.Decoder(
            list[kind]  # type: ignore[valid-type]  # a type made at run time
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request by ASGI."""
        now = monotonic()
        authorization = header(scope, b"authorization")
        self._keys.find(authorization)  # before a stranger's body is read
        body = await read_body(scope, receive, self._limits.body_bytes)
        await answer_bytes(send, 200, await self.respond(authorization, body, now), JSON)

    async def respond(self, authorization: bytes | None, body: bytes, now: float) -> bytes:
        """The answer to a body, as JSON."""
        key = self._keys.allow(authorization, self._role, now)
        if body[:1] == b"[" or body.lstrip()[:1] == b"[":
            asked = decoded(self._many, body)
            if len(asked) > self._limits.batch:
                raise Refused(
                    413, "batch_too_long", f"an array has {self._limits.batch} requests at most"
                )
            self._keys.spend(key, now, max(0, len(asked) - 1))
            return _encoder.encode(await asyncio.gather(*map(self._each, asked)))
        return _encoder.encode(await self._call(decoded(self._one, body)))

    async def _each(self, asked: Asked) -> msgspec.Struct:
        """In an array each request is granted or refused for itself."""
        try:
            return await self._call(asked)
        except Refused as refused:
            return refused.answer


def decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """The request; else it is refused, with where and why."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Refused(422, "bad_request", str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, "bad_json", f"the body is not JSON: {error}") from None


def decide_route(service: Answering, keys: Keys) -> HotRoute[DecideRequest]:
    """POST /v1/decide."""
    return HotRoute("decide", DecideRequest, service.decide, service, keys)


def feedback_route(service: Answering, keys: Keys) -> HotRoute[FeedbackRequest]:
    """POST /v1/feedback."""
    return HotRoute("feedback", FeedbackRequest, service.feedback, service, keys)
