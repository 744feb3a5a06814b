"""The two routes that every visit takes, as plain ASGI callables."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from starlette.types import Receive, Scope, Send

from topstory.serving.api.errors import Refused
from topstory.serving.api.messages import Acknowledged, DecideRequest, Decision, FeedbackRequest
from topstory.serving.config.schema import Config, Role
from topstory.serving.http.asgi import JSON, answer_bytes, header, read_body
from topstory.serving.security.api_keys import Key, Keys
from topstory.serving.service.replies import Awaited, Part, Reply, Together, attempt

Asked = TypeVar("Asked")
_encoder = msgspec.json.Encoder()


class Answering(Protocol):
    """Whoever answers: a service, or a worker that asks one."""

    config: Config

    def ask(self, asked: DecideRequest, reply: Reply[Decision]) -> None:
        """Show an article to a user."""
        ...

    def pay(self, given: FeedbackRequest, reply: Reply[Acknowledged]) -> None:
        """Take in what a decision paid."""
        ...


class HotRoute(Generic[Asked]):
    """Decodes one request or an array of them, calls, encodes."""

    def __init__(
        self,
        role: Role,
        kind: type[Asked],
        call: Callable[[Asked, Reply[Any]], None],
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
        key = self.entitled(header(scope, b"authorization"))  # before a stranger's body is read
        body = await read_body(scope, receive, self._limits.body_bytes)
        reply: Awaited[Any] = Awaited()
        self.begin(key, body, now, reply)
        await answer_bytes(send, 200, _encoder.encode(await reply.answer), JSON)

    def entitled(self, authorization: bytes | None) -> Key:
        """The key, if it may come this way."""
        return self._keys.entitled(authorization, self._role)

    def begin(self, key: Key, body: bytes, now: float, reply: Reply[Any]) -> None:
        """The reply gets the answer to a body, unless it is refused at once."""
        if body[:1] == b"[" or body.lstrip()[:1] == b"[":
            self._begin_many(key, body, now, reply)
        else:
            self._keys.spend(key, now, 1)
            self._call(decoded(self._one, body), reply)

    def _begin_many(self, key: Key, body: bytes, now: float, reply: Reply[Any]) -> None:
        self._keys.spend(key, now, 1)
        asked = decoded(self._many, body)
        if len(asked) > self._limits.batch:
            raise Refused(
                413, "batch_too_long", f"an array has {self._limits.batch} requests at most"
            )
        self._keys.spend(key, now, max(0, len(asked) - 1))
        if not asked:
            reply.grant([])
        together = Together(len(asked), reply)
        for place, each in enumerate(asked):
            part = Part(together, place)
            attempt(part, self._call, each, part)


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
    return HotRoute("decide", DecideRequest, service.ask, service, keys)


def feedback_route(service: Answering, keys: Keys) -> HotRoute[FeedbackRequest]:
    """POST /v1/feedback."""
    return HotRoute("feedback", FeedbackRequest, service.pay, service, keys)
