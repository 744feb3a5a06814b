"""The routes that every visit takes, as plain ASGI callables."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol

import msgspec
from starlette.types import Receive, Scope, Send

from topstory.serving.api.endpoints import ENDPOINTS, Endpoint
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import Acknowledged, DecideRequest, Decision, FeedbackRequest
from topstory.serving.config.limits import LimitsConfig
from topstory.serving.config.schema import Config
from topstory.serving.http.asgi import header, read_body, send_json
from topstory.serving.security.api_keys import Key, Keys
from topstory.serving.service.replies import (
    Awaited,
    ElementReply,
    Reply,
    Together,
    attempt,
    unexpected,
)

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # bodies


class DecisionService(Protocol):
    """What the hot routes need: a service, or a worker's front end."""

    config: Config

    def check_room(self) -> None:
        """Raise an error if one more decision would be refused."""
        ...

    def check_payments(self) -> None:
        """Raise an error if one more payoff would be refused."""
        ...

    def ask(self, request: DecideRequest, reply: Reply[Decision], key: str) -> None:
        """Choose an article for a user."""
        ...

    def pay(self, request: FeedbackRequest, reply: Reply[Acknowledged], key: str) -> None:
        """Record the payoff of a decision."""
        ...


def hot_routes(service: DecisionService, keys: Keys) -> dict[str, HotRoute]:
    """The routes that take one request or an array, by path."""
    handlers: dict[str, Callable[[Any, Reply[Any], str], None]] = {
        "decide": service.ask,
        "feedback": service.pay,
    }
    checks = {"decide": service.check_room, "feedback": service.check_payments}
    limits = service.config.limits
    return {
        endpoint.path: HotRoute(
            *(endpoint, handlers[endpoint.name], checks[endpoint.name], limits, keys)
        )
        for endpoint in ENDPOINTS
        if endpoint.batch
    }


class HotRoute:
    """Decodes one request or an array of them, calls the service, encodes the answer."""

    def __init__(
        self,
        endpoint: Endpoint[Any],
        handle: Callable[[Any, Reply[Any], str], None],
        check: Callable[[], None],
        limits: LimitsConfig,
        keys: Keys,
    ) -> None:
        assert endpoint.role is not None
        self._check = check
        self.method = endpoint.method
        self._role, self._handle, self._limits, self._keys = endpoint.role, handle, limits, keys
        # Two decoders: for a union with an array, msgspec would look at the body twice anyway.
        kind = endpoint.request
        self._one = msgspec.json.Decoder(kind)
        self._many: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(
            list[kind]  # type: ignore[valid-type]  # a type made at run time
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request by ASGI."""
        now = monotonic()
        key = self.authorise(header(scope, b"authorization"))  # before the body is read
        body = await read_body(scope, receive, self._limits.body_bytes)
        reply: Awaited[Any] = Awaited()
        self.begin(key, body, now, reply)
        await send_json(send, 200, await reply.answer)

    def authorise(self, authorization: bytes | None) -> Key:
        """The key of an Authorization header, if it may use this route."""
        return self._keys.authorise(authorization, self._role)

    def begin(self, key: Key, body: bytes, now: float, reply: Reply[Any]) -> None:
        """Handle a body that began to arrive at `now`; the reply gets the answer or the error."""
        try:
            if body[:1] != b"{" and body.lstrip()[:1] == b"[":
                self._begin_many(key, body, now, reply)
                return
            self._keys.spend(key, now, 1)
            try:
                request = self._one.decode(body)
            except UNREADABLE as error:
                raise unreadable(error) from None
            self._handle(request, reply, key.name)
        except ApiError as error:
            reply.refuse(error)
        except Exception:
            reply.refuse(unexpected())

    def _begin_many(self, key: Key, body: bytes, now: float, reply: Reply[Any]) -> None:
        self._keys.spend(key, now, 1)
        self._check()  # before the array is decoded, which takes longer than to refuse it
        requests = decoded(self._many, body)
        if len(requests) > self._limits.batch:
            raise ApiError(
                413, "batch_too_long", f"an array may have at most {self._limits.batch} requests"
            )
        self._keys.spend(key, now, max(0, len(requests) - 1))
        if not requests:
            reply.grant([])
        together = Together(len(requests), reply)
        for place, each in enumerate(requests):
            element = ElementReply(together, place)
            attempt(element, self._handle, each, element, key.name)


def decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """The decoded body. Raises an error that says what is wrong, and where."""
    try:
        return decoder.decode(body)
    except UNREADABLE as error:
        raise unreadable(error) from None


def unreadable(error: Exception) -> ApiError:
    """The error for a body that cannot be decoded."""
    if isinstance(error, msgspec.ValidationError):
        return ApiError(422, "bad_request", str(error))
    return ApiError(400, "bad_json", f"the body is not JSON: {error}")
