"""Calls: what both clients send, and how they read the response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import uuid4

import msgspec

from topstory.serving.api.endpoints import BY_NAME, DECIDE, IDEMPOTENCY_KEY, Endpoint
from topstory.serving.api.errors import ApiError, ErrorAnswer
from topstory.serving.api.messages import Decision

T = TypeVar("T")

User = Sequence[float] | Mapping[str, Any]


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request to an endpoint."""

    endpoint: Endpoint[T]
    path: str
    body: bytes = b""
    many: bool = False  # the body is an array of requests
    headers: Mapping[str, str] = field(default_factory=dict)  # the same for all tries

    def answer(self, status: int, body: bytes, repeated: bool) -> T | None:
        """The decoded response; None if an earlier try had succeeded. Raises API errors."""
        if status == 200:
            kind = self.endpoint.response
            answer: Any
            if self.many:
                parts = msgspec.json.decode(body, type=list[msgspec.Raw])
                answer = [_one_of_many(part, kind) for part in parts]
            else:
                answer = body.decode() if kind is str else msgspec.json.decode(body, type=kind)
            decoded: T = answer
            return decoded
        try:
            error = msgspec.json.decode(body, type=ErrorAnswer).error
        except msgspec.DecodeError:
            raise ApiError(status, "not_topstory", body[:200].decode(errors="replace")) from None
        if repeated and error.reason == self.endpoint.repeated_reason:
            return None
        raise ApiError(status, error.reason, error.message)


def call(endpoint: Endpoint[T], body: Any = None, /, **parameters: str) -> Call[T]:
    """A call of an endpoint with the parameters of its path.

    >>> from topstory.serving.api.endpoints import ARTICLE
    >>> call(ARTICLE, pool="front", article="a/b").path
    '/v1/pools/front/articles/a%2Fb'
    """
    if set(parameters) != set(endpoint.parameters):
        wanted = ", ".join(endpoint.parameters) or "none"
        raise TypeError(f"{endpoint.name} takes the parameters {wanted}, got {[*parameters]}")
    path = endpoint.path.format_map({key: quote(each, "") for key, each in parameters.items()})
    many = endpoint.batch and isinstance(body, list | tuple)
    if endpoint.id_field is not None:
        field = endpoint.id_field
        body = [_with_id(each, field) for each in body] if many else _with_id(body, field)
    content = b"" if body is None else msgspec.json.encode(body, enc_hook=float)  # NumPy's numbers
    headers = {IDEMPOTENCY_KEY: uuid4().hex} if endpoint.keyed else {}
    return Call(endpoint, path, content, many, headers)


def _one_of_many(part: msgspec.Raw, kind: type[T]) -> T | ErrorAnswer:
    try:
        return msgspec.json.decode(part, type=kind)
    except msgspec.ValidationError:
        return msgspec.json.decode(part, type=ErrorAnswer)


def _with_id(body: Any, field: str) -> dict[str, Any]:
    """The body with an id of its own if it has none, so that the request can be repeated."""
    found = body if isinstance(body, Mapping) else msgspec.to_builtins(body)
    return {**found, field: found.get(field) or uuid4().hex}


def call_by_name(name: str, body: Any = None, /, **parameters: str) -> Call[Any]:
    """A call of the endpoint with this name."""
    if name not in BY_NAME:
        raise ValueError(f"there is no endpoint {name!r}; choose one of {', '.join(BY_NAME)}")
    return call(BY_NAME[name], body, **parameters)


def decide(
    user: User,
    *,
    pool: str | None = None,
    visitor: str | None = None,
    exclude: Sequence[str] = (),
    slots: int = 1,
    request: str | None = None,
) -> Call[Decision]:
    """A call that asks for a decision."""
    body: dict[str, Any] = {
        "user": dict(user) if isinstance(user, Mapping) else [float(value) for value in user]
    }
    optional = {"pool": pool, "visitor": visitor, "exclude": list(exclude), "request": request}
    body |= {key: value for key, value in optional.items() if value}
    if slots != 1:
        body["slots"] = slots
    return call(DECIDE, body)
