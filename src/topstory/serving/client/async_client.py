"""The same client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Self, TypeVar

from topstory.serving.api.messages import (
    Acknowledged,
    ArticleRequest,
    ArticleView,
    Decision,
    Stats,
)
from topstory.serving.client import endpoints
from topstory.serving.client.endpoints import Call, User
from topstory.serving.client.retries import Asking, Heard, Patience

T = TypeVar("T")
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]

KEPT = 100  # connections that are kept while nothing is asked


class AsyncClient:
    """`Client` with awaits: as many requests at a time as there are tasks that make them.

    >>> AsyncClient("http://127.0.0.1:8000", key="ts_…")
    <AsyncClient of http://127.0.0.1:8000>
    """

    def __init__(
        self, url: str, key: str, *, timeout: float | None = None, retries: int = 4
    ) -> None:
        self._url, self._parts = url.rstrip("/"), endpoints.address(url)
        self._patience = Patience(timeout, retries)
        self._secure = self._parts.scheme == "https"
        self._port = self._parts.port or (443 if self._secure else 80)
        self._headers = f"host: {self._parts.netloc}\r\nauthorization: Bearer {key}\r\n"
        self._idle: list[Stream] = []

    def __repr__(self) -> str:
        return f"<AsyncClient of {self._url}>"

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
        """Which article to show to this user."""
        call = endpoints.decide(
            user, pool=pool, visitor=visitor, exclude=exclude, slots=slots, request=request
        )
        return await self._ask(call)

    async def feedback(self, decision: str, payoff: float) -> Acknowledged:
        """What a decision paid; on disk when this returns."""
        return await self._ask(endpoints.feedback(decision, payoff))

    async def put_article(self, pool: str, article: str, said: ArticleRequest) -> ArticleView:
        """Add an article, or change it."""
        return await self._ask(endpoints.put_article(pool, article, said))

    async def remove_article(self, pool: str, article: str) -> None:
        """Forget an article."""
        await self._send(endpoints.remove_article(pool, article))

    async def article(self, pool: str, article: str) -> ArticleView:
        """One article, and how it does."""
        return await self._ask(endpoints.article(pool, article))

    async def articles(self, pool: str) -> list[ArticleView]:
        """All articles of a pool, and how they do."""
        return await self._ask(endpoints.articles(pool))

    async def stats(self) -> Stats:
        """The service as a whole."""
        return await self._ask(endpoints.stats())

    async def close(self) -> None:
        """Close the connections."""
        self._drop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()

    async def _ask(self, call: Call[T]) -> T:
        answer = await self._send(call)
        assert answer is not None  # only a removal may have been done already
        return answer

    async def _send(self, call: Call[T]) -> T | None:
        asking = Asking(call, self._patience)
        while not asking.over:
            if asking.pause:
                await asyncio.sleep(asking.pause)
            try:
                heard = await self._try(asking)
            except (OSError, EOFError, KeyError, ValueError) as error:  # timeouts are OSErrors
                asking.lost(error, self._url)
            else:
                asking.heard(heard)
        return asking.answer

    async def _try(self, asking: Asking[T]) -> Heard:
        stream = self._free()
        if stream is not None:
            try:
                return await self._exchange(*stream, asking)
            except (ConnectionError, EOFError):  # closed while it was idle: no failure of the
                self._drop()  # service; the others are as old
        async with asyncio.timeout(self._patience.connecting):
            stream = await asyncio.open_connection(
                self._parts.hostname, self._port, ssl=self._secure or None
            )
        return await self._exchange(*stream, asking)

    def _free(self) -> Stream | None:
        """A connection that is not known to be closed."""
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return None

    def _drop(self) -> None:
        idle, self._idle = self._idle, []
        for _, writer in idle:
            writer.close()

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asking: Asking[T]
    ) -> Heard:
        call = asking.call
        try:
            asking.sent += 1
            head = f"{call.method} {self._parts.path}{call.path} HTTP/1.1\r\n{self._headers}"
            writer.write(f"{head}content-length: {len(call.body)}\r\n\r\n".encode() + call.body)
            async with asyncio.timeout(asking.seconds):
                lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
                headers = {
                    name.strip().lower(): value.strip()
                    for name, _, value in (line.partition(b":") for line in lines[1:] if line)
                }
                body = await reader.readexactly(int(headers[b"content-length"]))
            status = int(lines[0].split()[1])
        except BaseException:
            writer.close()
            raise
        if headers.get(b"connection", b"").lower() == b"close" or len(self._idle) >= KEPT:
            writer.close()
        else:
            self._idle.append((reader, writer))
        return Heard(status, body, headers.get(b"retry-after", b"").decode())
