"""What a client may ask, as bytes: shared by the plain and the asynchronous client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import SplitResult, quote, urlsplit
from uuid import uuid4

import msgspec

from topstory.serving.api.errors import ErrorAnswer, Refused
from topstory.serving.api.messages import (
    Acknowledged,
    ArticleRequest,
    ArticleView,
    Decision,
    RemovedAnswer,
    Stats,
)

T = TypeVar("T")

User = Sequence[float] | Mapping[str, Any]


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and what its answer is. Every call may be repeated safely."""

    method: str
    path: str
    kind: Any  # of the answer
    body: bytes = b""
    done_already: str | None = None  # the reason that says so when it is repeated

    def answer(self, status: int, body: bytes, repeated: bool) -> T | None:
        """The answer; None if it was done by an earlier try. Raises what the service refused."""
        if status == 200:
            answer: T = msgspec.json.decode(body, type=self.kind)
            return answer
        try:
            error = msgspec.json.decode(body, type=ErrorAnswer).error
        except msgspec.DecodeError:
            raise Refused(status, "not_topstory", body[:200].decode(errors="replace")) from None
        if repeated and error.reason == self.done_already:
            return None
        raise Refused(status, error.reason, error.message)


def decide(
    user: User,
    *,
    pool: str | None = None,
    visitor: str | None = None,
    exclude: Sequence[str] = (),
    slots: int = 1,
    request: str | None = None,
) -> Call[Decision]:
    """Show an article; without an id of its own the request gets one, so that it can be retried."""
    told: dict[str, Any] = {
        "user": dict(user) if isinstance(user, Mapping) else [float(value) for value in user],
        "request": request or uuid4().hex,
    }
    optional = {"pool": pool, "visitor": visitor, "exclude": list(exclude)}
    told |= {key: value for key, value in optional.items() if value}
    if slots != 1:
        told["slots"] = slots
    return Call("POST", "/v1/decide", Decision, msgspec.json.encode(told))


def feedback(decision: str, payoff: float) -> Call[Acknowledged]:
    """Say what a decision paid."""
    body = msgspec.json.encode({"decision": decision, "payoff": float(payoff)})
    return Call("POST", "/v1/feedback", Acknowledged, body)


def put_article(pool: str, article: str, said: ArticleRequest) -> Call[ArticleView]:
    """Add an article, or change it."""
    body = msgspec.json.encode(said, enc_hook=float)  # numpy numbers too
    return Call("PUT", _place(pool, article), ArticleView, body)


def remove_article(pool: str, article: str) -> Call[RemovedAnswer]:
    """Forget an article."""
    path = _place(pool, article)
    return Call("DELETE", path, RemovedAnswer, done_already="unknown_article")


def article(pool: str, article: str) -> Call[ArticleView]:
    """One article, and how it does."""
    return Call("GET", _place(pool, article), ArticleView)


def articles(pool: str) -> Call[list[ArticleView]]:
    """All articles of a pool."""
    return Call("GET", f"/v1/pools/{quote(pool, safe='')}/articles", list[ArticleView])


def stats() -> Call[Stats]:
    """The service."""
    return Call("GET", "/v1/stats", Stats)


def address(url: str) -> SplitResult:
    """The parts of a service's address."""
    parts = urlsplit(url.rstrip("/"))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"a service's address is like http://127.0.0.1:8000, got {url!r}")
    return parts


def _place(pool: str, article: str) -> str:
    return f"/v1/pools/{quote(pool, safe='')}/articles/{quote(article, safe='')}"
