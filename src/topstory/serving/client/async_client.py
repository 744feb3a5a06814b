"""The client for asyncio."""

from __future__ import annotations

import asyncio
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


class AsyncClient:
    """`Client` with `await`: as many requests at a time as there are tasks that make them.

    >>> AsyncClient("http://127.0.0.1:8000", key="ts_…")
    <AsyncClient of http://127.0.0.1:8000>
    """

    def __init__(
        self, url: str, key: str, *, timeout: float | None = None, retries: int = 4
    ) -> None:
        self._service = ServiceAddress(url, key)
        self._policy = RetryPolicy(timeout, retries)
        self._http: httpx.AsyncClient | None = None

    def __repr__(self) -> str:
        return f"<AsyncClient of {self._service.url}>"

    async def decide(
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
        return await self._answer(
            calls.decide(
                user, pool=pool, visitor=visitor, exclude=exclude, slots=slots, request=request
            )
        )

    async def feedback(self, decision: str, payoff: float) -> Acknowledged:
        """Report the payoff of a decision; it is on disk when this returns."""
        body = {"decision": decision, "payoff": float(payoff)}
        return await self._answer(call(FEEDBACK, body))

    async def put_article(self, pool: str, article_id: str, article: ArticleRequest) -> ArticleView:
        """Add or change an article."""
        return await self._answer(call(PUT_ARTICLE, article, pool=pool, article=article_id))

    async def put_levers(self, pool: str, article_id: str, levers: LeversRequest) -> LeversView:
        """Pin, boost or limit an article; `LeversRequest()` undoes all of that."""
        return await self._answer(call(PUT_LEVERS, levers, pool=pool, article=article_id))

    async def levers(self, pool: str) -> list[LeversView]:
        """List the levers that are set in a pool, and what they cost."""
        return await self._answer(call(LEVERS, pool=pool))

    async def remove_article(self, pool: str, article_id: str) -> None:
        """Remove an article and what was learned about it."""
        await self._send(call(REMOVE_ARTICLE, pool=pool, article=article_id))

    async def article(self, pool: str, article_id: str) -> ArticleView:
        """Get one article with its results."""
        return await self._answer(call(ARTICLE, pool=pool, article=article_id))

    async def articles(self, pool: str) -> list[ArticleView]:
        """List the articles of a pool with their results."""
        return await self._answer(call(ARTICLES, pool=pool))

    async def stats(self) -> Stats:
        """Get the state of the whole service."""
        return await self._answer(call(STATS))

    async def call(self, name: str, body: Any = None, /, **parameters: str) -> Any:
        """Call any endpoint by its operation id, as `Client.call` does."""
        return await self._send(calls.call_by_name(name, body, **parameters))

    async def close(self) -> None:
        """Close the connections. The next call opens new ones."""
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()

    async def _answer(self, made: Call[T]) -> T:
        answer = await self._send(made)
        assert answer is not None  # only a removal may have succeeded before
        return answer

    async def _send(self, made: Call[T]) -> T | None:
        retried = RetriedCall(made, self._policy)
        while not retried.done:
            if retried.pause:
                await asyncio.sleep(retried.pause)
            try:
                response = await self._try(retried)
            except (httpx.RequestError, TimeoutError) as error:
                retried.fail(error, self._service.url)
            else:
                retried.receive(response)
        return retried.answer

    async def _try(self, retried: RetriedCall[T]) -> httpx.Response:
        # httpx limits the time between two packets; this limits the whole answer.
        async with asyncio.timeout(retried.total_seconds):
            try:
                return await self._exchange(retried)
            except httpx.RequestError as error:
                if not retried.lost_idle_connection(error):
                    raise
            return await self._exchange(retried)

    async def _exchange(self, retried: RetriedCall[T]) -> httpx.Response:
        if self._http is None:
            self._http = httpx.AsyncClient(**self._service.options())

        async def trace(event: str, _: object) -> None:
            retried.trace(event)

        retried.connected = False
        request = self._service.request(retried.call, retried.timeout, trace)
        return await self._http.request(**request)
