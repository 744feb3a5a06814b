"""The synchronous client."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from topstory.serving.api.endpoints import (
    ARTICLE,
    ARTICLES,
    FEEDBACK,
    LEVERS,
    PUT_ARTICLE,
    PUT_LEVERS,
    REMOVE_ARTICLE,
    STATS,
)
from topstory.serving.api.messages import (
    Acknowledged,
    ArticleRequest,
    ArticleView,
    Decision,
    LeversRequest,
    LeversView,
    Stats,
)
from topstory.serving.client import calls
from topstory.serving.client.calls import Call, User, call
from topstory.serving.client.connection import ServiceAddress
from topstory.serving.client.retries import RetriedCall, RetryPolicy

T = TypeVar("T")


class Client:
    """A client that retries safely: no call has an effect twice.

    If a decision is requested again because the first answer was lost, the service returns the same
    decision; feedback counts once. API errors are raised as `ApiError`, with their `reason`.
    Threads may share a client: each has a connection of its own.

    Args:
        url: such as http://127.0.0.1:8000.
        key: an API key.
        timeout: seconds to wait at each try, for the connection and then for the answer. By default
            5, and 120 for the answer to `put_article`: the first article of a pool may have to wait
            for the compiler on a machine where the service never ran.
        retries: how often to try again after a lost connection, 408, 429 or 503. Pauses between
            tries grow from about 0.2 s (four take 1.5 to 4.5 s) and are at least as long as the
            service's `Retry-After`, up to 10 s. So a call ends after (retries + 1) timeouts and
            these pauses at the latest.

    >>> Client("http://127.0.0.1:8000", key="ts_…")
    <Client of http://127.0.0.1:8000>
    """

    def __init__(
        self, url: str, key: str, *, timeout: float | None = None, retries: int = 4
    ) -> None:
        self._service = ServiceAddress(url, key)
        self._policy = RetryPolicy(timeout, retries)
        self._local = threading.local()

    def __repr__(self) -> str:
        return f"<Client of {self._service.url}>"

    def decide(
        self,
        user: User,
        *,
        pool: str | None = None,
        visitor: str | None = None,
        exclude: Sequence[str] = (),
        slots: int = 1,
        request: str | None = None,
    ) -> Decision:
        """Choose an article for a user."""
        return self._answer(
            calls.decide(
                user, pool=pool, visitor=visitor, exclude=exclude, slots=slots, request=request
            )
        )

    def feedback(self, decision: str, payoff: float) -> Acknowledged:
        """Report the payoff of a decision; it is on disk when this returns."""
        body = {"decision": decision, "payoff": float(payoff)}
        return self._answer(call(FEEDBACK, body))

    def put_article(self, pool: str, article_id: str, article: ArticleRequest) -> ArticleView:
        """Add or change an article."""
        return self._answer(call(PUT_ARTICLE, article, pool=pool, article=article_id))

    def put_levers(self, pool: str, article_id: str, levers: LeversRequest) -> LeversView:
        """Pin, boost or limit an article; `LeversRequest()` undoes all of that."""
        return self._answer(call(PUT_LEVERS, levers, pool=pool, article=article_id))

    def levers(self, pool: str) -> list[LeversView]:
        """List the levers that are set in a pool, and what they cost."""
        return self._answer(call(LEVERS, pool=pool))

    def remove_article(self, pool: str, article_id: str) -> None:
        """Remove an article and what was learned about it."""
        self._send(call(REMOVE_ARTICLE, pool=pool, article=article_id))

    def article(self, pool: str, article_id: str) -> ArticleView:
        """Get one article with its results."""
        return self._answer(call(ARTICLE, pool=pool, article=article_id))

    def articles(self, pool: str) -> list[ArticleView]:
        """List the articles of a pool with their results."""
        return self._answer(call(ARTICLES, pool=pool))

    def stats(self) -> Stats:
        """Get the state of the whole service."""
        return self._answer(call(STATS))

    def call(self, name: str, body: Any = None, /, **parameters: str) -> Any:
        """Call any endpoint by its operation id, with the parameters of its path.

        `client.call("article", pool="front", article="cup-final")` is `client.article("front",
        "cup-final")`. None: a retry found that an earlier try had succeeded.
        """
        return self._send(calls.call_by_name(name, body, **parameters))

    def close(self) -> None:
        """Close this thread's connection. The next call opens a new one."""
        http: httpx.Client | None = getattr(self._local, "http", None)
        if http is not None:
            http.close()
            self._local.http = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _answer(self, made: Call[T]) -> T:
        answer = self._send(made)
        assert answer is not None  # only a removal may have succeeded before
        return answer

    def _send(self, made: Call[T]) -> T | None:
        retried = RetriedCall(made, self._policy)
        while not retried.done:
            time.sleep(retried.pause)
            try:
                response = self._try(retried)
            except httpx.RequestError as error:
                retried.fail(error, self._service.url)
            else:
                retried.receive(response)
        return retried.answer

    def _try(self, retried: RetriedCall[T]) -> httpx.Response:
        try:
            return self._exchange(retried)
        except httpx.RequestError as error:
            if not retried.lost_idle_connection(error):
                raise
        return self._exchange(retried)

    def _exchange(self, retried: RetriedCall[T]) -> httpx.Response:
        http: httpx.Client | None = getattr(self._local, "http", None)
        if http is None:
            http = self._local.http = httpx.Client(**self._service.options())

        def trace(event: str, _: object) -> None:
            retried.trace(event)

        retried.connected = False
        return http.request(**self._service.request(retried.call, retried.timeout, trace))
