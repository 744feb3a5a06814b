"""A client of the service, with nothing but the standard library under it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from types import TracebackType
from typing import Self, TypeVar

from topstory.serving.api.messages import (
    Acknowledged,
    ArticleRequest,
    ArticleView,
    Decision,
    RemovedAnswer,
    Stats,
)
from topstory.serving.client import endpoints
from topstory.serving.client.endpoints import Call, User
from topstory.serving.client.retries import Asking, Heard, Patience

T = TypeVar("T")


class Client:
    """Asks a service, and asks again where that is safe: every call may be repeated.

    A decision that is asked for twice, because the first answer was lost, is the same decision;
    feedback counts once. What the service refuses is raised as `Refused`, with its `reason`.
    A client may be shared by threads: each has a connection of its own.

    Args:
        url: such as http://127.0.0.1:8000.
        key: an API key.
        timeout: seconds to wait at each try, for the connection and then for the answer. By default
            5, and 120 for the answer to `put_article`: a pool's first article may have to wait for
            the compiler on a machine where the service never ran.
        retries: how often to try again after a lost connection, 408, 429 or 503. Pauses between
            tries grow from about 0.2 s (four take 1.5 to 4.5 s) and are at least as long as the
            service's `Retry-After` says, up to 10 s. So a call ends after (retries + 1) timeouts
            and these pauses at the latest.

    >>> client = Client("http://127.0.0.1:8000", key="ts_…")
    >>> client
    <Client of http://127.0.0.1:8000>
    """

    def __init__(
        self, url: str, key: str, *, timeout: float | None = None, retries: int = 4
    ) -> None:
        self._url, self._parts = url.rstrip("/"), endpoints.address(url)
        self._patience = Patience(timeout, retries)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._local = threading.local()

    def __repr__(self) -> str:
        return f"<Client of {self._url}>"

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
        """Which article to show to this user."""
        call = endpoints.decide(
            user, pool=pool, visitor=visitor, exclude=exclude, slots=slots, request=request
        )
        return self._ask(call)

    def feedback(self, decision: str, payoff: float) -> Acknowledged:
        """What a decision paid; on disk when this returns."""
        return self._ask(endpoints.feedback(decision, payoff))

    def put_article(self, pool: str, article: str, said: ArticleRequest) -> ArticleView:
        """Add an article, or change it."""
        return self._ask(endpoints.put_article(pool, article, said))

    def remove_article(self, pool: str, article: str) -> None:
        """Forget an article."""
        call: Call[RemovedAnswer] = endpoints.remove_article(pool, article)
        self._send(call)

    def article(self, pool: str, article: str) -> ArticleView:
        """One article, and how it does."""
        return self._ask(endpoints.article(pool, article))

    def articles(self, pool: str) -> list[ArticleView]:
        """All articles of a pool, and how they do."""
        return self._ask(endpoints.articles(pool))

    def stats(self) -> Stats:
        """The service as a whole."""
        return self._ask(endpoints.stats())

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, call: Call[T]) -> T:
        answer = self._send(call)
        assert answer is not None  # only a removal may have been done already
        return answer

    def _send(self, call: Call[T]) -> T | None:
        asking = Asking(call, self._patience)
        while not asking.over:
            time.sleep(asking.pause)
            try:
                heard = self._try(asking)
            except (OSError, HTTPException) as error:
                self.close()
                asking.lost(error, self._url)
            else:
                asking.heard(heard)
        return asking.answer

    def _try(self, asking: Asking[T]) -> Heard:
        connection: HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is not None and connection.sock is not None:
            try:
                return self._exchange(connection, asking)
            except ConnectionError:  # closed while it was idle: that is no failure of the service
                self.close()
        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        assert self._parts.hostname is not None
        wait = self._patience.connecting
        self._local.connection = fresh = kind(self._parts.hostname, self._parts.port, timeout=wait)
        fresh.connect()
        return self._exchange(fresh, asking)

    def _exchange(self, connection: HTTPConnection, asking: Asking[T]) -> Heard:
        call = asking.call
        connection.sock.settimeout(asking.seconds)
        asking.sent += 1
        connection.request(call.method, self._parts.path + call.path, call.body, self._headers)
        response = connection.getresponse()
        return Heard(response.status, response.read(), response.getheader("Retry-After", ""))
